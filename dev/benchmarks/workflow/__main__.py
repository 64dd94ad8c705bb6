"""``python -m benchmarks.workflow``: measure, print, write. See docs/performance.md."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import results
from benchmarks.results import Line
from benchmarks.workflow import cluster, local
from benchmarks.workflow.checkout import TimedCheckout
from peakmark.errors import PeakmarkError
from peakmark.machine.facts import collect

PARTS: dict[str, Callable[[TimedCheckout, int], list[Line]]] = {
    "planning": local.dry_runs,
    "nothing": local.nothing_to_do,
    "jobs": cluster.per_cell,
    "report": local.largest_preset,
    "table": local.many_records,
}


def main() -> int:
    """Exit code 0 also when targets are missed: the table says so."""
    parser = argparse.ArgumentParser(
        prog="make bench-workflow ARGS=...", description="What the workflow itself costs."
    )
    add = parser.add_argument
    add("--only", choices=PARTS, action="append", help="may be repeated; default: all")
    add("--turns", type=int, default=3, metavar="N", help="measurements of each, default 3")
    add("--out", type=Path, default=Path("results/bench-workflow"), metavar="DIRECTORY")
    chosen = parser.parse_args()
    if chosen.turns < 1:
        parser.error(f"--turns {chosen.turns}: give 1 or more")
    # Where it is set each process would compile what it imports, as no user's does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    facts = collect()
    table: list[Line] = []
    work = Path(tempfile.mkdtemp(prefix="peakmark-bench-"))
    try:
        for name in chosen.only or PARTS:
            started = time.monotonic()
            try:
                table += PARTS[name](TimedCheckout.make(work / name), chosen.turns)
            except PeakmarkError as error:
                print(f"{name}: not measured: {error}", file=sys.stderr)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            shutil.rmtree(work / name, ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = results.markdown(results.HEADINGS, [line.cells() for line in table])
    results.publish(chosen.out, facts, text)
    return 0


if __name__ == "__main__":
    results.run(main, "bench-workflow")
