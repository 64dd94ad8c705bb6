"""What the measuring programs are made of: how the own kernels were compiled, shared libraries, the
BLAS of HPL.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from peakmark.machine.host import Host

BUILD_FILE = "build.json"
# Libraries that a result can depend on; every program also has libc, libm and their like.
_TELLING = re.compile(
    r"^lib(blas|openblas|mkl|blis|flexiblas|armpl|essl|mpi|psm|ucp|uct|fabric|ibverbs|rdmacm|hwloc|numa|uring|aio"
    r"|likwid|iperf|gfortran|gomp|iomp)"
)
_BLAS = re.compile(r"^lib(openblas|mkl_rt|blis|flexiblas|armpl|essl|blas)")

# Run in a process of its own: a BLAS starts threads when it is loaded. Each question is asked of
# who can answer it.
_ASK = """
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


def collect_build(host: Host, kernels: Path | None) -> dict[str, Any]:
    """Compiler and flags of the own kernels, as the Makefile wrote them down beside the programs."""
    facts: dict[str, Any] = {
        "compiler": None,
        "flags": None,
        "isa_flags": None,
        "left_out": None,
        "io_uring": None,
    }
    try:
        read = json.loads((kernels / BUILD_FILE).read_text(encoding="utf-8")) if kernels else {}
    except (OSError, ValueError):
        read = {}
    facts.update({name: read[name] for name in facts if name in read})
    if facts["compiler"] is None:
        host.missing("build.compiler", "make kernels writes build.json beside the programs")
    return facts


def collect_libraries(host: Host, programs: Iterable[str]) -> dict[str, str]:
    """Name -> file of the shared libraries that the programs load and results can depend on.

    The file's own name, behind all links, holds the version: ``libopenblas.so.0 ->
    .../libopenblasp-r0.3.21.so``.
    """
    libraries: dict[str, str] = {}
    for name, path in _linked(
        host, sorted(program for program in set(programs) if _may_be_linked(host, program))
    ):
        if _TELLING.match(name):
            libraries.setdefault(name, os.path.realpath(path))
    return dict(sorted(libraries.items()))


def linked(host: Host, program: str) -> dict[str, str]:
    """Shared libraries of a program as the loader finds them: name -> path. Empty for scripts and
    static programs.
    """
    return dict(_linked(host, [program]))


def _linked(host: Host, programs: Sequence[str]) -> list[tuple[str, str]]:
    """All of several programs: ldd is a script, and is started once if it takes them all."""
    text = host.run(["env", *_search_path(), "ldd", *programs]) if programs else ""
    if text is None and len(programs) > 1:  # one of them is static, which ldd calls a failure
        return [pair for program in programs for pair in _linked(host, [program])]
    return re.findall(r"^\s*(\S+) => (/\S+) \(0x", text or "", re.MULTILINE)


def _may_be_linked(host: Host, program: str) -> bool:
    """Whether a program may have libraries: a script has none."""
    try:
        with host.path(program).open("rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return True


def collect_blas(host: Host, hpl: str | None) -> dict[str, Any]:
    """The BLAS that HPL was linked with, else the one a program would get: name, version, core type
    it has chosen.
    """
    facts: dict[str, Any] = {"library": None, "name": None, "core_type": None, "config": None}
    names = (
        [path for name, path in sorted(linked(host, hpl).items()) if _BLAS.match(name)]
        if hpl
        else []
    )
    # libopenblas before libblas: the latter may be a mere shell around the former.
    names.sort(key=lambda path: Path(path).name.startswith("libblas"))
    for library in names or ["libopenblas.so.0", "libblis.so.4", "libblas.so.3"]:
        threads = [
            f"{name}=1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")
        ]
        answer = host.run_json(
            ["env", *_search_path(), *threads, sys.executable, "-I", "-S", "-c", _ASK, library]
        )
        if isinstance(answer, dict):
            facts.update(
                answer, library=os.path.realpath(library) if library.startswith("/") else library
            )
            break
    if facts["name"] is None:
        host.missing(
            "blas.name",
            "no BLAS was found: install libopenblas0-pthread, or load the module that brings it",
        )
    elif facts["core_type"] is None:
        host.missing(
            "blas.core_type",
            f"{facts['name']} does not tell: each record of hpl has what its run said",
        )
    return facts


def _search_path() -> list[str]:
    """Where modules have put libraries; tools are run without the rest of the environment."""
    path = os.environ.get("LD_LIBRARY_PATH")
    return [f"LD_LIBRARY_PATH={path}"] if path else []
