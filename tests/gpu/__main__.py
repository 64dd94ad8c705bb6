"""Measure this machine's GPU with gpubench, beside the vendor's functions, and judge the medians.

`python -m tests.gpu`, in about five minutes. gpubench itself fails where a result is wrong. The shares
hold for compute capability 9.0; of other chips the results are checked and the rates are shown.
"""

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "build" / "kernels" / "gpubench"
IMPOSSIBLE = 77

HOPPER = {
    "FP64": (128, 0.97),
    "FP32": (256, 0.96),
    "FP16": (512, 0.95),
    "INT32": (128, 0.99),
    "TC-FP64": (256, 0.99),
    "TC-TF32": (2048, 0.99),
    "TC-FP16": (4096, 0.99),
    "TC-BF16": (4096, 0.99),
    "TC-INT8": (8192, 0.99),
    "TC-FP8": (8192, 0.99),
}
"""Operations a cycle and SM of the chip, and the share of them that is to be reached."""

HOPPER_MEMORY = {"RS": 0.938, "WS": 0.944}
"""Shares of memory clock x 2 x bus width: 1 % less than an H100 and an H200 gave at the least."""

PAIRS = (
    ("RWS", "", "memcpy", 0.97),
    ("WS", "", "memset", 0.99),
    ("LINK", "to", "memcpy", 0.98),
    ("LINK", "from", "memcpy", 0.98),
    ("LINK", "both", "memcpy", 0.98),
    ("TC-FP16", "", "cublas", 1.0),
    ("TC-FP64", "", "cublas", 1.0),
)
"""Workload, variant, reference, and what the ratio of the medians is to be at least."""

REPETITIONS = 5


class NotHere(Exception):
    """What gpubench cannot measure on this machine, with its reason."""


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
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
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


def rates(gpu: dict) -> list[Line]:
    """Return the arithmetic workloads against the operations a cycle, at the clock under the work."""
    lines = []
    for workload, (operations, wanted) in HOPPER.items():
        try:
            runs = [measure(workload) for _ in range(REPETITIONS)]
        except NotHere as reason:
            print(reason)
            continue
        value = statistics.median(run["value"] for run in runs)
        shares = [run["value"] / (operations * gpu["sms"] * run["clock_hz"]) for run in runs]
        share = statistics.median(shares) if gpu["compute"] == "9.0" else None
        lines.append(Line(f"{workload} {runs[0]['isa']}", value, "op/s", share, wanted))
    return lines


def memory(gpu: dict) -> list[Line]:
    limit = gpu["memory_clock_hz"] * 2 * gpu["bus_bits"] / 8
    lines = []
    for workload, wanted in HOPPER_MEMORY.items():
        value = statistics.median(measure(workload)["value"] for _ in range(REPETITIONS))
        share = value / limit if gpu["compute"] == "9.0" else None
        lines.append(Line(workload, value, "B/s", share, wanted))
    ladder, launch = measure("LADDER-LAT"), measure("LAUNCH")
    for first, seconds in ladder["points"]:
        lines.append(Line(f"LADDER-LAT {first / 1024:.0f} KiB", seconds, "s", None, 0))
    lines.append(Line("RWR", measure("RWR")["value"], "B/s", None, 0))
    lines.append(Line("LAUNCH", launch["value"], "s", None, 0))
    return lines


def beside() -> list[Line]:
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
    try:
        gpu = gpubench("--list")["gpus"][0]
    except NotHere as reason:
        print(f"SKIPPED [1] test-gpu: {reason}")
        return
    print(json.dumps(gpu))
    lines = rates(gpu) + memory(gpu) + beside()
    print(*lines, sep="\n")
    if any(line.missed for line in lines):
        sys.exit("test-gpu: what is marked MISSED is below its share")


if __name__ == "__main__":
    main()
