"""Read facts of a node's software: Linux, C library, Slurm, peakmark's kernels, libraries, BLAS and MPI's compiler."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from peakmark.machine import job_limits
from peakmark.machine.host import Facts, Host

_BOOT_PARAMETERS = re.compile(
    r"(isolcpus|nohz|nohz_full|rcu_nocbs|idle|(intel_idle|processor)\.max_cstate|(intel|amd)_pstate\S*|cpufreq\.\S+|nosmt|smt|"
    r"maxcpus|nr_cpus|mem|memmap|numa|numa_balancing|default_hugepagesz|hugepagesz|hugepages|transparent_hugepage|iommu\S*|"
    r"(intel|amd)_iommu|mitigations|nopti|pti|(no)?spect\S*|tsx|mds|clocksource|tsc|audit|selinux|init_on_\w+|"
    r"page_poison|slub_debug|nmi_watchdog|nosoftlockup|skew_tick|preempt|threadirqs|cgroup\w*)(=.*)?"
)
"""Parameters of Linux (Documentation/admin-guide/kernel-parameters.txt) that change measured values.

Other parameters are not recorded, because they may name disks and servers.
"""
_LIBRARIES = re.compile(
    r"lib(blas|openblas|mkl|blis|flexiblas|armpl|essl|mpi|psm|ucp|uct|fabric|ibverbs|rdmacm|hwloc|numa|uring|aio"
    r"|likwid|iperf|gfortran|gomp|iomp)"
)
"""Libraries that can affect a result. Basic libraries such as libc and libm are left out."""
# Names of libraries that provide a BLAS.
_BLAS = re.compile(r"lib(openblas|mkl_rt|blis|flexiblas|armpl|essl|blas)")
# Settings with which a BLAS starts no threads.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "BLIS_NUM_THREADS=1")

_QUERY_BLAS = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
def ask(name, *arguments):
    try:
        function = getattr(library, name)
    except AttributeError:
        return None
    function.restype = ctypes.c_char_p
    text = function(*arguments)
    return text.decode(errors="replace").strip() if text else None
core, config = ask("openblas_get_corename"), ask("openblas_get_config")
if core is not None:
    print(json.dumps({"name": "OpenBLAS", "core_type": core, "config": config}))
elif hasattr(library, "bli_info_get_version_str"):
    arch = library.bli_arch_query_id() if hasattr(library, "bli_arch_query_id") else None
    kind = ask("bli_arch_string", arch) if arch is not None else None
    print(json.dumps({"name": "BLIS", "core_type": kind, "config": ask("bli_info_get_version_str")}))
elif hasattr(library, "mkl_get_version_string"):
    text = ctypes.create_string_buffer(200)
    library.mkl_get_version_string(text, 200)
    print(json.dumps({"name": "MKL", "core_type": None, "config": text.value.decode(errors="replace").strip()}))
else:
    print(json.dumps({"name": "reference BLAS or unknown", "core_type": None, "config": None}))
"""
"""Python program that loads a BLAS and prints its name.

It runs in a separate process, because a BLAS starts threads when it is loaded.
"""

_MPI_PROGRAM = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n"
"""Smallest program that needs the headers and the library of MPI."""
_MPI_REMEDY = "install an MPI library with its headers, or name its modules in the site file: mpi: {modules: [openmpi]}"
_COMPILE_TIMEOUT_S = 60.0
"""Seconds after which the compilation of the smallest program counts as failed."""


def collect_os(host: Host) -> Facts:
    """Return the ``os`` part of the facts."""
    release = host.pairs("/etc/os-release", "=") or host.pairs("/usr/lib/os-release", "=")
    distribution = release.get("PRETTY_NAME") or release.get("NAME") or ""
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    firmware = [
        host.read(f"/sys/class/dmi/id/bios_{name}") for name in ("vendor", "version", "date")
    ]
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": distribution.strip('"') or None,
        "glibc": libc.removeprefix("glibc ") or None,
        "numa_balancing": host.read_int("/proc/sys/kernel/numa_balancing"),
        "command_line": _command_line(host),
        "firmware": " ".join(filter(None, firmware)) or None,
    }


def _command_line(host: Host) -> str | None:
    """Return the boot parameters of Linux that change measured values, as text; None if they cannot be read."""
    text = host.read("/proc/cmdline")
    if text is None:
        return None
    return " ".join(word for word in text.split() if _BOOT_PARAMETERS.fullmatch(word))


def collect_slurm(host: Host) -> Facts | None:
    """Return the ``slurm`` part of the facts (``job_limits.slurm_job``); None without Slurm."""
    version = host.run(["sinfo", "--version"]) or ""
    return job_limits.slurm_job(version.strip().removeprefix("slurm "))


def collect_build(host: Host, kernels: Path | None) -> Facts:
    """Return the ``build`` part of the facts from build.json, which the Makefile writes."""
    build = {}
    if kernels is not None:
        with suppress(OSError, ValueError):
            build = json.loads((kernels / "build.json").read_text(encoding="utf-8"))
    names = ("compiler", "flags", "isa_flags", "left_out", "io_uring")
    if build.get("compiler") is None:
        host.missing("build.compiler", "compile the kernels, which writes build.json next to them")
    return {name: build.get(name) for name in names}


def collect_libraries(host: Host, programs: Iterable[str]) -> dict[str, str]:
    """Return name -> file of each shared library that programs load and that can affect results.

    Links are resolved, because the name of the file has the version, as in ``libopenblas.so.0 ->
    .../libopenblasp-r0.3.21.so``.
    """
    libraries: dict[str, str] = {}
    for program in sorted(set(programs)):
        for name, path in _linked(host, program):
            if _LIBRARIES.match(name):
                libraries.setdefault(name, os.path.realpath(path))
    return dict(sorted(libraries.items()))


def _linked(host: Host, program: str) -> list[tuple[str, str]]:
    """Return (name, path) of the shared libraries that the loader finds for a program."""
    text = host.run(["env", *_library_path(), "ldd", program]) or ""
    return re.findall(r"^\s*(\S+) => (/\S+) \(0x", text, re.MULTILINE)


def collect_blas(host: Host, hpl: str | None) -> Facts:
    """Return the ``blas`` part of the facts: name, version and core type of HPL's BLAS.

    Without HPL, the system's default BLAS is described.

    Args:
        host: the machine.
        hpl: path of HPL, if it is installed.
    """
    libraries = []
    if hpl is not None:
        linked = sorted(_linked(host, hpl))
        libraries = [path for name, path in linked if _BLAS.match(name)]
    # Try libopenblas before libblas, which may be a wrapper around libopenblas.
    libraries.sort(key=lambda path: Path(path).name.startswith("libblas"))
    for library in libraries or ["libopenblas.so.0", "libblis.so.4", "libblas.so.3"]:
        # A BLAS starts threads when it is loaded, so a separate process loads it.
        python = [sys.executable, "-I", "-S", "-c", _QUERY_BLAS, library]
        answer = host.run_json(["env", *_library_path(), *_ONE_THREAD, *python])
        if answer is not None:
            if answer["core_type"] is None:
                how = f"{answer['name']} does not report it: records of hpl have the output of its runs"
                host.missing("blas.core_type", how)
            file = library
            if library.startswith("/"):
                file = os.path.realpath(library)
            return {"library": file, **answer}
    host.missing(
        "blas.name",
        "no BLAS was found: install libopenblas0-pthread, or load a module that provides a BLAS",
    )
    return dict.fromkeys(("library", "name", "core_type", "config"))  # all None: unknown


def _library_path() -> list[str]:
    """Return the setting of LD_LIBRARY_PATH for ``env``, because ``Host.run`` passes only PATH to tools.

    The list is empty if the variable is not set.
    """
    path = os.environ.get("LD_LIBRARY_PATH")
    if not path:
        return []
    return [f"LD_LIBRARY_PATH={path}"]


# -- the MPI library


def mpi_compiler(variables: Mapping[str, str]) -> str | None:
    """Return the path of mpicc on PATH, or None. ``variables`` of the site file override those of this process."""
    return shutil.which("mpicc", path={**os.environ, **variables}.get("PATH"))


def why_no_mpi(variables: Mapping[str, str]) -> str:
    """Return why no MPI program can be compiled on this machine; empty if one can.

    Args:
        variables: variables of the site file, in addition to those of this process.
    """
    path = mpi_compiler(variables)
    if path is None:
        return f"mpicc not found; {_MPI_REMEDY}"
    # The Makefile of the kernels compiles with gcc too, whatever compiler the library was built with.
    environment = {**os.environ, **variables, "OMPI_CC": "gcc", "MPICH_CC": "gcc", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [path, "-x", "c", "-", "-o", os.devnull],
            input=_MPI_PROGRAM,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} does not compile an MPI program: {error}"
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    reason = errors[0].strip() if errors else f"exit code {done.returncode}"
    return f"{path} does not compile an MPI program ({reason}); {_MPI_REMEDY}"
