"""``python -m benchmarks.kernels``: measure, print, write. See docs/performance.md."""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from benchmarks.facts import facts_in_short
from benchmarks.kernels import namespaces, neighbours, pairs, presets, table
from benchmarks.kernels.pairs import GROUPS, Plan, Row
from benchmarks.kernels.run import Runner
from benchmarks.kernels.table import Line
from peakmark import machine
from peakmark.errors import PeakmarkError
from peakmark.files import write_text
from peakmark.instruments import REGISTRY
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.reasons import Unavailable

FEWEST = 5
MOST = 3
"""Times as many turns at most, where something else on the cores spoiled some of those asked for.
"""
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="make bench-kernels ARGS=...",
        description="The own kernels beside the reference tools, in turn: ours, reference, ours, reference, ...",
    )
    parser.add_argument("--only", metavar="TEXT", action="append", default=[], help=f"{', '.join(GROUPS)}, or rows whose"
                        " name begins so: 'cpu', 'memory LAT', 'disk RR'; may be repeated")  # fmt: skip
    parser.add_argument(
        "--pairs", type=int, default=FEWEST, metavar="N", help=f"pairs per row, {FEWEST} or more"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.5,
        metavar="S",
        help="of one run, where a tool lets us choose",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the telling rows only: some minutes instead of an hour",
    )
    parser.add_argument("--preset", metavar="NAME", help="the cpu and memory cells of a preset, e.g. quick, instead of the"
                        " rows of this benchmark")  # fmt: skip
    parser.add_argument("--settle", type=float, default=0.0, metavar="S",
                        help="before each turn wait up to S seconds until others use less than 5 %% of the machine")  # fmt: skip
    parser.add_argument("--per-cpu-time", action="store_true", help="ratios of what each did in the time in which it had its"
                        " CPUs: for rows of the CPU and its caches on a machine that others use")  # fmt: skip
    parser.add_argument("--pmbw", metavar="PATH", help="where pmbw is, if not on PATH")
    parser.add_argument("--scratch", type=Path, default=Path(os.environ.get("TMPDIR") or "/tmp"), metavar="DIRECTORY",  # noqa: S108
                        help="on the disk to be measured (default: $TMPDIR, else /tmp)")  # fmt: skip
    parser.add_argument("--kernels", type=Path, default=Path("build/kernels"), metavar="DIRECTORY")
    parser.add_argument(
        "--out", type=Path, default=Path("results/bench-kernels"), metavar="DIRECTORY"
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="name the rows and how long they will take, measure nothing",
    )
    chosen = parser.parse_args(words)
    if chosen.pairs < FEWEST:
        parser.error(
            f"--pairs {chosen.pairs}: at least {FEWEST} are needed to say anything of a median"
        )
    if chosen.seconds <= 0:
        parser.error(f"--seconds {chosen.seconds:g}: give a time above 0, e.g. 0.5")
    return chosen


def select(rows: Sequence[Row], only: Sequence[str], quick: bool) -> list[Row]:
    """The rows asked for. Errors: Unavailable when a word of ``only`` fits none."""
    for word in only:
        if not any(f"{row.group} {row.name}".startswith(word) for row in rows):
            raise Unavailable(
                f"--only {word!r} fits no row: use {', '.join(GROUPS)}, or see --list"
            )
    named = [
        row
        for row in rows
        if not only or any(f"{row.group} {row.name}".startswith(word) for word in only)
    ]
    return [row for row in named if row.quick or not quick]


def expected_seconds(rows: Sequence[Row], turns: int) -> float:
    """Expected time: each cell of a bundle once per turn."""
    cells = {
        (row.bundle, cell.spec(), row.route): cell
        for row in rows
        for cell in (row.ours, row.reference)
        if cell
    }
    return turns * sum(REGISTRY[cell.instrument].estimate(cell).seconds for cell in cells.values())


def measure(
    runner: Runner, rows: Sequence[Row], turns: int, settle_s: float, lines: list[Line]
) -> None:
    """All rows, bundle by bundle, into ``lines``; progress on stderr. A peak that others kept the
    kernel from is no pair: there are more turns then.
    """
    for bundle, members in itertools.groupby(rows, key=lambda row: row.bundle):
        own = [Line(row) for row in members]
        lines += own
        started = time.monotonic()
        for turn in range(MOST * turns):
            if turn >= turns and not any(_spoiled(line, turns) for line in own):
                break
            neighbours.settle(settle_s, len(runner.cpus))
            try:
                results = runner.turn([line.row for line in own])
            except PeakmarkError as error:
                for line in own:
                    line.note = line.note or str(error)
                if isinstance(error, Unavailable):
                    break
                continue
            for line, (pair, wrong) in zip(own, results, strict=True):
                line.note = line.note or wrong
                if not wrong.startswith("n/a"):
                    line.pairs.append(pair)
        ratios = ", ".join(
            f"{line.row.against} {found.ratio:.3f}"
            if (found := line.comparison)
            else f"{line.row.against} {line.note}"
            for line in own
        )
        print(
            f"{bundle}: {ratios} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True
        )


def _spoiled(line: Line, turns: int) -> bool:
    """Whether a peak has fewer pairs than were asked for."""
    whole = line.comparison.n if line.comparison else 0
    return line.row.against == pairs.PEAK and bool(line.pairs) and whole < turns


def _ended(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    """Exit code 0 also when targets are missed: the table says so."""
    chosen = arguments()
    signal.signal(signal.SIGTERM, _ended)  # so that namespaces and files are removed
    facts = machine.collect(chosen.scratch, cpubench=chosen.kernels / "cpubench")
    cpus = facts["limits"]["cpus_allowed"]
    small = not HUGE_PAGES.exists() or "[always]" not in HUGE_PAGES.read_text(encoding="ascii")
    if chosen.preset:
        found = presets.rows(
            chosen.preset, topology.read(Host(), cpus), cpus, facts["limits"]["memory_bytes"]
        )
    else:
        found = pairs.rows(Plan(chosen.seconds, len(cpus), small))
    rows = select(found, chosen.only, chosen.quick)
    if chosen.list:
        for row in rows:
            print(f"{row.group} {row.name}: against {row.against}, {row.target}")
    print(
        f"{len(rows)} rows, about {expected_seconds(rows, chosen.pairs) / 60:.0f} minutes",
        file=sys.stderr,
    )
    if chosen.list:
        return 0
    paths = {"pmbw": chosen.pmbw} if chosen.pmbw else {}
    short = facts_in_short(facts)
    with ExitStack() as stack:
        runner = Runner(
            chosen.kernels, chosen.scratch, facts, paths, per_cpu_time=chosen.per_cpu_time
        )
        if any(row.route == "namespaces" for row in rows):
            try:
                runner.namespaces = stack.enter_context(namespaces.joined())
            except Unavailable as error:
                print(f"no rows between namespaces: {error}", file=sys.stderr)
        lines: list[Line] = []
        stopped = False
        try:
            measure(runner, rows, chosen.pairs, chosen.settle, lines)
        except (KeyboardInterrupt, SystemExit):
            stopped = True  # what was measured until then is shown and kept
    tools = {name: tool.version for name, tool in sorted(runner.tools.items())}
    name = datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    folder = chosen.out / name
    folder.mkdir(parents=True)
    text = table.markdown(lines)
    write_text(folder / "summary.csv", table.summary_csv(lines, short))
    write_text(folder / "pairs.csv", table.pairs_csv(lines))
    write_text(folder / "table.md", text)
    write_text(
        folder / "machine.json",
        json.dumps({**facts, "bench_tools": tools}, indent=1, sort_keys=True) + "\n",
    )
    print(text)
    print(table.legend(lines))
    print(", ".join(f"{key} {value}" for key, value in {**short, **tools}.items()))
    print(f"written to {folder}")
    return 130 if stopped else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PeakmarkError as failure:
        sys.exit(f"bench-kernels: {failure}")
