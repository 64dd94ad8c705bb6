"""How long a person waits: a campaign, the report after its last job, two thousand submissions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

from benchmarks.workflow import journal
from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.lines import Line
from benchmarks.workflow.ways import NODES, Ways
from peakmark.errors import PeakmarkError
from peakmark.running.queue import AT_ONCE

PART = 8


def to_the_report(
    checkout: TimedCheckout, turns: int, cells: int = 200, seconds: float = 0.2
) -> list[Line]:
    """A campaign of short cells from its start to its report, beside as many tests of ReFrame."""
    walls: dict[str, list[float]] = {"cell": [], "node": [], "ReFrame": []}
    after: list[float] = []
    with Ways.running(checkout) as ways:
        for turn in range(turns):
            walls["ReFrame"].append(ways.reframe.measure(ways.cluster, ways.kernel, seconds, cells))
            for fan_out in ("cell", "node"):
                name = f"{fan_out}-{turn}"
                spent = ways.spent(partial(ways.own, name, fan_out, cells, seconds))
                walls[fan_out].append(spent.wall_s)
                if fan_out == "cell":
                    after.append(spent.after_s - _report(checkout, name))
    what = f"{cells} cells of {seconds} s on {NODES} nodes, start to report"
    return [
        *(
            Line(f"{what}, fan_out: {name}", "s", walls[name], 1.2, "ReFrame", walls["ReFrame"])
            for name in ("cell", "node")
        ),
        Line("end of the last job to the report, beside making the report", "s", after, 5.0),
    ]


def _report(checkout: TimedCheckout, name: str) -> float:
    """Seconds that tables and report take by themselves."""
    folder = f"results/{name}"
    commands = ("tables", "report")
    return sum(
        checkout.run(sys.executable, "-m", "peakmark", word, folder).wall for word in commands
    )


def submitted(checkout: TimedCheckout, turns: int, cells: int = 2_000) -> list[Line]:
    """From the first submission to the last; other jobs keep the nodes busy meanwhile. Beside it
    bare submissions, as many at a time: of a part of the cells, as Slurm takes each as long as
    any other.
    """
    took, bare = [], []
    with Ways.running(checkout) as ways:
        for turn in range(turns):
            for _ in range(NODES):
                ways.cluster.sbatch("sleep 3600", "--exclusive", "--output=/dev/null")
            bare.append(ways.submit(cells // PART) * PART)
            # As many as there are: by itself ours leaves at most a thousand in the queue.
            site = checkout.directory / "site.yaml"
            site.write_text(f"{{schema: 1, name: bench, slurm: {{max_jobs: {cells}}}}}")
            config = checkout.configure(
                f"queue-{turn}",
                site=str(site),
                nodes="node1",  # where Slurm chooses, a row's other repetitions wait for its first one
                seconds=0.05,
                repetitions=50,
                cpu=[{"workloads": ["DP"], "concurrency": list(range(1, cells // 50 + 1))}],
            )
            took.append(_until_queued(ways, config, cells))
    what = f"{cells} cells submitted"
    return [
        Line(what, "s", took, 20.0),
        Line(what, "s", took, None, f"bare sbatch, {AT_ONCE} at a time", bare),
    ]


def _until_queued(ways: Ways, config: str, cells: int) -> float:
    before = len(ways.log.read_text(errors="replace"))
    words = [sys.executable, "-m", "snakemake", "--profile", "slurm", "--configfile", config]
    folder = ways.checkout.directory
    with (folder / ".said").open("w") as said:
        process = ways.cluster.popen(
            words, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "src")},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while True:
            # Not by squeue, which takes as much time of the controller as dozens of submissions.
            when = journal.submissions(ways.log, before)
            pending = len(when)
            if pending >= cells:
                return when[-1] - when[0]
            if process.poll() is not None or time.monotonic() > deadline:
                said_last = (folder / ".said").read_text(errors="replace")[-1500:]
                raise PeakmarkError(
                    f"{pending} of {cells} cells are in the queue, and no more come:\n{said_last}"
                )
            time.sleep(0.5)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        ways.cluster.reset(120)
