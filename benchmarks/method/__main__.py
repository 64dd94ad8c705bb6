"""``python -m benchmarks.method``: measure, print, write. See docs/method.md."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from benchmarks import results
from benchmarks.method import equal, fleets, promises, same, table, verdicts
from benchmarks.method.faults import FAULTS
from benchmarks.method.sides import Bench
from peakmark import machine
from peakmark.errors import PeakmarkError

DRAWS = 300
SIZES = (6, 10)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="make bench-method ARGS=...",
        description="Like against like must show no difference; faults must be found and named.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="fewer rows and repetitions: half a minute")
    add("--only", choices=["same", "faults", "promises", "fleets"], help="one of the parts")
    add("--scratch", type=Path, default=Path(os.environ.get("TMPDIR") or "/tmp"), metavar="DIRECTORY",  # noqa: S108
        help="on the disk to be measured (default: $TMPDIR, else /tmp)")  # fmt: skip
    add("--kernels", type=Path, default=Path("build/kernels"), metavar="DIRECTORY")
    add("--out", type=Path, default=Path("results/bench-method"), metavar="DIRECTORY")
    return parser.parse_args(words)


def _ended(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


Counts = dict[str, same.Count]


def like_and_like(bench: Bench, quick: bool, repetitions: int) -> tuple[Counts, Counts]:
    """Comparisons of rows that show a difference that is none, and those of whole campaigns."""
    grids = same.QUICK if quick else same.GRIDS
    many = f"{repetitions} against {repetitions}"
    turned = same.measure(bench, grids, 1 if quick else 4, repetitions)
    every, _, values = same.really(turned)
    in_turn = "real campaigns, cells in turn"
    counts = {f"{in_turn}, {many}": every}
    counts[f"{in_turn}, judged by pair, {many}"] = same.really(turned, turned=True)[0]
    whole = {f"unchanged campaigns, real ones, cells in turn, {many}": same.failed(turned)}
    by_pair = same.failed(turned, turned=True)
    whole[f"unchanged campaigns, real ones, judged by pair, {many}"] = by_pair
    if not quick:
        apart = same.measure(bench, grids, 2, repetitions, in_turn=False)
        every, calm, _ = same.really(apart)
        whole[f"real campaigns, {table.APART}, {many}"] = same.failed(apart)
        counts[f"real campaigns, {table.APART}, {many}"] = every
        counts[f"real campaigns, {table.APART}, rows without a doubt, {many}"] = calm
    for size in SIZES:
        count = same.resampled(values, size, 30 if quick else DRAWS)
        if count.judged:
            counts[f"drawn from the real values, {size} against {size}"] = count
    return counts, whole


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 1 when a fault was missed or too many false differences were claimed."""
    chosen = arguments(words)
    # So that namespaces, control groups and files are removed.
    signal.signal(signal.SIGTERM, _ended)
    facts = machine.collect(chosen.scratch, cpubench=chosen.kernels / "cpubench")
    started = time.monotonic()
    repetitions = 6 if chosen.quick else 8
    counts: Counts = {}
    whole: Counts = {}
    outcomes: list[verdicts.Outcome] = []

    def progress(name: str) -> None:
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="peakmark-method-", dir=chosen.scratch) as work:
        bench = Bench(chosen.kernels, Path(work), facts)
        if chosen.only in (None, "same"):
            counts, whole = like_and_like(bench, chosen.quick, repetitions)
            progress("like against like")
        for number, fault in enumerate(FAULTS if chosen.only in (None, "faults") else ()):
            many = 4 if chosen.quick else repetitions
            outcomes.append(verdicts.judge_here_or_in_a_guest(bench, fault, number, many))
            progress(fault.name)
    kept = list(whole.items())
    if chosen.only in (None, "promises"):
        kept += promises.measure(chosen.quick)
        kept += equal.claimed(100 if chosen.quick else 400)
    if chosen.only in (None, "fleets"):
        kept += fleets.measure(64 if chosen.quick else 4000)
    short = results.facts_in_short(facts)
    tables = [table.same(counts)] if counts else []
    tables += [table.faults(outcomes)] if outcomes else []
    tables += [promises.table(kept)] if kept else []
    text = "\n".join(tables)
    files = {"summary.csv": table.to_csv(counts, outcomes, short), "table.md": text}
    folder = results.write(chosen.out, facts, files)
    print(text)
    for one in outcomes:
        if one.named:
            print(f"{one.fault}: {one.note}")
    print(", ".join(f"{key} {value}" for key, value in short.items()))
    print(f"{time.monotonic() - started:.0f} s; written to {folder}")
    wrong = [*table.missed(counts, outcomes), *promises.broken(kept)]
    for sentence in wrong:
        print(f"missed: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PeakmarkError as failure:
        sys.exit(f"bench-method: {failure}")
