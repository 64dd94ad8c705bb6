"""Run the parts of ``make test`` side by side; end with the time of each, and what was skipped and why.

Parts of a lane run one after the other, and the lanes at one time: tests of the cluster and of faults
mostly wait, and test-unit takes longest. The output of a part is printed when it ends, and kept in
``build/tests/``. No part begins after a failure.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "tests"
LANES = (
    ("test-unit",),
    ("test-workflow",),
    ("test-cluster",),
    ("lint", "test-kernels", "test-faults"),
)
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """One run of a target: its exit status, its seconds, and all that it printed."""

    name: str
    code: int
    seconds: float
    output: str


def run(name: str) -> Part:
    """Make a target, whose output goes to a log, and print the log."""
    # make test has set up and compiled before the parts; each would look again for a second.
    command = ["make", "--no-print-directory", "--old-file=setup-test", "--old-file=kernels", name]
    log = LOGS / f"{name}.log"
    began = time.monotonic()
    # A pytest that starts closes the folder of temporary files of all pytests to other users, so each part has its own.
    temporary = tempfile.TemporaryDirectory(prefix="peakmark-", ignore_cleanup_errors=True)
    with log.open("wb") as stream, temporary as folder:
        Path(folder).chmod(0o755)
        environment = os.environ | {"PYTEST_DEBUG_TEMPROOT": folder}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=stream, stderr=stream, check=False
        )
    seconds = time.monotonic() - began
    part = Part(name, done.returncode, seconds, log.read_text(errors="replace"))
    state = ", FAILED" if part.code else ""
    print(f"== {name}: {seconds:.0f} s{state}\n{part.output.rstrip()}", flush=True)
    return part


def run_all() -> list[Part]:
    """Make every part, and return those that were begun, in the order in which they ended."""
    parts: list[Part] = []

    def run_lane(names: tuple[str, ...]) -> None:
        for name in names:
            if not any(part.code for part in parts):
                parts.append(run(name))

    LOGS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(LANES)) as lanes:
        list(lanes.map(run_lane, LANES))
    return parts


def skipped(parts: list[Part]) -> str:
    """How many tests were skipped for which reason, as pytest's closing lines say."""
    reasons: Counter[str] = Counter()
    for part in parts:
        for count, reason in SKIPPED.findall(part.output):
            reasons[reason.removeprefix("Skipped: ").strip()] += int(count)
    each = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    return f"{reasons.total()} tests: {each}"


def main() -> int:
    """Exit status: 1 when a part has failed."""
    os.environ["PYTHONUNBUFFERED"] = "1"
    began = time.monotonic()
    parts = run_all()
    for part in parts:
        print(f"{part.name:<15}{part.seconds:5.0f} s  {'FAILED' if part.code else ''}".rstrip())
    print(f"{'all':<15}{time.monotonic() - began:5.0f} s")
    print(f"skipped here: {skipped(parts)}")
    return 1 if any(part.code for part in parts) else 0


if __name__ == "__main__":
    sys.exit(main())
