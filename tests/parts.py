"""The parts of `make test` one after the other, each with its time, and at the end in one line what was skipped, and why.

    python tests/parts.py lint test-unit              each a target of the Makefile; ends with the first that fails
    python tests/parts.py --times 10 --load 8 ...     so often, however each ends, while 8 processes keep the machine busy

What a part said is kept in build/tests/. A test that is skipped says so in a line of pytest's form, those in C as well.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "tests"
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


def run(name: str, log: Path) -> Part:
    """Make a target, shown and kept."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [os.environ.get("MAKE", "make"), "--no-print-directory", name]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    began = time.monotonic()
    with (
        log.open("w") as kept,
        subprocess.Popen(
            words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        while piece := process.stdout.read(1):
            sys.stdout.write(piece)
            kept.write(piece)
            if not piece.isalnum():
                sys.stdout.flush()
    seconds = time.monotonic() - began
    print(f"== {name}: {seconds:.0f} s{'' if process.returncode == 0 else ', FAILED'}", flush=True)
    return Part(name, process.returncode, seconds, skipped(log.read_text()))


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that only compute, until the end of the block or of this process."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", BUSY])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def told(parts: Sequence[Part]) -> str:
    """Times, then what was skipped in one line, then what failed."""
    whole = sum(part.seconds for part in parts)
    lines = [f"{part.name:<15}{part.seconds:5.0f} s{'' if part.code == 0 else '  FAILED'}" for part in parts]
    lines.append(f"{'all':<15}{whole:5.0f} s")
    reasons: Counter[str] = sum((part.skipped for part in parts), Counter())
    each = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    lines.append(f"skipped here: {reasons.total()} tests{': ' + each if each else ''}")
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", help="of the Makefile")
    parser.add_argument(
        "--times", type=int, default=1, help="how often each is run; more than once goes on after a failure"
    )
    parser.add_argument("--load", type=int, default=0, help="processes that keep the machine busy meanwhile")
    chosen = parser.parse_args(words)
    parts: list[Part] = []
    with busy(chosen.load):
        for number in range(1, chosen.times + 1):
            for target in chosen.targets:
                parts.append(run(target, LOGS / (f"{target}.log" if chosen.times == 1 else f"{target}-{number}.log")))
                if parts[-1].code != 0 and chosen.times == 1:
                    break
            if chosen.times > 1 or parts[-1].code != 0:
                print(f"== {number} of {chosen.times}", flush=True)
    print(told(parts))
    failed = [part for part in parts if part.code != 0]
    if chosen.times > 1:
        print(f"passed: {len(parts) - len(failed)} of {len(parts)}; what each said: {LOGS.relative_to(ROOT)}/")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
