"""HPL, the High-Performance Linpack, as ``xhpl`` or as one of the tests in Debian's ``hpcc``.

On one node HPL runs as one process, and the BLAS runs the threads. The cells of the workload HPL solve one
system on one or several nodes, with a process for each socket or core. The rate depends mostly on the
BLAS, so ``Parsed.library`` keeps the core type that OpenBLAS selected. A warning is added if an
unoptimised BLAS was linked.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from peakmark import data
from peakmark.catalogue import HPL, nodes_of_ranks
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.formatting import gigabytes
from peakmark.tools import base, common
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Instrument,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.common import Output
from peakmark.tools.programs import mpibench

HPCC_OUTPUT = "hpccoutf.txt"
# Environment variables from which BLAS libraries read their number of threads.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)

# Patterns of HPL's output. HPL 2.0 prints 3 decimals of Gflops, 2.3 prints 4.
# In order: the columns of the row with the result, this row, the line with the residual and its verdict, the lines
# with the numbers of tests, and these numbers (text -> number) after one passed test.
_COLUMNS = ("N", "NB", "P", "Q", "Time", "Gflops")
_ROW = re.compile(r"^W[RC]\S+[ \t]+(\S.*?)\s*$", re.MULTILINE)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo.*=\s*(\S+)\s*\.{3,}\s*(PASSED|FAILED)\s*$", re.MULTILINE)
_TESTS = re.compile(r"([0-9]+) tests (completed and passed|completed and failed|skipped)")
_ONE_PASSED = {"completed and passed": "1", "completed and failed": "0", "skipped": "0"}
# Start of the word in argv that sets OpenBLAS's core type.
_CORE_TYPE_SETTING = "OPENBLAS_CORETYPE="

# Instruction sets -> guessed flop per cycle of one core in double precision, the most first. They serve only
# to choose N. Limits are computed in limits/.
_FLOPS_PER_CYCLE = (
    ({"avx512f"}, 24.0),
    ({"avx2", "fma"}, 16.0),
    ({"avx"}, 8.0),
    ({"sse2"}, 4.0),
    ({"neon"}, 8.0),
    (set[str](), 2.0),
)
_EFFICIENCY = 0.65
"""Guessed share of the peak rate that HPL reaches."""
_CLOCK_HZ = 2.5e9
"""Clock in Hz that is assumed if the machine facts have none."""
PLANNED_RATE = 15e9
"""Rate of a core in flop/s that is assumed when a cell is planned, before its node is known."""
_START_S = 0.5
"""Seconds that the program takes to start."""
_MEMORY_SHARE = 0.8
"""Share of the memory that the matrix takes if no option sets it, as HPL's FAQ recommends."""

# hpcc always runs all its tests. Times of the others, measured with hpcc 1.5.0 on a 2-core Zen 3:
# - Random access updates a table of a power of two, about half the matrix, with 4 updates per word.
#   Twice through MPI: 0.14 us per update, at most 60 s. Four times locally: 35 ns per update.
# - The time of all other tests grows like that of HPL.
# Modelled seconds, with measured ones in brackets: N = 1000: 1.6 (1.0), 2000: 5.0 (3.2),
# 4000: 20 (14 to 18), 8000: 86 (85).
_MPI_UPDATE_S, _MPI_LIMIT_S, _LOCAL_UPDATE_S, _OTHER_TESTS = 1.4e-7, 60.0, 3.5e-8, 1.6
_UPDATES_ON_NODES_S = 2 * 1.1 * _MPI_LIMIT_S
"""Longest time, in seconds, of both tests of random access between the processes of several nodes, and a margin."""


class Hpl(Instrument):
    """HPL. It measures cpu DP and mpi HPL in op/s. A fused multiply-add counts as two, as in cpubench."""

    name = "hpl"
    rows = (Coverage("cpu", ("DP",)),)
    heading = "HPL"
    package = "hpcc"
    executables = ("xhpl", "hpcc")
    spack = "hpl"
    build = (
        "curl -O https://www.netlib.org/benchmark/hpl/hpl-2.3.tar.gz && tar xf hpl-2.3.tar.gz"
        " && cd hpl-2.3 && ./configure && make  # needs MPI and a BLAS"
    )
    options = ("budget_s", "nb", "memory", "nodes", "ranks")
    # They are keys of the cells of the workload HPL, which a separate function plans.
    unused = frozenset(["nodes", "memory", "ranks"])

    def find(self, path: str) -> Tool:
        """Return the program, after a check that its shared libraries are found.

        The program is not run: neither xhpl nor hpcc has a version option, and hpcc would run for minutes.
        """
        if not Path(path).is_file() or not os.access(path, os.X_OK):
            raise base.not_executable(path, "it is not a program file")
        library = common.found(r"^\s*(\S+).*not found", _linked(path))
        if library is not None:
            raise base.not_executable(path, f"shared library {library} is not found")
        name = "xhpl"
        if is_hpcc(path):
            name = "hpcc"
        return Tool(name, path, "unknown")

    def nodes(self, cell: Cell) -> int:
        return nodes_of_ranks(cell.variant)

    def check(self, cell: Cell) -> None:
        # ``rows`` lists only what a kernel of peakmark measures too. The workload HPL is not among it, so that the base
        # class would refuse it.
        if cell.workload != HPL:
            super().check(cell)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        hpcc = tool.name == "hpcc"
        # Choose the largest N that the nodes solve in the time and in their memory.
        memory = min(workspace.memory_bytes, node_bytes(cell))
        cores = min(cell.concurrency, len(workspace.cpus))
        rate = guess_rate(workspace.cpu, workspace.isa, cores)
        n = size_of_system(cell, rate, memory, hpcc=hpcc)
        if n is None:
            raise Unavailable(
                f"HPL in {tool.name} cannot solve even N = {2 * _nb(cell)} in budget_s = {_budget(cell):g} s"
                f" and {gigabytes(memory)} of memory",
                "raise budget_s or lower nb",
            )
        # hpcc reads its settings from another file than xhpl, and writes its results into a file.
        settings = "HPL.dat"
        outputs: tuple[str, ...] = (settings,)
        if hpcc:
            settings = "hpccinf.txt"
            outputs = (settings, HPCC_OUTPUT)
        rows, columns = process_grid(self.nodes(cell) * len(_places(cell)))
        text = data.text("HPL.dat").format(n=n, nb=_nb(cell), p=rows, q=columns)
        files = {settings: text}
        # Set the core type with env(1), so that parse finds it in argv.
        core = core_type(workspace.cpu, workspace.isa)
        words = [] if core is None else [f"{_CORE_TYPE_SETTING}{core}"]
        # The workload HPL starts a process for each socket or core, on one or several nodes; DP starts one process.
        if cell.workload == HPL:
            return self._of_ranks(cell, [*words, tool.path], files, outputs)
        environment = {
            **_variables(cell.concurrency),
            "TMPDIR": str(workspace.directory),  # Open MPI 5 leaves folders of its sessions there
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        # One process on the CPUs of the cell, whose BLAS runs a thread on each.
        argv = [*common.pinned(workspace, cell.concurrency)]
        if words:
            argv += ["env", *words]
        argv.append(tool.path)
        return self.command(cell, argv, env=environment, files=files, outputs=outputs)

    def _of_ranks(
        self, cell: Cell, words: list[str], files: Mapping[str, str], outputs: tuple[str, ...]
    ) -> Command:
        """Return the command of the processes that srun or mpirun starts on each node, one for each socket or core.

        Args:
            cell: cell of the workload HPL.
            words: setting of OpenBLAS's core type (NAME=VALUE), if any, and the program.
            files, outputs: attributes of the command.
        """
        places = _places(cell)
        # mpirun passes no variables to other nodes, so that env(1) sets them there.
        variables = [f"{name}={value}" for name, value in _variables(_threads(places)).items()]
        argv = ["sh", "-c", common.ON_CPUS_OF_RANK, ":".join(places), "env", *variables, *words]
        return self.command(cell, argv, files=files, outputs=outputs, ranks=len(places))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        hpcc = any(map(is_hpcc, done.argv))
        text = _printed(done, hpcc)
        rate, details = _read_hpl(text, hpcc)
        if cell.workload == HPL:
            places = _places(cell)
            details |= {"rank_cpus": " ".join(places), "threads": _threads(places)}
        warnings: list[str] = []
        if common.is_too_small(details):
            warnings.append(
                f"HPL solved N = {details['N']} in {details['seconds']:.2g} s; a comparison with the limit"
                f" needs N = {common.LEAST_N} and {common.LEAST_SECONDS:g} s: raise budget_s"
                + (", or install xhpl, as hpcc's other tests take most of it" if hpcc else "")
            )
        # Find the core type that OpenBLAS was asked for, and the one that it printed.
        requests = [word for word in done.argv if word.startswith(_CORE_TYPE_SETTING)]
        core = common.found(r"^Core: (\S+)\s*$", done.stderr)
        library: dict[str, Any] = {"blas": "unknown", "core_type": None, "requested": None}
        if requests:
            library["requested"] = requests[0].removeprefix(_CORE_TYPE_SETTING)
        if core is not None:
            library |= {"blas": "OpenBLAS", "core_type": core}
        elif hpcc:
            # Distributions build hpcc with any BLAS. Who builds xhpl has chosen one, which prints no core type.
            library["blas"] = "reference BLAS or unknown"
            warnings.append(
                "OpenBLAS did not print its core type: with the reference BLAS, HPL reaches a small part of its rate; "
                "install an optimised BLAS: apt-get install libopenblas0-pthread"
            )
        version = common.found(r"^HPLinpack +(\S+)", text)
        row = Measurement.of(cell, "rate", rate, details)
        return Parsed((row,), version, library, tuple(warnings))

    def estimate(self, cell: Cell) -> Cost:
        # The plan does not know which of the two programs a node has. Assume the more expensive one: in a limited time
        # xhpl, which solves the larger N; otherwise hpcc, whose other tests take time too.
        nodes, rate = self.nodes(cell), PLANNED_RATE * cell.concurrency
        is_timed = _budget(cell) < math.inf
        n = size_of_system(cell, rate, node_bytes(cell), hpcc=not is_timed) or 0
        seconds = (
            _budget(cell) if is_timed else wall_seconds(n, rate * nodes, hpcc=True, nodes=nodes)
        )
        # An element has 8 bytes. Add a fifth of the matrix for other memory, and 5 s for start and end.
        cost = Cost(
            fixed_s=0.0, work_s=seconds + 5.0, memory_bytes=math.ceil(8 * n * n * 1.2 / nodes)
        )
        if cell.workload != HPL:
            return cost
        if nodes == 1:
            return replace(cost, fixed_s=mpibench.START_S)
        # Each process sends this number of bits: a part of the matrix, whose elements have 64. One process is assumed
        # on each node. Source: HPL Scalability Analysis,
        # www.netlib.org/benchmark/hpl/scalability.html.
        # _UPDATES_ON_NODES_S is the time of hpcc's updates through MPI, which ``wall_seconds`` leaves out.
        rows, columns = process_grid(nodes)
        sent = 64.0 * n * n * (3 * rows + columns) / (2 * rows * columns)
        return replace(cost, fixed_s=mpibench.START_S + _UPDATES_ON_NODES_S, wire_bits=sent)


def is_hpcc(path: str) -> bool:
    """Return whether a program is hpcc, such as ``hpcc.openmpi``, and not xhpl."""
    return Path(path).name.startswith("hpcc")


def _budget(cell: Cell) -> float:
    """Return the wall time in seconds for which N is chosen.

    By default it is 60 s. If only the option ``memory`` is set, it is infinite.
    """
    usual = math.inf if "memory" in cell.options else 60.0
    return common.option_number(cell, "budget_s") or usual


def node_bytes(cell: Cell) -> int:
    """Return the memory of the smallest node in bytes, which the plan writes into the cell if it knows the nodes.

    If it does not, the result is more than any node has, so that it limits nothing.
    """
    return int(common.option_number(cell, "node_bytes") or 1 << 50)


def _places(cell: Cell) -> list[str]:
    """Return the CPUs of each process on a node, each as a text such as ``0,1``.

    If HPL runs as one process, the result is one empty text.
    """
    return str(cell.options.get("cpus") or "").split(":")


def _threads(places: list[str]) -> int:
    """Return the number of threads that the BLAS of each process runs.

    It is the number of CPUs of the process with the fewest CPUs.
    """
    return min(place.count(",") + 1 for place in places)


def _variables(threads: int) -> dict[str, str]:
    """Return the environment variables of a process whose BLAS runs ``threads`` threads."""
    return {
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "OPENBLAS_VERBOSE": "2",  # prints the core type on stderr
    }


def _nb(cell: Cell) -> int:
    """Return HPL's block size NB: 192 unless an option sets it."""
    return int(common.option_number(cell, "nb") or 192)


def process_grid(processes: int) -> tuple[int, int]:
    """Return the numbers of rows P and of columns Q of the most nearly square grid, P at most Q."""
    rows = math.isqrt(processes)
    while processes % rows:
        rows -= 1
    return rows, processes // rows


def size_of_system(cell: Cell, rate: float, memory: int, hpcc: bool) -> int | None:
    """Return the largest N of a cell; None if the time or the memory is too short for two blocks.

    The plan calls this function too, with a guessed rate, because it does not know the processors.

    Args:
        cell: the cell.
        rate: expected flop/s of one node.
        memory: bytes of memory of the smallest node.
        hpcc: whether hpcc runs, whose other tests take time too.
    """
    nodes = nodes_of_ranks(cell.variant)
    share = common.option_number(cell, "memory") or _MEMORY_SHARE
    room = int(share * memory * nodes)
    return choose_n(_budget(cell), rate * nodes, room, _nb(cell), hpcc, nodes)


def guess_rate(cpu: Mapping[str, Any], flags: frozenset[str], threads: int) -> float:
    """Return the flop/s that HPL is expected to reach on ``threads`` cores.

    Args:
        cpu: machine facts of the processor, for its clock.
        flags: instruction sets of the processor.
        threads: number of cores.
    """
    clocks = cpu.get("clock_hz") or {}
    # Under load, cores are assumed to run at the nominal clock, which is below the maximum.
    clock = clocks.get("nominal") or clocks.get("observed") or clocks.get("maximum") or _CLOCK_HZ
    # The last entry needs nothing, so that it fits every processor.
    per_cycle = next(flops for needs, flops in _FLOPS_PER_CYCLE if needs <= flags)
    return float(threads * clock * per_cycle * _EFFICIENCY)


def wall_seconds(n: int, rate: float, hpcc: bool, nodes: int = 1) -> float:
    """Return the wall time in seconds for a matrix of n x n at ``rate`` flop/s, which ``nodes`` share.

    With ``hpcc`` the time includes its other tests.
    """
    solution = solution_seconds(n, rate)
    # The matrix is generated in 40 ns an element: once for the solution and once for the check.
    generate = 4e-8 * n * n / nodes
    if not hpcc:
        return _START_S + solution + generate
    # Add hpcc's other tests, whose measured times are at _MPI_UPDATE_S. RandomAccess updates a table: the largest
    # power of two in words up to half the matrix, with 4 updates per word. Margins: 5 % for the table, 10 % for
    # the updates through MPI.
    updates = 4.0 * 2.0 ** math.floor(math.log2(max(n * n / 2 * 1.05, 2)))
    # The test through MPI runs twice, the local one four times. Between nodes, updates through MPI wait for the
    # network and may take the longest time at any N. ``estimate`` adds it, and here they count for one node only.
    through_mpi = 2 * 1.1 * min(updates * _MPI_UPDATE_S, _MPI_LIMIT_S) if nodes == 1 else 0.0
    random_access = through_mpi + 4 * updates * _LOCAL_UPDATE_S / nodes
    # The time of the other tests, such as PTRANS and DGEMM, grows like that of the solution. They generate matrices too.
    return _START_S + solution * (1 + _OTHER_TESTS) + 3 * generate + random_access


def solution_seconds(n: int, rate: float) -> float:
    """Return the time in seconds in which a system of n equations is solved at ``rate`` flop/s."""
    return _operations(n) / rate


def choose_n(
    budget_s: float, rate: float, room: int, nb: int, hpcc: bool, nodes: int = 1
) -> int | None:
    """Return the largest N of at least two blocks that fits the time and the memory; None if there is none.

    Args:
        budget_s: wall time in seconds.
        rate: expected flop/s.
        room: bytes that the matrix may take.
        nb: block size. N is a multiple of it.
        hpcc: whether hpcc runs, whose other tests take time too.
        nodes: number of nodes.
    """
    # An element of the matrix has 8 bytes. The wall time grows with N, so a binary search finds the largest N.
    most = int(math.sqrt(room / 8)) // nb
    sizes = range(nb, (most + 1) * nb, nb)
    # The number of sizes that fit. The second smallest one has two blocks.
    fitting = bisect_right(sizes, budget_s, key=lambda n: wall_seconds(n, rate, hpcc, nodes))
    if fitting < 2:
        return None
    return sizes[fitting - 1]


def _operations(n: int) -> float:
    """Return the operations for a system of n equations, as HPL counts them for its Gflops."""
    return 2 / 3 * n**3 + 1.5 * n**2


def _linked(path: str) -> str:
    """Return the dynamic loader's list of libraries for a program, without running the program.

    The text is empty for a static program or a script.
    """
    with Path(path).open("rb") as program:
        if program.read(4) != b"\x7fELF":
            return ""
    return base.ask("env", "LD_TRACE_LOADED_OBJECTS=1", path)


def core_type(cpu: Mapping[str, Any], flags: frozenset[str]) -> str | None:
    """Return the OPENBLAS_CORETYPE to set, if OpenBLAS may select kernels with narrow vectors; otherwise None.

    OpenBLAS 0.3.21 (Debian 12) selects such kernels for CPUs that it does not know: AMD family 26
    (Zen 5) and Intel servers after Sapphire Rapids. On Zen 5, Haswell kernels ran at 0.6 times the
    rate of SkylakeX kernels. On Zen 3 the default, Zen, was as fast as Haswell. Later versions select
    kernels with the DGEMM of SkylakeX for these CPUs.
    """
    family = cpu.get("family") or 0
    model = cpu.get("model") or 0
    # Family 25 includes Zen 4, the first AMD design with AVX-512. Model 143 is Sapphire Rapids.
    new_amd = cpu.get("vendor") == "AuthenticAMD" and family >= 25
    new_intel = cpu.get("vendor") == "GenuineIntel" and family == 6 and model > 143
    wide = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags
    if wide and (new_amd or new_intel):
        return "SkylakeX"
    return None


def _printed(done: Completed, hpcc: bool) -> str:
    """Return the text with HPL's result: the standard output of xhpl, or the file that hpcc writes.

    Errors: ParseError if this file is missing.
    """
    if not hpcc:
        return done.stdout
    if HPCC_OUTPUT not in done.files:
        raise ParseError(f"hpcc left no {HPCC_OUTPUT}: {common.excerpt(done.stderr)}")
    return done.files[HPCC_OUTPUT]


def _read_hpl(text: str, hpcc: bool) -> tuple[float, dict[str, Any]]:
    """Parse HPL's output, and return (rate in flop/s, details of the measurement: name -> value).

    Raises:
        ParseError: the output is incomplete, or the test failed or was skipped.
    """
    output = _one_test(_section(text, hpcc))
    # Read the values of the row, and check them against each other.
    details: dict[str, Any] = {name: output.whole(name) for name in ("N", "NB", "P", "Q")}
    details["program"] = "xhpl"
    if hpcc:
        details["program"] = "hpcc"
    details["residual"] = output.number("residual", allow_zero=True)
    operations = _operations(details["N"])
    seconds, rate = output.number("Time", allow_zero=True), output.number("Gflops") * 1e9
    half_digit = 0.006  # rounding error of Time, which has two decimals: half a digit and a little
    if hpcc:
        summary = dict(re.findall(r"^(HPL_time)=(\S+)\s*$", text, re.MULTILINE))
        seconds, half_digit = Output("hpcc", summary).number("HPL_time"), 0.0
    if seconds > 0:
        tolerance = half_digit / seconds + 1e-3
        common.agree(operations / seconds, rate, tolerance, "HPL: Gflops and time")
    # Take the rate from the time if this is more exact: hpcc's HPL_time has six digits. From 100 s on, Time
    # has at least as many digits as Gflops, which has four or five.
    if hpcc or seconds >= 100:
        rate = operations / seconds
    return rate, {**details, "seconds": seconds}


def _section(text: str, hpcc: bool) -> str:
    """Return HPL's part of the output: other tests of hpcc print similar lines.

    Raises:
        ParseError: the output is incomplete.
    """
    begin, end = "HPLinpack ", r"End of Tests\."
    if hpcc:
        begin, end = r"Begin of HPL section\.", r"End of HPL section\."
    section = re.search(f"{begin}.*?{end}", text, re.DOTALL)
    if section is None or (hpcc and "End of HPC Challenge tests." not in text[section.end() :]):
        raise ParseError(f"HPL did not finish: {common.excerpt(text)}")
    return section[0]


def _one_test(hpl: str) -> Output:
    """Return the values of HPL's only test: column -> value as text, and its ``residual``.

    Raises:
        ParseError: there is not exactly one test, or it failed or was skipped.
    """
    # Outcome -> number of tests as text, such as ``skipped`` -> ``0``.
    tests = {what: count for count, what in _TESTS.findall(hpl)}
    if tests.get("skipped", "0") != "0":
        raise ParseError(
            "HPL skipped its test because of illegal input values or too little memory"
        )
    residuals, results = _RESIDUAL.findall(hpl), [row.split() for row in _ROW.findall(hpl)]
    if any(verdict == "FAILED" for _, verdict in residuals):
        raise ParseError(f"HPL's solution is wrong: its residual check FAILED ({residuals[0][0]})")
    if len(results) != 1 or len(residuals) != 1 or tests != _ONE_PASSED:
        raise ParseError("HPL's output does not hold exactly one test with a passed residual check")
    if len(results[0]) != len(_COLUMNS):
        raise ParseError(
            f"HPL's row has other columns than {' '.join(_COLUMNS)}: {' '.join(results[0])!r}"
        )
    output = Output("HPL", dict(zip(_COLUMNS, results[0], strict=True)))
    output["residual"] = residuals[0][0]
    return output


INSTRUMENT = Hpl()
