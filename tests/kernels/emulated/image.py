"""The disk an emulated machine boots from: Debian's kernel, our init, and programs with their
libraries.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

PACKAGES = [
    "bochs", "bochs-term", "bochsbios", "vgabios", "isolinux", "syslinux-common", "genisoimage",
]  # fmt: skip
KERNEL = "linux-image-cloud-amd64"  # the smallest of Debian's kernels; it has the serial port, and needs no module
# No devices and checks that are not needed: a boot is half a billion instructions, and bochs does
# 20 million a second. What bochs says of itself is not all true. Protection keys (CPU feature 515)
# have no state, compacted state (XSAVEC 321, XSAVES 323) has another size than the kernel finds,
# either of which would cost it all vector state. With INVPCID (298), UMIP, GFNI, VAES, VPCLMULQDQ,
# five-level pages, RDPID (514, 520, 521, 522, 528, 534), fast short moves and branch tracking (580,
# 596) icelake_u does not come through the start. The time stamp counter is slower: see make().
KERNEL_WORDS = (
    "console=ttyS0 loglevel=4 noxsaves clearcpuid=515,321,323,298,514,520,521,522,528,534,580,596 acpi=off nosmp"
    " tsc=reliable no_timer_check"
    " random.trust_cpu=on init_on_alloc=0 mitigations=off nokaslr rodata=off apparmor=0 selinux=0 audit=0"
    " cryptomgr.notests nomodeset"
)
# What an emulated second is made of: few make a program's waiting short here, for a timer's tick
# there must be enough.
INSTRUCTIONS_PER_SECOND = 20_000_000


def unpack(build: Path) -> Path:
    """Downloads and unpacks the packages that are not installed, once; returns the folder they are
    in.
    """
    root, archives = build / "root", build / "packages"
    complete, listed = root / "complete", " ".join((*PACKAGES, KERNEL))
    if complete.exists() and complete.read_text() == listed:
        return root
    planned = _output("apt-get", "--simulate", "--no-install-recommends", "install", *PACKAGES)
    wanted = [*re.findall(r"^Inst (\S+)", planned, re.MULTILINE)]
    wanted += re.findall(r"Depends: (linux-image-\S+)", _output("apt-cache", "depends", KERNEL))
    print("emulated: downloads", *wanted, flush=True)
    shutil.rmtree(root, ignore_errors=True)
    archives.mkdir(parents=True, exist_ok=True)
    options = ("--quiet=2", "-o", "APT::Sandbox::User=root")
    subprocess.run(["apt-get", *options, "download", *wanted], cwd=archives, check=True)
    for package in archives.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    complete.write_text(listed)
    return root


def part(root: Path, pattern: str) -> Path:
    """A file of the packages: unpacked here, or installed."""
    for top in (root, Path("/")):
        found = sorted(top.glob(pattern))
        if found:
            return found[-1]
    raise SystemExit(
        f"emulated: there is no {pattern}: it should be in {', '.join(PACKAGES)} or {KERNEL}"
    )


def environment(root: Path) -> dict[str, str]:
    """Where unpacked programs find their libraries, and bochs its plugins."""
    libraries = sorted({str(found.parent) for found in root.glob("usr/lib/*/*.so*")})
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(libraries),
        "LTDL_LIBRARY_PATH": str(part(root, "usr/lib/*/bochs/plugins")),
        "TERM": "vt100",
    }


def make(root: Path, build: Path, programs: Mapping[str, Path], jobs: Iterable[str]) -> Path:
    """A bootable image in ``build``: ``programs`` by their paths inside, ``jobs`` the lines that
    init runs.
    """
    init = build / "init"
    source = Path(__file__).with_name("init.c")
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", init, source], check=True
    )
    files = {"init": init.read_bytes(), "jobs": "".join(f"{line}\n" for line in jobs).encode()}
    for inside, program in programs.items():
        files[inside] = program.read_bytes()
        for library in _libraries(program):
            files[library.lstrip("/")] = Path(library).read_bytes()
    tree = build / "iso"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "isolinux").mkdir(parents=True)
    shutil.copy(part(root, "usr/lib/ISOLINUX/isolinux.bin"), tree / "isolinux")
    shutil.copy(part(root, "usr/lib/syslinux/modules/bios/ldlinux.c32"), tree / "isolinux")
    shutil.copy(part(root, "boot/vmlinuz-*-cloud-amd64"), tree / "vmlinuz")
    (tree / "initrd").write_bytes(archive(files))
    (tree / "isolinux/isolinux.cfg").write_text(
        f"DEFAULT test\nPROMPT 0\nLABEL test\n KERNEL /vmlinuz\n INITRD /initrd\n APPEND {KERNEL_WORDS}"
        f" tsc_early_khz={INSTRUCTIONS_PER_SECOND // 1000}\n"
    )
    image = build / "boot.iso"
    boot = [
        "-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat", "-no-emul-boot",
        "-boot-load-size", "4",
    ]  # fmt: skip
    maker = [part(root, "usr/bin/genisoimage"), "-quiet", "-o", image]
    subprocess.run([*maker, *boot, "-boot-info-table", tree], env=environment(root), check=True)
    return image


def _libraries(program: Path) -> list[str]:
    """The libraries a program is loaded with, and their loader."""
    return re.findall(r"(/\S+) \(0x", _output("ldd", str(program)))


def _output(*argv: str) -> str:
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def archive(files: Mapping[str, bytes]) -> bytes:
    """A cpio archive (newc, from which a kernel takes its first files) of executable files."""
    entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {"dev": (0o40755, b"", (0, 0))}
    entries["dev/console"] = (0o20600, b"", (5, 1))
    for name, content in files.items():
        for folder in reversed(Path(name).parents[:-1]):
            entries[str(folder)] = (0o40755, b"", (0, 0))
        entries[name] = (0o100755, content, (0, 0))
    entries["TRAILER!!!"] = (0, b"", (0, 0))
    packed = bytearray()
    for number, (name, (mode, content, (major, minor))) in enumerate(entries.items(), start=1):
        word = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(word), 0)
        for piece in (b"070701" + b"".join(b"%08x" % field for field in fields) + word, content):
            packed += piece
            packed += b"\0" * (-len(packed) % 4)
    return bytes(packed)
