"""``make bench-check``: call the check beside other programs, and on a slowed node.

No call may name this machine, which is as good as its class by construction, until a control group slows
it down. See docs/method.md (Checks of a node).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import results
from benchmarks.check import made
from benchmarks.check.groups import limited
from peakmark.errors import ExitCode, Unavailable
from peakmark.resources import PACKAGE

BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""A program that uses one CPU until this process ends."""
BURSTS = """
import os, random, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + random.uniform(0.005, 0.3)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0.005, 0.3))
"""
"""A program that uses a CPU half of the time, in bursts that a try may miss."""
RARE = BURSTS.replace("sleep(random.uniform(0.005, 0.3))", "sleep(random.uniform(0.1, 2.0))")
DAEMON = """
import os, time
parent, busy_s = os.getppid(), 0.02 * SHARE
while os.getppid() == parent:
    end = time.monotonic() + busy_s
    while time.monotonic() < end: pass
    time.sleep(0.02 - busy_s)
"""
"""A program that always uses a share of a CPU, near the shares from which a try counts as disturbed."""
COPIES = """
import os
parent, area = os.getppid(), bytearray(256 << 20)
while os.getppid() == parent: bytes(area)
"""
"""A program that copies in DRAM."""
ALL = os.cpu_count() or 1
LOADS = {
    "nothing of ours": [],
    "one busy program": [BUSY],
    "a busy program for each CPU": [BUSY] * ALL,
    "bursts on each CPU": [BURSTS] * ALL,
    "rare bursts": [RARE],
    "5 % of each CPU": [DAEMON.replace("SHARE", "0.05")] * ALL,
    "10 % of each CPU": [DAEMON.replace("SHARE", "0.1")] * ALL,
    "copies in DRAM": [COPIES],
}
"""Load -> programs that run beside the check."""
QUOTAS = (0.05, 0.2, 0.5)
"""CPUs for each thread that a control group allows."""
SLOW_CALLS, SLOW_S = 4, 20.0
"""Calls on the slowed machine at most, and seconds of each: the check's default."""


def main() -> int:
    """Exit code 1 if a healthy node was named, or a slowed one was not within two calls."""
    parser = argparse.ArgumentParser(prog="make bench-check ARGS=...", description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="calls beside loads, default 200")
    parser.add_argument("--seconds", type=float, default=2.0, help="of such a call, default 2")
    parser.add_argument("--kernels", type=Path, default=Path("build/kernels"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        values = {row: made.healthy_value(row, chosen.kernels) for row in made.headlines(ALL)}
        campaign = made.write(Path(folder), values)
        argv = [sys.executable, "-IBS", str(PACKAGE / "check"), str(campaign)]
        argv += ["--kernels", str(chosen.kernels)]
        is_wrong = _beside_loads([*argv, "--seconds", str(chosen.seconds)], chosen.calls)
        is_missed = _slowed([*argv, "--seconds", str(SLOW_S)])
    return int(is_wrong or is_missed)


def _beside_loads(argv: Sequence[str], calls: int) -> bool:
    """Call the check beside each load, print a table, and return whether a call named the machine."""
    lines = []
    false_alarms = 0
    for load, programs in LOADS.items():
        count = -(-calls // len(LOADS))
        with _running(programs):
            codes, longest_s, said = _call(argv, count)
        false_alarms += codes[ExitCode.DIFFERENT]
        numbers = [codes[code] for code in ExitCode]
        lines.append([load, *map(str, numbers), f"{longest_s:.1f} s"])
        if codes[ExitCode.DIFFERENT]:
            print(said)
    print(results.markdown(["beside", *(code.name for code in ExitCode), "longest"], lines))
    return false_alarms > 0


def _call(argv: Sequence[str], count: int) -> tuple[Counter[int], float, str]:
    """Return how often each exit code came, the longest time, and what was said of a slow node."""
    codes: Counter[int] = Counter()
    longest_s, said = 0.0, ""
    for _ in range(count):
        began = time.monotonic()
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        longest_s = max(longest_s, time.monotonic() - began)
        codes[done.returncode] += 1
        if done.returncode == ExitCode.DIFFERENT:
            said += done.stdout
    return codes, longest_s, said


@contextmanager
def _running(programs: Sequence[str]) -> Iterator[None]:
    """Run Python programs while the block runs."""
    processes = [subprocess.Popen([sys.executable, "-c", text]) for text in programs]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _slowed(argv: Sequence[str]) -> bool:
    """Call the check under quotas until it names the machine. Return whether two calls missed one."""
    is_missed = False
    for share in QUOTAS:
        try:
            with limited(share * ALL) as inside:
                calls = _calls_until_named([*inside, *argv])
        except Unavailable as error:
            print(f"quota of {share:g} CPUs a thread: not possible here: {error}")
            continue
        print(f"quota of {share:g} CPUs a thread: named in call {calls or 'none'}")
        is_missed |= calls not in (1, 2)
    return is_missed


def _calls_until_named(argv: Sequence[str]) -> int:
    """Return the number of the first call that ended with ``slow``; 0 if none did."""
    for number in range(1, SLOW_CALLS + 1):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        print(f"  {done.stdout.strip()}")
        if done.returncode == ExitCode.DIFFERENT:
            return number
    return 0


if __name__ == "__main__":
    results.run(main, "bench-check")
