"""HPL, the High-Performance Linpack: ``xhpl``, or Debian's ``hpcc``, which holds it among other
tests.

One process, threads in the BLAS. What HPL reaches is decided by the BLAS: the core type that
OpenBLAS chose is kept in ``Parsed.library``, and a warning says when an unoptimised BLAS was
linked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from peakmark import data
from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import common, hplsize
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)

HPCC_OUTPUT = "hpccoutf.txt"
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)

# Encoded variant, N, NB, P, Q, seconds, Gflop/s. HPL 2.0 prints 3 decimals of Gflops, 2.3 prints 4.
_NUMBER, _WORD = r"\s+([0-9.eE+-]+)", r"\s+([0-9]+)"
_RESULT = re.compile(rf"^W[RC]\S+{_WORD * 4}{_NUMBER * 2}\s*$", re.MULTILINE)
_RESIDUAL = re.compile(
    r"^\|\|Ax-b\|\|_oo.*=\s*([0-9.eE+-]+)\s*\.{3,}\s*(PASSED|FAILED)\s*$", re.MULTILINE
)
_CORE = re.compile(r"^Core: (\S+)\s*$", re.MULTILINE)
_REQUEST = "OPENBLAS_CORETYPE="
_SMALL_N = 10000
_FASTEST = 1e12  # flop/s of one core, several times what any has


class Hpl(common.Instrument):
    """cpu DP in op/s; one fused multiply-add counts as two, as in cpubench."""

    name = "hpl"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"cpu": ("DP",)}
    executables = ("xhpl", "hpcc")
    package = "hpcc"
    heading = "HPL"
    rows = (Coverage("cpu", ("DP",)),)
    options = ("budget_s", "nb")
    columns: ClassVar[Mapping[str, int]] = {"cpu": 1}
    homes: ClassVar[Mapping[str, str]] = {
        "hpcc": "https://hpcchallenge.org/hpcc/",
        "xhpl": "https://netlib.org/benchmark/hpl/",
    }

    def find(self, path: str) -> Tool:
        """Neither program has a version option; hpcc would run for minutes. The loader says whether
        it could start.
        """
        if not Path(path).is_file() or not os.access(path, os.X_OK):
            raise Unavailable("not-run", path=path, why="it is not a program file")
        for line in _linked(path).splitlines():
            if "not found" in line:
                raise Unavailable(
                    "not-run", path=path, why=f"shared library {line.split()[0]} is not found"
                )
        return Tool(
            name="hpcc" if Path(path).name.startswith("hpcc") else "xhpl",
            path=path,
            version="unknown",
        )

    def check(self, cell: Cell) -> None:
        super().check(cell)
        budget, nb = _budget(cell), _nb(cell)
        if hplsize.wall_seconds(2 * nb, cell.concurrency * _FASTEST, hpcc=False) > budget:
            raise Unavailable("budget", n=2 * nb, seconds=budget)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        budget, nb = _budget(cell), _nb(cell)
        hpcc = tool.name == "hpcc"
        cores = min(cell.concurrency, len(workspace.cpus))
        rate = hplsize.guess_rate(common.cpu_facts(workspace), common.isa_flags(workspace), cores)
        n = hplsize.choose_n(budget, rate, workspace.memory_bytes, nb, hpcc)
        if n is None:
            memory = workspace.memory_bytes
            raise Unavailable(
                "budget-here", program=tool.name, n=2 * nb, seconds=budget, memory=memory
            )
        environment = {
            **dict.fromkeys(THREAD_VARIABLES, str(cell.concurrency)),
            "OPENBLAS_VERBOSE": "2",  # prints the core type on stderr
            "TMPDIR": str(workspace.directory),  # Open MPI 5 leaves folders of its sessions there
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        # Set by env(1), so that the argv that parse is given says what was asked for.
        core = core_type(common.cpu_facts(workspace), common.isa_flags(workspace))
        request = ("env", f"{_REQUEST}{core}") if core else ()
        command = self.command(
            cell,
            (*common.pinned(workspace, cell.concurrency), *request, tool.path),
            max(budget, hplsize.wall_seconds(n, rate, hpcc)),
            env=environment,
            files={"hpccinf.txt" if hpcc else "HPL.dat": data.text("HPL.dat").format(n=n, nb=nb)},
            outputs=(HPCC_OUTPUT,) if hpcc else (),
        )
        return Invocation(command)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        hpcc = any(Path(word).name.startswith("hpcc") for word in done.argv)
        if hpcc and HPCC_OUTPUT not in done.files:
            raise ParseError(f"hpcc left no {HPCC_OUTPUT}: {common.excerpt(done.stderr)}")
        text = done.files[HPCC_OUTPUT] if hpcc else done.stdout
        rate, details = _read_hpl(text, hpcc)
        version = re.search(r"^HPLinpack (\S+)", text, re.MULTILINE)
        warnings = list(common.crowded(done.argv, cell.concurrency))
        if details["N"] < _SMALL_N:
            warnings.append(
                f"HPL solved N = {details['N']} only: its rate grows with N, raise budget_s for its best"
            )
        requested = next(
            (word.removeprefix(_REQUEST) for word in done.argv if word.startswith(_REQUEST)), None
        )
        library: dict[str, Any] = {"blas": "unknown", "core_type": None, "requested": requested}
        core = _CORE.search(done.stderr)
        if core is not None:
            library.update(blas="OpenBLAS", core_type=core.group(1))
        elif hpcc:
            library["blas"] = "reference BLAS or unknown"
            warnings.append(
                "OpenBLAS did not name its core type: with the reference BLAS HPL reaches a small part of its rate; "
                "apt-get install libopenblas0-pthread fixes it"
            )
        row = Measurement.of(cell, "rate", rate, "op/s", details, "DP")
        return Parsed((row,), version.group(1) if version else None, library, tuple(warnings))

    def estimate(self, cell: Cell) -> Cost:
        budget = _budget(cell)
        n = hplsize.choose_n(budget, 15e9 * cell.concurrency, 1 << 50, _nb(cell), hpcc=False)
        return Cost(seconds=budget + 5.0, memory_bytes=hplsize.memory_bytes(n or 0))


def _budget(cell: Cell) -> float:
    return common.option_number(cell, "budget_s", 60.0) or 60.0


def _nb(cell: Cell) -> int:
    nb = common.option_number(cell, "nb", 192)
    if nb is None or nb != int(nb) or not 16 <= nb <= 1024:
        raise ConfigError(
            f"cell {cell.id}: option nb={cell.options.get('nb')!r} is not allowed, use 16 to 1024, e.g. 192"
        )
    return int(nb)


def _linked(path: str) -> str:
    """What the dynamic loader would load for ``path``, without running it; empty for a static
    program or a script.
    """
    with Path(path).open("rb") as program:
        if program.read(4) != b"\x7fELF":
            return ""
    return common.ask("env", "LD_TRACE_LOADED_OBJECTS=1", path)


def core_type(cpu: Mapping[str, Any], flags: frozenset[str]) -> str | None:
    """OPENBLAS_CORETYPE where OpenBLAS 0.3.21 (Debian 12) does not know the CPU and takes narrow
    kernels, else None.

    It knows no AMD family 26 (Zen 5), there Haswell kernels ran at 0.6 of the rate of SkylakeX's,
    and no Intel server after Sapphire Rapids. On Zen 3 its own choice, Zen, was as fast as Haswell.
    Later versions take kernels for those CPUs whose DGEMM is SkylakeX's too.
    """
    if not {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags:
        return None
    vendor, family, model = cpu.get("vendor"), cpu.get("family"), cpu.get("model")
    if vendor == "AuthenticAMD" and isinstance(family, int) and family >= 25:
        return "SkylakeX"
    if vendor == "GenuineIntel" and family == 6 and isinstance(model, int) and model > 143:
        return "SkylakeX"
    return None


def _read_hpl(text: str, hpcc: bool) -> tuple[float, dict[str, Any]]:
    """(flop/s, details) of the one test in HPL's output.

    Errors: ParseError when it is not whole, its residual check failed, or the test was skipped.
    """
    # The other tests of hpcc print lines like HPL's.
    begin, end = (
        ("Begin of HPL section.", "End of HPL section.") if hpcc else ("HPLinpack", "End of Tests.")
    )
    start = text.find(begin)
    stop = text.find(end, start)
    if start < 0 or stop < 0 or (hpcc and "End of HPC Challenge tests." not in text[stop:]):
        raise ParseError(f"HPL did not come to its end: {common.excerpt(text)}")
    hpl = text[start:stop]
    counts = {
        what: int(match.group(1)) if (match := re.search(rf"([0-9]+) tests {what}", hpl)) else -1
        for what in ("completed and passed", "completed and failed", "skipped")
    }
    if counts["skipped"] > 0:
        raise ParseError(
            "HPL skipped its test because of illegal input values or too little memory"
        )
    residual = _RESIDUAL.findall(hpl)
    if counts["completed and failed"] > 0 or any(word == "FAILED" for _, word in residual):
        raise ParseError(
            f"HPL's solution is wrong: its residual check FAILED ({', '.join(v for v, _ in residual)})"
        )
    results = _RESULT.findall(hpl)
    if len(results) != 1 or len(residual) != 1 or list(counts.values()) != [1, 0, 0]:
        raise ParseError("HPL's output does not hold exactly one test with a passed residual check")
    n, nb, p, q = (common.whole(field, "HPL") for field in results[0][:4])
    seconds = common.number(results[0][4], "HPL: Time", zero=True)
    printed = common.number(results[0][5], "HPL: Gflops") * 1e9
    details: dict[str, Any] = {
        "N": n,
        "NB": nb,
        "P": p,
        "Q": q,
        "program": "hpcc" if hpcc else "xhpl",
    }
    details["residual"] = common.number(residual[0][0], "HPL: residual", zero=True)
    operations = (2 / 3) * n**3 + (3 / 2) * n**2
    # Time has two decimals only: half of the last one is what the two readings may differ by.
    if seconds > 0:
        common.agree(operations / seconds, printed, 0.006 / seconds + 1e-3, "HPL: Gflops and Time")
    if hpcc:
        exact = re.search(r"^HPL_time=([0-9.eE+-]+)\s*$", text, re.MULTILINE)
        if exact is None:
            raise ParseError("hpcc: HPL_time is missing in its summary")
        seconds = common.number(exact.group(1), "hpcc: HPL_time")
        common.agree(operations / seconds, printed, 1e-3, "hpcc: HPL_time and Gflops")
    exact_enough = hpcc or seconds >= 100
    return (operations / seconds if exact_enough else printed), {**details, "seconds": seconds}


INSTRUMENT = Hpl()
