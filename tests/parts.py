"""The parts of `make test`, each with its time, and at the end in one line what was skipped, and
why.

    python tests/parts.py lint test-unit              each a target of the Makefile; none begins
    after one has failed
    python tests/parts.py --times 10 --load 8 ...     so often, however each ends, while 8 processes
    keep the machine busy

Parts that mostly wait run beside the others, one after the other; what such a part says is shown
whole once it has ended. What a part said is kept in build/tests/. A test that is skipped says so in
a line of pytest's form, those in C as well.
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
    """One run of a target: exit code, seconds, and the tests it skipped by their reason."""

    name: str
    code: int
    seconds: float
    skipped: Counter[str]


def skipped(said: str) -> Counter[str]:
    """How many tests were skipped for which reason, as pytest's closing lines tell."""
    found: Counter[str] = Counter()
    for count, reason in SKIPPED.findall(said):
        found[reason.removeprefix("Skipped: ").strip()] += int(count)
    return found


def run(name: str, log: Path, shown: bool) -> Part:
    """Make a target; what it says is kept, and shown while it says so."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [os.environ.get("MAKE", "make"), "--no-print-directory", name]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    began = time.monotonic()
    with (
        log.open("w", buffering=1) as kept,
        subprocess.Popen(
            words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        while piece := process.stdout.read(1):
            kept.write(piece)
            if shown:
                sys.stdout.write(piece)
                if not piece.isalnum():
                    sys.stdout.flush()
    return Part(name, process.returncode, time.monotonic() - began, skipped(log.read_text()))


class Round:
    """All parts once: those that wait in a thread beside the others, where there are two CPUs for
    both.

    log      file name of a part's log
    go_on    also after a failure
    """

    def __init__(self, targets: Sequence[str], log: str = "{}.log", go_on: bool = False) -> None:
        beside = WAITING if len(os.sched_getaffinity(0)) > 1 else ()
        self.here = [name for name in targets if name not in beside]
        self.beside = [name for name in targets if name in beside]
        if not self.here:
            self.here, self.beside = self.beside, []
        self.log, self.go_on = log, go_on
        self.parts: list[Part] = []
        self.untold: list[Part] = []

    def run(self) -> list[Part]:
        """Parts in the order in which they ended."""
        thread = threading.Thread(target=self._beside)
        if self.beside:
            print(
                f"== {' '.join(self.beside)}: beside the others, shown at the end of each",
                flush=True,
            )
            thread.start()
        for name in self.here:
            if self._stop():
                break
            self.parts.append(run(name, self._log(name), True))
            self._say(self.parts[-1])
            self._tell()
        if self.beside:
            thread.join()
        self._tell()
        return self.parts

    def _beside(self) -> None:
        for name in self.beside:
            if self._stop():
                break
            part = run(name, self._log(name), False)
            self.parts.append(part)
            self.untold.append(part)

    def _stop(self) -> bool:
        return not self.go_on and any(part.code for part in list(self.parts))

    def _log(self, name: str) -> Path:
        return LOGS / self.log.format(name)

    def _tell(self) -> None:
        """Show what has ended beside."""
        while self.untold:
            part = self.untold.pop(0)
            print(f"== {part.name} said:\n{self._log(part.name).read_text().rstrip()}")
            self._say(part)

    @staticmethod
    def _say(part: Part) -> None:
        print(
            f"== {part.name}: {part.seconds:.0f} s{'' if part.code == 0 else ', FAILED'}",
            flush=True,
        )


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that only compute, until the end of the block or of this process."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def told(parts: Sequence[Part], whole: float) -> str:
    """Times, then what was skipped in one line, then what failed; ``whole``: seconds of all."""
    lines = [
        f"{part.name:<15}{part.seconds:5.0f} s{'' if part.code == 0 else '  FAILED'}"
        for part in parts
    ]
    lines.append(f"{'all':<15}{whole:5.0f} s")
    reasons: Counter[str] = sum((part.skipped for part in parts), Counter())
    each = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    lines.append(f"skipped here: {reasons.total()} tests{': ' + each if each else ''}")
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="+", help="of the Makefile")
    parser.add_argument(
        "--times",
        type=int,
        default=1,
        help="how often each is run; more than once goes on after a failure",
    )
    parser.add_argument(
        "--load", type=int, default=0, help="processes that keep the machine busy meanwhile"
    )
    chosen = parser.parse_args(words)
    parts: list[Part] = []
    began = time.monotonic()
    with busy(chosen.load):
        for number in range(1, chosen.times + 1):
            several = chosen.times > 1
            parts += Round(
                chosen.targets, f"{{}}-{number}.log" if several else "{}.log", several
            ).run()
            if several:
                print(f"== {number} of {chosen.times}", flush=True)
    print(told(parts, time.monotonic() - began))
    failed = [part for part in parts if part.code != 0]
    if chosen.times > 1:
        print(
            f"passed: {len(parts) - len(failed)} of {len(parts)}; what each said: {LOGS.relative_to(ROOT)}/"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
