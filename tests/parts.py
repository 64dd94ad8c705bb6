"""The parts of `make test`, each with its time, and at the end in one line what was skipped, and
why.

    python tests/parts.py lint test-unit              each a target of the Makefile; none begins
    after one has failed
    python tests/parts.py --times 10 --load 8 ...     so often, however each ends, while 8 processes
    keep the machine busy

Parts that mostly wait run beside the others, one after the other; the output of such a part is shown
whole once it has ended. All output is kept in build/tests/. A test that is skipped prints a line of
pytest's form, those in C as well.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "tests"
WAITING = ("test-cluster", "test-faults")
"""Parts of which most is waiting: for Slurm, for killed programs, for slow lines."""
# It is killed when its parent ends (PR_SET_PDEATHSIG), however that ends.
BUSY = "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL)\nwhile True: pass"
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$", re.MULTILINE)


class Part(NamedTuple):
    """One run of a target: exit code, seconds, its log, and the tests it skipped by their reason."""

    name: str
    code: int
    seconds: float
    log: Path
    skipped: Counter[str]

    @property
    def failed(self) -> str:
        return "FAILED" if self.code else ""

    def say(self) -> None:
        print(", ".join(filter(None, (f"== {self.name}: {self.seconds:.0f} s", self.failed))))
        sys.stdout.flush()


def skipped(output: str) -> Counter[str]:
    """How many tests were skipped for which reason, as pytest's closing lines say."""
    found: Counter[str] = Counter()
    for count, reason in SKIPPED.findall(output):
        found[reason.removeprefix("Skipped: ").strip()] += int(count)
    return found


def run(name: str, log: Path, shown: bool) -> Part:
    """Make a target; its output is kept, and shown as it comes."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [os.environ.get("MAKE", "make"), "--no-print-directory", name]
    how = {"cwd": ROOT, "env": {**os.environ, "PYTHONUNBUFFERED": "1"}, "text": True}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "errors": "replace"}
    began = time.monotonic()
    with log.open("w", buffering=1) as kept, subprocess.Popen(words, **how, **pipe) as process:
        while piece := process.stdout.read(1):
            kept.write(piece)
            if shown:
                sys.stdout.write(piece)
                if not piece.isalnum():
                    sys.stdout.flush()
    seconds = time.monotonic() - began
    return Part(name, process.returncode, seconds, log, skipped(log.read_text()))


def run_all(targets: Sequence[str], log: str = "{}.log", go_on: bool = False) -> list[Part]:
    """All parts once: those that wait in a thread beside the others, where there are two CPUs.

    Args:
        targets: of the Makefile.
        log: file name of a part's log.
        go_on: also after a failure.

    Returns:
        The parts in the order in which they ended.
    """
    both = len(os.sched_getaffinity(0)) > 1 and not {*targets} <= {*WAITING}
    waiting = [name for name in targets if name in WAITING and both]
    parts: list[Part] = []
    silent: list[Part] = []

    def each(names: Sequence[str], shown: bool) -> Iterator[Part]:
        for name in names:
            if go_on or not any(part.code for part in parts):
                parts.append(part := run(name, LOGS / log.format(name), shown))
                yield part

    def show() -> None:
        while silent:
            part = silent.pop(0)
            print(f"== {part.name} said:\n{part.log.read_text().rstrip()}")
            part.say()

    def wait() -> None:
        for part in each(waiting, False):
            silent.append(part)

    thread = threading.Thread(target=wait)
    if waiting:
        names = " ".join(waiting)
        print(f"== {names}: beside the others, shown at the end of each", flush=True)
    thread.start()
    for part in each([name for name in targets if name not in waiting], True):
        part.say()
        show()
    thread.join()
    show()
    return parts


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that only compute, until the end of the block or of this process."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def summary(parts: Sequence[Part], seconds: float) -> str:
    """Times, then what was skipped in one line; ``seconds``: of all."""
    lines = [f"{part.name:<15}{part.seconds:5.0f} s  {part.failed}".rstrip() for part in parts]
    reasons: Counter[str] = sum((part.skipped for part in parts), Counter())
    each = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    skips = f"skipped here: {reasons.total()} tests{': ' + each if each else ''}"
    return "\n".join([*lines, f"{'all':<15}{seconds:5.0f} s", skips])


def main(words: Sequence[str]) -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("targets", nargs="+", help="of the Makefile")
    parser.add_argument(
        "--times", type=int, default=1, help="more than once goes on after failures"
    )
    parser.add_argument("--load", type=int, default=0, help="processes that keep the machine busy")
    options = parser.parse_args(words)
    several = options.times > 1
    parts: list[Part] = []
    began = time.monotonic()
    with busy(options.load):
        for number in range(1, options.times + 1):
            parts += run_all(
                options.targets, f"{{}}-{number}.log" if several else "{}.log", several
            )
            if several:
                print(f"== {number} of {options.times}", flush=True)
    print(summary(parts, time.monotonic() - began))
    failed = sum(part.code != 0 for part in parts)
    if several:
        count = f"{len(parts) - failed} of {len(parts)}"
        print(f"passed: {count}; what each said: {LOGS.relative_to(ROOT)}/")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
