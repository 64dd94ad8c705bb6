"""Measure this machine's GPU with gpubench, beside the vendor's functions, and judge the medians.

`python dev/gpu.py` takes about five minutes. gpubench itself fails if a result is wrong. The limits are
those of the report. The shares to reach are those of an H100 and an H200; other chips are not judged.
"""

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from peakmark import limits
from peakmark.catalogue import metrics
from peakmark.limits import Question
from peakmark.machine import gpu
from peakmark.machine.host import Host

PROGRAM = Path(__file__).parents[1] / "build" / "kernels" / "gpubench"
IMPOSSIBLE = 77

JUDGED = "9.0"
"""Compute capability of the chips whose shares are judged."""

SHARES = {
    "FP64": 0.97,
    "FP32": 0.96,
    "FP16": 0.95,
    "INT32": 0.99,
    "TC-FP64": 0.99,
    "TC-TF32": 0.99,
    "TC-FP16": 0.99,
    "TC-BF16": 0.99,
    "TC-INT8": 0.99,
    "TC-FP8": 0.99,
    "RS": 0.938,
    "WS": 0.944,
}
"""Workload -> share of its limit to reach; of memory 1 % less than the lower of an H100 and an H200."""

LATENCIES = {"NVIDIA H100 80GB HBM3": 340.5e-9, "NVIDIA H200": 325.5e-9}
"""Name of a GPU -> seconds of a load from its memory, as measured on one."""

PAIRS = (
    ("RWS", "", "memcpy", 0.97),
    ("WS", "", "memset", 0.99),
    ("LINK", "to", "memcpy", 0.98),
    ("LINK", "from", "memcpy", 0.98),
    ("LINK", "both", "memcpy", 0.98),
    ("TC-FP16", "", "cublas", 1.0),
    ("TC-FP64", "", "cublas", 1.0),
)
"""Workload, variant, reference, and least ratio of the medians."""

REPETITIONS = 5


class NotHere(Exception):
    """The reason why gpubench cannot measure a workload on this machine."""


@dataclass
class Line:
    name: str
    value: float
    unit: str
    share: float | None
    wanted: float

    @property
    def missed(self) -> bool:
        return self.share is not None and self.share < self.wanted

    def __str__(self) -> str:
        share = "" if self.share is None else f"{self.share:8.1%} of {self.wanted:.1%}"
        return f"{self.name:24} {self.value:10.4g} {self.unit:5} {share} {'MISSED' if self.missed else ''}"


def gpubench(*arguments: str) -> dict:
    done = subprocess.run([PROGRAM, *arguments], check=False, capture_output=True, text=True)
    if done.returncode == IMPOSSIBLE:
        raise NotHere(done.stderr.strip())
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def measure(workload: str, variant: str = "", reference: str = "") -> dict:
    """Return one short run."""
    arguments = ["--workload", workload, "--seconds", "0.3", "--warmup", "0.2"]
    if variant:
        arguments += ["--variant", variant]
    if reference:
        arguments += ["--reference", reference]
    return gpubench(*arguments)


def share_of(run: dict, facts: dict) -> float | None:
    """Return the share of its limit that a run reached; None without a limit."""
    workload = run["workload"]
    (metric,) = metrics("gpu", workload)
    question = Question(
        "gpu",
        workload,
        run["variant"] or "",
        None,
        1,
        metric,
        {"gpu": facts},
        clock_hz=run["clock_hz"],
        clock_loaded=True,
        isa=run["isa"],
    )
    return limits.for_row(question).share(run["value"])


def beside_limits(facts: dict) -> list[Line]:
    """Return the workloads that have a limit, each with the median of its shares."""
    lines = []
    for workload, wanted in SHARES.items():
        try:
            runs = [measure(workload) for _ in range(REPETITIONS)]
        except NotHere as reason:
            print(reason)
            continue
        value = statistics.median(run["value"] for run in runs)
        shares = [share_of(run, facts) for run in runs]
        share = None if None in shares else statistics.median(shares)
        name = f"{workload} {runs[0]['isa']}"
        lines.append(Line(name, value, runs[0]["unit"], share, wanted))
    return lines


def without_limit(facts: dict) -> list[Line]:
    """Return the workloads that have no limit, measured once; the last latency is that of memory."""
    lines = []
    for working_set, seconds in measure("LADDER-LAT")["points"]:
        lines.append(Line(f"LADDER-LAT {working_set / 1024:.0f} KiB", seconds, "s", None, 0.97))
    if facts["name"] in LATENCIES:
        lines[-1].share = LATENCIES[facts["name"]] / lines[-1].value
    lines.append(Line("RWR", measure("RWR")["value"], "B/s", None, 0))
    lines.append(Line("LAUNCH", measure("LAUNCH")["value"], "s", None, 0))
    return lines


def beside_references() -> list[Line]:
    """Return the ratios to the vendor's functions, measured in turn."""
    lines = []
    for workload, variant, reference, wanted in PAIRS:
        ours, theirs = [], []
        try:
            for _ in range(REPETITIONS):
                ours.append(measure(workload, variant))
                theirs.append(measure(workload, variant, reference))
        except NotHere as reason:
            print(reason)
            continue
        value = statistics.median(run["value"] for run in ours)
        ratio = value / statistics.median(run["value"] for run in theirs)
        name = f"{workload} {variant} {ours[0]['isa']} / {reference}"
        lines.append(Line(name, value, theirs[0]["unit"], ratio, wanted))
    return lines


def main() -> None:
    facts = gpu.collect(Host(), PROGRAM)
    if facts is None:
        print(f"SKIPPED [1] test-gpu: {gpu.survey()[1]}")
        return
    print(json.dumps(facts))
    lines = beside_limits(facts) + without_limit(facts) + beside_references()
    print(*lines, sep="\n")
    if facts["compute"] == JUDGED and any(line.missed for line in lines):
        sys.exit("test-gpu: each line with MISSED is below its share")


if __name__ == "__main__":
    main()
