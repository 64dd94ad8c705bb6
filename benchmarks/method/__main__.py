"""``python -m benchmarks.method``: measure, print, write. See docs/method.md."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from benchmarks.facts import facts_in_short
from benchmarks.method import drawn, promises, same, table, verdicts
from benchmarks.method.faults import FAULTS
from benchmarks.method.sides import Bench
from peakmark import machine
from peakmark.errors import PeakmarkError
from peakmark.files import write_text

DRAWS = 300


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="make bench-method ARGS=...",
        description="Like against like must show no difference; faults put in on purpose must be found and named.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rows and repetitions: half a minute"
    )
    parser.add_argument("--only", choices=["same", "faults", "promises"], help="one of the parts")
    parser.add_argument("--scratch", type=Path, default=Path(os.environ.get("TMPDIR") or "/tmp"), metavar="DIRECTORY",  # noqa: S108
                        help="on the disk to be measured (default: $TMPDIR, else /tmp)")  # fmt: skip
    parser.add_argument("--kernels", type=Path, default=Path("build/kernels"), metavar="DIRECTORY")
    parser.add_argument(
        "--out", type=Path, default=Path("results/bench-method"), metavar="DIRECTORY"
    )
    return parser.parse_args(words)


def _ended(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 1 when a fault was missed or too many false differences were claimed."""
    chosen = arguments(words)
    signal.signal(
        signal.SIGTERM, _ended
    )  # so that namespaces, control groups and files are removed
    facts = machine.collect(chosen.scratch, cpubench=chosen.kernels / "cpubench")
    started = time.monotonic()
    blocks, repetitions = (1, 6) if chosen.quick else (4, 8)
    counts: dict[str, same.Count] = {}
    outcomes: list[verdicts.Outcome] = []
    real: list[tuple[str, same.Count]] = []
    with tempfile.TemporaryDirectory(prefix="peakmark-method-", dir=chosen.scratch) as work:
        bench = Bench(chosen.kernels, Path(work), facts)
        if chosen.only in (None, "same"):
            grids = same.QUICK if chosen.quick else same.GRIDS
            many = f"{repetitions} against {repetitions}"
            turned = same.measure(bench, grids, blocks, repetitions)
            every, _, values = same.really(turned)
            counts[f"real campaigns, cells in turn, {many}"] = every
            counts[f"real campaigns, cells in turn, judged by pair, {many}"] = same.really(
                turned, turned=True
            )[0]
            real.append(
                (f"unchanged campaigns, real ones, cells in turn, {many}", same.failed(turned))
            )
            real.append(
                (
                    f"unchanged campaigns, real ones, judged by pair, {many}",
                    same.failed(turned, turned=True),
                )
            )
            if not chosen.quick:
                apart = same.measure_apart(bench, grids, 2, repetitions)
                every, calm, _ = same.really(apart)
                real.append((f"real campaigns, {table.APART}, {many}", same.failed(apart)))
                counts[f"real campaigns, {table.APART}, {many}"] = every
                counts[f"real campaigns, {table.APART}, rows without a doubt, {many}"] = calm
            draws = 30 if chosen.quick else DRAWS
            for size in drawn.SIZES:
                count = same.resampled(values, size, draws)
                if count.judged:
                    counts[f"drawn from the real values, {size} against {size}"] = count
            alone = drawn.undisturbed(folder for pair in turned for folder in pair)
            real += [*drawn.warnings(alone, draws), *drawn.campaigns(values, draws)]
            print(
                f"like against like: {time.monotonic() - started:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        for number, fault in enumerate(FAULTS if chosen.only in (None, "faults") else ()):
            outcomes.append(
                verdicts.judge_here_or_in_a_guest(
                    bench, fault, number, 4 if chosen.quick else repetitions
                )
            )
            print(f"{fault.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    kept = [*real, *(promises.measure(chosen.quick) if chosen.only in (None, "promises") else [])]
    folder = chosen.out / datetime.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    short = facts_in_short(facts)
    text = "\n\n".join(
        part
        for part in (
            counts and table.same(counts),
            outcomes and table.faults(outcomes),
            kept and promises.table(kept),
        )
        if part
    )
    write_text(folder / "summary.csv", table.to_csv(counts, outcomes, short))
    write_text(folder / "table.md", text + "\n")
    write_text(folder / "machine.json", json.dumps(facts, indent=1, sort_keys=True) + "\n")
    print(text)
    print()
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
