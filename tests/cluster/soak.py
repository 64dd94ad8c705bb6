"""A long campaign of short cells on the test cluster while things break at random moments; `make
soak`.

    PYTHONPATH=. python tests/cluster/soak.py --cells 2000 --seed 1 [--write docs/soak.md]

Faults come at moments and of kinds that the seed decides. When Snakemake has ended, or was killed,
it is started again, as its user would, until all cells are measured. Then every record is looked
at: each cell has one, whole, with the plan's options; none that was ever finished was lost or
changed, but those that were damaged on purpose; the long table holds exactly the records' numbers;
no process, job or file is left. Ends with 1 when one of these is not so.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testcluster import Cluster

import faults
from faults import KINDS, Breaker
from workflow import Workflow

POINTS = 30  # cells of one repetition on two nodes, see configure
RUN_LIMIT_S = 900.0
LOOK_S = 0.5


@dataclass
class Memory:
    """What was ever seen finished: cell -> text of its record. Only what the tests damage may
    change.
    """

    workflow: Workflow
    texts: dict[str, str] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        cells = self.workflow.results / "cells"
        with self.guard:
            for path in cells.rglob("*.json"):
                name = str(path.relative_to(cells).with_suffix(""))
                try:
                    text = path.read_text()
                except FileNotFoundError:
                    continue  # set aside just now
                if name in self.damaged:
                    continue
                before = self.texts.setdefault(name, text)
                if before != text:
                    self.wrong.append(f"{name} was finished and has changed")
                    self.texts[name] = text


def configure(workflow: Workflow, cells: int, scratch: Path) -> int:
    """Short cells of all kinds; returns how many there are."""
    repetitions = max(1, round(cells / POINTS))
    workflow.configure(
        nodes="all",
        fan_out="node",
        seconds=0.02,
        repetitions=repetitions,
        scratch=str(scratch),
        cpu=[{"workloads": ["QP", "HP", "SP", "DP", "FP32"], "concurrency": [1]}],
        memory=[
            {
                "workloads": ["RWS", "RS"],
                "variants": ["block"],
                "blocks": ["1KiB", "64KiB"],
                "concurrency": [1],
            }
        ],
        disk=[
            {
                "workloads": ["WS", "RR"],
                "blocks": ["4KiB", "64KiB"],
                "concurrency": [1],
                "size": "256KiB",
            }
        ],
        network=[{"workloads": ["TCP", "LAT-TCP"], "blocks": ["1KiB"], "concurrency": [1]}],
    )
    return repetitions * POINTS


def campaign(
    workflow: Workflow, memory: Memory, breaker: Breaker, say: Callable[[str], None]
) -> int:
    """Start Snakemake again and again until it ends well with nothing left to break. Returns how
    often it was started.
    """
    runs = 0
    while True:
        runs += 1
        broken = breaker.counts.total()
        process = workflow.start()
        deadline = time.monotonic() + RUN_LIMIT_S
        with breaker.breaking(process.pid):
            while process.poll() is None:
                memory.look()
                if time.monotonic() > deadline:
                    process.kill()
                    raise SystemExit(
                        f"run {runs} does not come to an end:\n{workflow.said[-3000:]}"
                    )
                time.sleep(LOOK_S)
        memory.look()
        breaker.mend()
        done = len(list((workflow.results / "cells").rglob("*.json")))
        say(
            f"run {runs}: exit code {process.returncode}, {done} records, faults so far {breaker.counts.total()}"
        )
        if process.returncode == 0:
            # What was damaged after the tables were built is for a last run, in which nothing
            # breaks.
            if breaker.counts.total() == broken:
                return runs
            breaker.left = 0
        before, found, after = workflow.said.partition("Traceback")
        if found:
            memory.wrong.append(
                f"run {runs} told a traceback: {before[-500:]}{found}{after[:3000]}"
            )


def check(workflow: Workflow, memory: Memory, scratch: Path) -> list[str]:
    """All that is not as it must be."""
    from peakmark.storage import integrity
    from peakmark.storage.results import Results

    wrong = list(memory.wrong)
    opened = Results.read(workflow.results)
    for cell in opened.planned:
        finding = integrity.look(opened.record_path(cell), cell)
        if finding.state != integrity.GOOD:
            wrong.append(f"{cell.id}: {finding.state} {finding.reason}")
        elif finding.data is not None and finding.data["status"] != "ok":
            wrong.append(f"{cell.id} is {finding.data['status']}: {finding.data['reason']}")
        elif finding.data is not None and finding.data["context"]["host"] != cell.node:
            wrong.append(f"{cell.id} was measured on {finding.data['context']['host']}")
    wrong += [
        f"{name} is no planned cell's"
        for name in integrity.foreign(workflow.results, opened.planned)
    ]
    with (workflow.results / "tables" / "measurements.csv").open() as stream:
        table = {
            (line["record"], line["metric"]): float(line["value"])
            for line in csv.DictReader(stream)
            if line["value"]
        }
    records = {
        (f"cells/{name}.json", one["metric"]): one["value"]
        for name, record in workflow.records().items()
        for one in record["measurements"]
    }
    if table != records:
        wrong.append(
            f"the table differs from the records in {len(set(table.items()) ^ set(records.items()))} places"
        )
    wrong += [f"{path} is left on scratch" for path in scratch.iterdir()]
    for node in workflow.cluster.layout.names:
        left = [*faults.kernels(workflow.cluster, node), *faults.measuring(workflow.cluster, node)]
        if left:
            wrong.append(f"processes are left on {node}: {left}")
    queue = workflow.cluster.run(["squeue", "--noheader"]).stdout
    return wrong + ([f"jobs are left: {queue}"] if queue else [])


def clean(workflow: Workflow, scratch: Path) -> int:
    """``peakmark clean`` on both nodes, as their user would after a node was lost. Returns how many
    directories were left.

    A directory must be older than a minute before it goes.
    """
    left = len(list(scratch.iterdir()))
    deadline = time.monotonic() + 120
    while list(scratch.iterdir()) and time.monotonic() < deadline:
        for node in workflow.cluster.layout.names:
            srun = ["srun", f"--nodelist={node}", sys.executable, "-m", "peakmark"]
            workflow.call([*srun, "clean", str(scratch)])
        time.sleep(2)
    return left


def attempts(workflow: Workflow) -> tuple[int, int]:
    """(failed attempts on record, records set aside)."""

    def count(folder: str) -> int:
        paths = (workflow.results / folder).rglob("*.json")
        return sum(".raw" not in str(path) for path in paths)

    return count("attempts"), count("set-aside")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--cells", type=int, default=2000, help="about so many cells, in steps of 30"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--every", type=float, default=4.0, metavar="S", help="mean seconds between two faults"
    )
    parser.add_argument(
        "--faults",
        type=int,
        metavar="N",
        help="so many faults, then none; default: one for 20 cells",
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the figures in this page")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="soak-") as name, Cluster.running(2, cpus=2) as cluster:
        workflow = Workflow.make(cluster, Path(name) / "checkout")
        scratch = Path(name) / "scratch"
        scratch.mkdir()
        commit = head()
        cells = configure(workflow, options.cells, scratch)
        memory = Memory(workflow)
        many = cells // 20 if options.faults is None else options.faults
        chance = random.Random(options.seed)  # noqa: S311 - to be repeated, not to be secret
        breaker = Breaker(cluster, workflow, memory, chance, options.every, many)
        say(f"{cells} cells, seed {options.seed}, {many} faults, one every {options.every:g} s")
        runs = campaign(workflow, memory, breaker, say)
        breaker.mend()
        left = clean(workflow, scratch)
        wrong = check(workflow, memory, scratch)
        if left and not breaker.counts["node"]:  # all else ends with its directories removed
            wrong.append(f"{left} directories were left on scratch although no node was lost")
        kept, aside = attempts(workflow)
        lost = set(memory.texts) - set(workflow.records())
        jobs = json.loads((workflow.results / "plan.json").read_text())["cells"]
        figures = [
            ("cells in the plan", len(jobs)),
            ("seed", options.seed),
            ("minutes", round((time.monotonic() - began) / 60, 1)),
            ("runs of Snakemake until complete", runs),
            ("faults injected", sum(breaker.counts.values())),
            *((f"  {KINDS[kind]}", breaker.counts[kind]) for kind in KINDS),
            ("failed attempts on record, their cells measured again", kept),
            ("damaged records found, set aside and measured again", aside),
            ("directories of lost nodes, removed by peakmark clean", left),
            ("finished records lost", len(lost)),
            ("records or tables that are wrong", len(wrong)),
        ]
    print()
    for what, value in figures:
        print(f"  {what:<60} {value}")
    for one in wrong[:20]:
        print(f"wrong: {one}")
    if options.write:
        write(options.write, figures, options, commit)
    return 1 if wrong or lost else 0


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True
    ).stdout.strip()


def write(
    path: Path, figures: list[tuple[str, float]], options: argparse.Namespace, commit: str
) -> None:
    lines = [f"| {what.replace('  ', '&nbsp;&nbsp;')} | {value} |" for what, value in figures]
    head, _, _ = path.read_text().partition("## Figures") if path.exists() else ("", "", "")
    table = "\n".join(["| | |", "|---|---:|", *lines])
    command = f"make soak CELLS={options.cells} SEED={options.seed}"
    path.write_text(
        f"{head}## Figures\n\nOf `{command}` at commit {commit}, on two cores that both nodes shared.\n\n{table}\n"
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
