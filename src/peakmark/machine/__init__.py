"""Facts of a node as any user can read them: what the limits are computed from and what a report
must state.

``collect`` takes well under a second, needs no root, and never fails because a tool is missing:
what cannot be read is null, and ``unknown`` says how a person can supply it.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from peakmark import output
from peakmark.errors import RecordError, UnreadableError
from peakmark.machine import hardware, job_limits, network, storage
from peakmark.machine.host import Facts, Host
from peakmark.machine.topology import Topology
from peakmark.storage import facts as stored
from peakmark.storage import types
from peakmark.tools import present
from peakmark.tools.base import Tool
from peakmark.validation import convert

SCHEMA = 1


def collect(
    scratch: Path | None = None,
    tools: Mapping[str, Tool] | None = None,
    cpubench: Path | None = None,
    host: Host | None = None,
) -> Facts:
    """All facts of this machine as JSON values, of the type ``storage.types.Facts``.

    Args:
        scratch: directory whose disk is described; default $TMPDIR, else /tmp.
        tools: name -> program, whose path and version become facts.
        cpubench: kernel that measures the clock in 50 ms; without it the observed clock is null.
        host: another root directory or other tools, for tests.

    Returns:
        Facts in bytes, Hz, bit/s and B/s.

    Raises:
        RecordError: if the facts do not fit the type (a defect of peakmark).
    """
    host, tools = host or Host(), tools or {}
    hpl = tools["hpl"].path if "hpl" in tools else None
    facts: Facts = {
        "schema": SCHEMA,
        "host": os.uname().nodename,
        "collected": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": hardware.collect_cpu(host),
        "memory": hardware.collect_memory(host),
        "os": collect_os(host),
        "storage": storage.collect(host, scratch),
        "network": network.collect(host),
        "limits": job_limits.collect(host),
        "tools": {
            name: {"path": tool.path, "version": tool.version}
            for name, tool in sorted(tools.items())
        },
        "slurm": collect_slurm(host),
        "build": collect_build(host, cpubench.parent if cpubench else None),
        "blas": collect_blas(host, hpl),
        "libraries": collect_libraries(host, [tool.path for tool in tools.values()]),
    }
    measured = _measure_shortly(host, cpubench) if cpubench else {}
    clock = measured.get("clock_hz_before")
    facts["cpu"]["energy"] = measured.get("energy_of")
    if measured and facts["cpu"]["energy"] is None:
        host.missing("cpu.energy", hardware.how_to_read_energy(host))
    if clock:
        facts["cpu"]["clock_hz"]["observed"] = clock
        facts["cpu"]["clock_source"]["observed"] = "dependent chain timed by cpubench, one thread"
    elif cpubench:
        host.missing("cpu.clock_hz.observed", f"{cpubench} did not tell a clock")
    else:
        how = "build the kernels (peakmark run -- kernels): cpubench measures the clock"
        host.missing("cpu.clock_hz.observed", how)
    facts["unknown"] = dict(sorted(host.unknown.items()))
    convert(facts, types.Facts, "machine facts")
    return facts


def _measure_shortly(host: Host, cpubench: Path) -> Facts:
    """What a very short run of cpubench prints: the clock in Hz by a dependent chain, and whose
    energy it can read.
    """
    options = ["--workload", "SP", "--seconds", "0.05", "--warmup", "0.02", "--threads", "1"]
    result = host.run_json([str(cpubench.absolute()), *options])
    return result if isinstance(result, dict) else {}


def cached(
    folder: Path,
    scratch: Path | None = None,
    kernels: Path | None = None,
    cpu_locations: Topology | None = None,
) -> Facts:
    """Facts of this machine from ``folder/<host>.json``, which the first caller on a node writes.

    Limits, Slurm's job, and the disk if ``scratch`` is another, may differ from job to job and are
    always read; no program is started for them, unless for another disk. A damaged or edited file
    is set aside and written again.

    Args:
        kernels: folder of the compiled kernels; None leaves all programs out of the facts.
        cpu_locations: where this process's CPUs sit, if already read.
    """
    path = folder / f"{os.uname().nodename}.json"
    host = Host()
    facts = _stored(path)
    if facts is None:
        tools = present(kernels) if kernels else None
        facts = collect(scratch, tools, kernels / "cpubench" if kernels else None, host)
        stored.write(path, facts)
        return facts
    facts["limits"] = job_limits.collect(host, cpu_locations=cpu_locations)
    facts["slurm"] = job_limits.slurm_job((facts["slurm"] or {}).get("version"))
    if scratch is not None and facts["storage"]["scratch"] != str(scratch):
        facts["storage"] = storage.collect(host, scratch)
    return facts


def _stored(path: Path) -> Facts | None:
    """The facts at ``path``; None where there are none that are valid."""
    if not path.exists():
        return None
    try:
        return stored.read(path)
    except UnreadableError:
        raise  # another user's, and whole: nothing is put in their place
    except RecordError as error:
        aside = stored.set_aside(path.parent.parent, path.stem)
        output.tell(f"{error}: collected again, what was there is kept in {aside}")
        return None


# -- software: kernel, distribution, C library, Slurm, the compiled kernels, libraries and the BLAS

# Parameters of the kernel (Documentation/admin-guide/kernel-parameters.txt) that change what is
# measured. The others name disks and servers, which are nobody's business.
_PARAMETERS = re.compile(
    r"(isolcpus|nohz|nohz_full|rcu_nocbs|idle|(intel_idle|processor)\.max_cstate|(intel|amd)_pstate\S*|cpufreq\.\S+|nosmt|smt|"
    r"maxcpus|nr_cpus|mem|memmap|numa|numa_balancing|default_hugepagesz|hugepagesz|hugepages|transparent_hugepage|iommu\S*|"
    r"(intel|amd)_iommu|mitigations|nopti|pti|(no)?spect\S*|tsx|mds|clocksource|tsc|audit|selinux|init_on_\w+|"
    r"page_poison|slub_debug|nmi_watchdog|nosoftlockup|skew_tick|preempt|threadirqs|cgroup\w*)(=.*)?"
)
# Libraries that a result can depend on; every program also has libc, libm and their like.
_LIBRARIES = re.compile(
    r"lib(blas|openblas|mkl|blis|flexiblas|armpl|essl|mpi|psm|ucp|uct|fabric|ibverbs|rdmacm|hwloc|numa|uring|aio"
    r"|likwid|iperf|gfortran|gomp|iomp)"
)
_BLAS = re.compile(r"lib(openblas|mkl_rt|blis|flexiblas|armpl|essl|blas)")
_ONE_THREAD = ("OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "BLIS_NUM_THREADS=1")

# Run in a process of its own: a BLAS starts threads when it is loaded. Each question is put to
# the library that can answer it.
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


def collect_os(host: Host) -> Facts:
    """The ``os`` part of the facts."""
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
        "io_uring_disabled": host.read_int("/proc/sys/kernel/io_uring_disabled"),
        "numa_balancing": host.read_int("/proc/sys/kernel/numa_balancing"),
        "command_line": _command_line(host),
        "firmware": " ".join(filter(None, firmware)) or None,
    }


def _command_line(host: Host) -> str | None:
    """The kernel's parameters that change what is measured, empty where none of them is set."""
    text = host.read("/proc/cmdline")
    if text is None:
        return None
    return " ".join(word for word in text.split() if _PARAMETERS.fullmatch(word))


def collect_slurm(host: Host) -> Facts | None:
    """Slurm's version and this job, or None where there is no Slurm."""
    version = host.run(["sinfo", "--version"]) or ""
    return job_limits.slurm_job(version.strip().removeprefix("slurm "))


def collect_build(host: Host, kernels: Path | None) -> Facts:
    """Compiler and flags of the own kernels, as the Makefile wrote them into build.json."""
    try:
        build = json.loads((kernels / "build.json").read_text(encoding="utf-8")) if kernels else {}
    except (OSError, ValueError):
        build = {}
    names = ("compiler", "flags", "isa_flags", "left_out", "io_uring")
    if build.get("compiler") is None:
        host.missing(
            "build.compiler", "compiling the kernels writes build.json beside the programs"
        )
    return {name: build.get(name) for name in names}


def collect_libraries(host: Host, programs: Iterable[str]) -> dict[str, str]:
    """Name -> file of the shared libraries that the programs load and results can depend on.

    The file's own name, behind all links, holds the version: ``libopenblas.so.0 ->
    .../libopenblasp-r0.3.21.so``.
    """
    libraries: dict[str, str] = {}
    for program in sorted(set(programs)):
        for name, path in _linked(host, program):
            if _LIBRARIES.match(name):
                libraries.setdefault(name, os.path.realpath(path))
    return dict(sorted(libraries.items()))


def _linked(host: Host, program: str) -> list[tuple[str, str]]:
    """(name, path) of a program's shared libraries as the loader finds them; none of a script."""
    text = host.run(["env", *_library_path(), "ldd", program]) or ""
    return re.findall(r"^\s*(\S+) => (/\S+) \(0x", text, re.MULTILINE)


def collect_blas(host: Host, hpl: str | None) -> Facts:
    """The BLAS that HPL was linked with, else the one a program would get: name, version, core type
    it has chosen.
    """
    linked = sorted(_linked(host, hpl)) if hpl else []
    libraries = [path for name, path in linked if _BLAS.match(name)]
    # libopenblas before libblas: the latter may be a mere shell around the former.
    libraries.sort(key=lambda path: Path(path).name.startswith("libblas"))
    for library in libraries or ["libopenblas.so.0", "libblis.so.4", "libblas.so.3"]:
        python = [sys.executable, "-I", "-S", "-c", _QUERY_BLAS, library]
        answer = host.run_json(["env", *_library_path(), *_ONE_THREAD, *python])
        if isinstance(answer, dict):
            if answer["core_type"] is None:
                how = f"{answer['name']} does not tell: each record of hpl has what its run said"
                host.missing("blas.core_type", how)
            file = os.path.realpath(library) if library.startswith("/") else library
            return {"library": file, **answer}
    host.missing(
        "blas.name",
        "no BLAS was found: install libopenblas0-pthread, or load the module that brings it",
    )
    return dict.fromkeys(("library", "name", "core_type", "config"))


def _library_path() -> list[str]:
    """Where modules have put libraries; tools run without the rest of the environment."""
    path = os.environ.get("LD_LIBRARY_PATH")
    return [f"LD_LIBRARY_PATH={path}"] if path else []
