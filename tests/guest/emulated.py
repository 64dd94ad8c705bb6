"""A machine of any shape under qemu, with Debian's ordinary kernel: for what depends on CPUs,
sockets and NUMA nodes.

With hardware's help (KVM) where the CPU and /dev/kvm offer it, else emulated, which costs seconds
for a boot and makes programs some ten times slower; so no rate in it means anything. The kernel's
package is downloaded by the machine's own apt and unpacked below build/, once: nothing is
installed, no boot loader hears of it.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.guest import common
from tests.guest.common import GuestError

PROGRAM = "qemu-system-x86_64"
NEEDED = {PROGRAM: "qemu-system-x86", "depmod": "kmod", "ip": "iproute2", "gcc": "gcc"}
NEEDED |= {"apt-get": "apt", "tar": "tar"}
PACKAGE = "linux-image-amd64"
NO_KERNEL = "no kernel for the emulated machine"
BUILD = Path(__file__).resolve().parents[2] / "build" / "guest"
OWN = 'mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 guest "$GUEST"'
BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p")
# What of the package is kept: all of it would be 400 MB.
KEPT_FOLDERS = ("arch", "crypto", "lib", "fs", "net", "drivers/virtio", "drivers/block")
KEPT_LINKS = ("veth", "dummy", "ifb")
KEPT = (
    *("./boot/vmlinuz-*", "*/modules.*"),
    *(f"*/kernel/{folder}/*" for folder in KEPT_FOLDERS),
    *(f"*/kernel/drivers/net/{link}.ko*" for link in KEPT_LINKS),
)


@dataclass(frozen=True)
class Machine:
    """What the guest's Linux finds: ``Machine(sockets=2, cores=2, threads=2, nodes=2)`` has 8 CPUs.

    sockets     each with ``dies`` dies, each of these with ``cores`` cores, each of these with
                ``threads`` threads. CPUs are numbered in this order: 0 and 1 are the threads of the
                first core. A die has one L3 cache
    nodes       NUMA nodes; each has as many of the CPUs, in order, and as much of the memory
    memory_mib  of the whole machine
    cpu         qemu's name of a model. "Nehalem" is the oldest that numpy runs on, and the quickest
                to emulate; "max" has AVX2, "EPYC-Rome" and so on the caches of other makers
    """

    sockets: int = 1
    dies: int = 1
    cores: int = 1
    threads: int = 1
    nodes: int = 1
    memory_mib: int = 1024
    cpu: str = "Nehalem"

    @property
    def cpus(self) -> int:
        return self.sockets * self.dies * self.cores * self.threads

    def argv(self) -> list[str]:
        """qemu's options. Errors: GuestError when nodes cannot have equal shares."""
        if self.cpus % self.nodes or self.memory_mib % self.nodes:
            what = f"{self.cpus} CPUs and {self.memory_mib} MiB"
            raise GuestError(f"{what} are not shared evenly by {self.nodes} nodes")
        parts = f"sockets={self.sockets},dies={self.dies},cores={self.cores},threads={self.threads}"
        words = ["-m", str(self.memory_mib), "-smp", f"{self.cpus},{parts}", "-cpu", self.cpu]
        share = self.cpus // self.nodes
        for node in range(self.nodes):
            memory = f"memory-backend-ram,id=memory{node},size={self.memory_mib // self.nodes}M"
            cpus = f"cpus={node * share}-{(node + 1) * share - 1}"
            words += ["-object", memory, "-numa", f"node,nodeid={node},{cpus},memdev=memory{node}"]
        return words


def argv(directory: Path, machine: Machine, modules: Sequence[str]) -> list[str]:
    """The command that boots it. Errors: GuestError without a kernel."""
    root = kernel()
    (directory / "initrd").write_bytes(_initial_files(root, directory, modules))
    words = [shutil.which(PROGRAM, path=common.SYSTEM_PATH) or PROGRAM, *machine.argv()]
    words += ["-accel", "kvm"] if _has_kvm() else []
    words += [
        "-accel", "tcg,tb-size=256", "-M", "q35", "-nodefaults", "-no-user-config", "-no-reboot",
    ]  # fmt: skip
    words += ["-display", "none", "-serial", "stdio", "-kernel", str(_one(root, "boot/vmlinuz-*"))]
    words += ["-initrd", str(directory / "initrd")]
    words += ["-append", f"console=ttyS0 quiet panic=-1 GUEST={directory}"]
    for tag, path, more in (("root", Path("/"), ",readonly=on"), ("guest", directory, "")):
        words += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{more}"]
        words += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return words


def _has_kvm() -> bool:
    """In a virtual machine /dev/kvm may be there without the CPU that it needs, and a guest then
    never starts.
    """
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(
        {"vmx", "svm"} & set(flags[1].split() if flags else ())
    )


def kernel() -> Path:
    """The folder with Debian's kernel, ``boot/`` and ``lib/modules/``; downloaded when it is not
    there.

    Errors: GuestError with apt's last word when it cannot be had.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    root = BUILD / "kernel"
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (root / "complete").exists():
            return root
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        depends = _run("apt-cache", "depends", PACKAGE, cwd=root)
        names = re.findall(r"Depends: (linux-image-\S+)", depends)
        if not names:
            raise GuestError(f"{NO_KERNEL}: apt knows no {PACKAGE}; try apt-get update")
        options = ("--quiet=2", "-o", "APT::Sandbox::User=root")
        _run("apt-get", "download", *options, names[0], cwd=root)
        package = _one(root, "*.deb")
        unpack = ["dpkg-deb", "--fsys-tarfile", str(package)]
        with subprocess.Popen(unpack, stdout=subprocess.PIPE) as whole:
            words = ["tar", "--extract", "--wildcards", "--no-same-owner", *KEPT]
            null = subprocess.DEVNULL
            subprocess.run(words, cwd=root, stdin=whole.stdout, stderr=null, check=False)
        package.unlink()
        if not (root / "lib").exists():
            # Debian 13 packs the modules below usr/lib; depmod, and what a guest sees, have them
            # below lib.
            (root / "lib").symlink_to("usr/lib")
        _run("depmod", "-b", str(root), _one(root, "lib/modules/*").name, cwd=root)
        (root / "complete").touch()
    return root


def _run(*words: str, cwd: Path) -> str:
    program = shutil.which(words[0], path=common.SYSTEM_PATH) or words[0]
    argv = [program, *words[1:]]
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        output = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
        raise GuestError(f"{NO_KERNEL}: {words[0]}: {output.splitlines()[-1]}")
    return done.stdout


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise GuestError(f"{NO_KERNEL}: no {pattern} in {folder}; remove that folder")
    return found[-1]


def _initial_files(root: Path, directory: Path, modules: Sequence[str]) -> bytes:
    """The first program and the modules it loads, in an order in which each finds what it needs."""
    stage = directory / "stage"
    common.compile_source("stage.c", stage, "-static")
    files = {"init": stage.read_bytes()}
    for number, path in enumerate(_ordered(_one(root, "lib/modules/*"), (*BOOT_MODULES, *modules))):
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        files[f"modules/{number:02}"] = content
    return common.archive(files)


def _ordered(folder: Path, modules: Sequence[str]) -> list[Path]:
    """Files of the modules and all they need. Those that are built into the kernel need none."""

    def module_name(path: str) -> str:
        return Path(path).name.partition(".")[0].replace("-", "_")

    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[module_name(path)] = [*reversed(others.split()), path]
    built_in = {module_name(path) for path in (folder / "modules.builtin").read_text().split()}
    files: dict[str, None] = {}
    for module in modules:
        if module in needs:
            files |= dict.fromkeys(needs[module])
        elif module not in built_in:
            raise GuestError(f"the emulated machine's kernel has no module {module}")
    return [folder / one for one in files]
