"""``python -m benchmarks.kernels``: measure, print, write. See docs/performance.md."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks import results
from benchmarks.kernels import namespaces, pairs, table
from benchmarks.kernels.pairs import GROUPS, Plan, Row
from benchmarks.kernels.run import Runner
from benchmarks.kernels.table import Line
from peakmark.errors import PeakmarkError, Unavailable
from peakmark.files import write_text
from peakmark.machine.facts import collect

FEWEST = 5
MOST = 3
"""Times as many turns at most, where something else on the cores spoiled some of those asked for."""
ELSEWHERE = ("pmbw", "loaded-latency", "core-to-core-latency")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="make bench-kernels ARGS=...",
        description="The own kernels beside the reference tools, in turn: ours, reference, ours, ...",
    )
    add = parser.add_argument
    add("--only", metavar="TEXT", action="append", default=[], help=f"{', '.join(GROUPS)}, or rows"
        " whose name begins so: 'cpu', 'memory LAT', 'disk RR'; may be repeated")  # fmt: skip
    add("--pairs", type=int, default=FEWEST, metavar="N", help=f"pairs per row, {FEWEST} or more")
    add("--seconds", type=float, default=0.5, metavar="S", help="of one run, where a tool has it")
    add("--quick", action="store_true", help="the telling rows only: minutes instead of an hour")
    for name in ELSEWHERE:
        add(f"--{name}", metavar="PATH", help=f"where {name} is, if not on PATH")
    add("--scratch", type=Path, default=Path(os.environ.get("TMPDIR") or "/tmp"), metavar="DIRECTORY",  # noqa: S108
        help="on the disk to be measured (default: $TMPDIR, else /tmp)")  # fmt: skip
    add("--kernels", type=Path, default=Path("build/kernels"), metavar="DIRECTORY")
    add("--out", type=Path, default=Path("results/bench-kernels"), metavar="DIRECTORY")
    add("--list", action="store_true", help="name the rows, measure nothing")
    chosen = parser.parse_args(words)
    if chosen.pairs < FEWEST:
        parser.error(f"--pairs {chosen.pairs}: allowed is {FEWEST} or more")
    if chosen.seconds <= 0:
        parser.error(f"--seconds {chosen.seconds:g}: give a time above 0, e.g. 0.5")
    return chosen


def select(rows: Sequence[Row], only: Sequence[str], quick: bool) -> list[Row]:
    """The rows asked for. Errors: Unavailable when a word of ``only`` fits none."""
    names = [f"{row.group} {row.name}" for row in rows]
    for word in only:
        if not any(name.startswith(word) for name in names):
            raise Unavailable(
                f"--only {word!r} fits no row: use {', '.join(GROUPS)}, or see --list"
            )
    wanted = tuple(only) or ("",)
    named = [row for row, name in zip(rows, names, strict=True) if name.startswith(wanted)]
    return [row for row in named if row.quick or not quick]


def measure(runner: Runner, rows: Sequence[Row], turns: int, lines: list[Line]) -> None:
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
            try:
                found = runner.turn([line.row for line in own])
            except PeakmarkError as error:
                for line in own:
                    line.note = line.note or str(error)
                if isinstance(error, Unavailable):
                    break
                continue
            for line, (pair, wrong) in zip(own, found, strict=True):
                line.note = line.note or wrong
                if not wrong.startswith("n/a"):
                    line.pairs.append(pair)
        ratios = []
        for line in own:
            ratio = f"{line.ratios.median:.3f}" if line.ratios else line.note
            ratios.append(f"{line.row.against} {ratio}")
        took = time.monotonic() - started
        print(f"{bundle}: {', '.join(ratios)} ({took:.0f} s)", file=sys.stderr, flush=True)


def _spoiled(line: Line, turns: int) -> bool:
    """Whether a peak has fewer pairs than were asked for."""
    return line.row.against == pairs.PEAK and bool(line.pairs) and line.values["n"] < turns


def main() -> int:
    """Exit code 0 also when targets are missed: the table says so."""
    chosen = arguments()
    facts = collect(chosen.scratch, cpubench=chosen.kernels / "cpubench")
    cpus = facts["limits"]["cpus_allowed"]
    small = not HUGE_PAGES.exists() or "[always]" not in HUGE_PAGES.read_text(encoding="ascii")
    levels = [cache for cache in facts["cpu"]["caches"] if cache["type"] != "instruction"]
    caches = tuple(sorted(int(cache["size"]) for cache in levels))
    plan = Plan(chosen.seconds, len(cpus), small, caches)
    rows = select(pairs.rows(plan), chosen.only, chosen.quick)
    print(f"{len(rows)} rows", file=sys.stderr)
    if chosen.list:
        for row in rows:
            print(f"{row.group} {row.name}: against {row.against}, {row.target}")
        return 0
    named = {name: getattr(chosen, name.replace("-", "_")) for name in ELSEWHERE}
    paths = {name: path for name, path in named.items() if path}
    with ExitStack() as stack:
        runner = Runner(chosen.kernels, chosen.scratch, facts, paths)
        if any(row.route == "namespaces" for row in rows):
            try:
                runner.namespaces = stack.enter_context(namespaces.joined())
            except Unavailable as error:
                print(f"no rows between namespaces: {error}", file=sys.stderr)
        lines: list[Line] = []
        stopped = False
        try:
            measure(runner, rows, chosen.pairs, lines)
        except (KeyboardInterrupt, SystemExit):
            stopped = True  # what was measured until then is shown and kept
    tools = {name: tool.version for name, tool in sorted(runner.tools.items())}
    versions = ", ".join(f"{name} {version}" for name, version in tools.items())
    known = {**facts, "bench_tools": tools}
    text, legend = table.markdown(lines), table.legend(lines)
    folder = results.publish(chosen.out, known, text, legend, versions)
    write_text(folder / "summary.csv", table.to_csv(lines))
    return 130 if stopped else 0


if __name__ == "__main__":
    results.run(main, "bench-kernels")
