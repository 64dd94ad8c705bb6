"""``python -m benchmarks.method``: measure, print, write. See docs/method.md."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import results
from benchmarks.method import campaigns, faults, fleets, promises, rows, same
from benchmarks.method.faults import FAULTS, Outcome
from benchmarks.method.promises import Count, Counts
from benchmarks.method.sides import Bench
from peakmark.machine.facts import collect


def arguments() -> argparse.Namespace:
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
    return parser.parse_args()


def simulated(only: str | None, quick: bool) -> Counts:
    """All promises that simulated rows, campaigns and fleets can show to be kept."""
    if only in (None, "promises"):
        many = 400 if quick else 4000
        yield from rows.warnings(many)
        yield from campaigns.counted(20 if quick else 200)
        yield from rows.coverage(many)
        yield from rows.equal(20 if quick else 400)
        yield from rows.one_placement(100 if quick else 1000)
    if only in (None, "fleets"):
        yield from fleets.slow_nodes(64 if quick else 4000)
        yield from fleets.slow_links(64 if quick else 2000)


def main() -> int:
    """Exit code 1 when a fault was missed or a promise broken."""
    chosen = arguments()
    facts = collect(chosen.scratch, cpubench=chosen.kernels / "cpubench")
    started = time.monotonic()
    counts: list[tuple[str, Count]] = []
    outcomes: list[Outcome] = []

    def progress(name: str) -> None:
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="peakmark-method-", dir=chosen.scratch) as work:
        bench = Bench(chosen.kernels, Path(work), facts)
        if chosen.only in (None, "same"):
            counts += same.counted(bench, chosen.quick, 6 if chosen.quick else 8)
            progress("like against like")
        for number, fault in enumerate(FAULTS if chosen.only in (None, "faults") else ()):
            outcomes.append(faults.judge(bench, fault, number, 4 if chosen.quick else 8))
            progress(fault.name)
    counts += simulated(chosen.only, chosen.quick)
    tables = [promises.table(counts)] if counts else []
    tables += [faults.table(outcomes)] if outcomes else []
    notes = [f"{one.fault}: {one.note}" for one in outcomes if one.named]
    took = f"{time.monotonic() - started:.0f} s"
    results.publish(chosen.out, facts, "\n".join(tables), *notes, took)
    wrong = [*faults.missed(outcomes), *promises.broken(counts)]
    for sentence in wrong:
        print(f"missed: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    results.run(main, "bench-method")
