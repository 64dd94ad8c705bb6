"""The parts of `make test`, each with its time, and at the end in one line what was skipped, and
why.

    python tests/parts.py lint test-unit              targets of the Makefile, until one fails
    python tests/parts.py --times 10 --load 8 ...     all of them ten times, however each ends,
                                                      while 8 processes keep the machine busy

Parts that mostly wait, with linters and workflows, run beside all others; their output is shown whole
once they have ended. All output is kept in build/tests/. A test that is skipped prints a line of pytest's form, those in C as
well.
"""

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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "tests"
BESIDE = (("lint", "test-workflow"), ("test-cluster",), ("test-faults",))
"""Parts beside the others, each line one after the other. Most of the tests of the cluster and of
faults is waiting: for Slurm, for killed programs, for slow lines. Linters and workflows fill the CPU
that the others leave free. The unit tests, which use all CPUs, come last: whichever part is the last
one, no CPU is idle beside it.
"""
# It is killed when its parent ends (PR_SET_PDEATHSIG), however that ends.
BUSY = "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL)\nwhile True: pass"
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """One run of a target: its exit status, its seconds, and all that it printed."""

    name: str
    code: int
    seconds: float
    output: str

    def print_end(self) -> None:
        print(f"== {self.name}: {self.seconds:.0f} s{', FAILED' if self.code else ''}", flush=True)


def skipped(output: str) -> Counter[str]:
    """How many tests were skipped for which reason, as pytest's closing lines say."""
    reasons: Counter[str] = Counter()
    for count, reason in SKIPPED.findall(output):
        reasons[reason.removeprefix("Skipped: ").strip()] += int(count)
    return reasons


def run(name: str, log: Path, is_shown: bool) -> Part:
    """Make a target; its output goes to a log, and is shown as it comes."""
    log.parent.mkdir(parents=True, exist_ok=True)
    make = os.environ.get("MAKE", "make")
    # make test has set up and compiled before the parts; each would look again for a second.
    command = [make, "--no-print-directory", "--old-file=setup-test", "--old-file=kernels", name]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "bufsize": 0}
    began = time.monotonic()
    with (
        log.open("wb", buffering=0) as stream,
        subprocess.Popen(command, cwd=ROOT, env=environment, **pipe) as process,
    ):
        while piece := process.stdout.read(4096):
            stream.write(piece)
            if is_shown:
                sys.stdout.write(piece.decode(errors="replace"))
                sys.stdout.flush()
    seconds = time.monotonic() - began
    return Part(name, process.returncode, seconds, log.read_text(errors="replace"))


def run_all(targets: Sequence[str], suffix: str, go_on: bool) -> list[Part]:
    """Make each target; those of ``BESIDE`` in threads of their own where there are two CPUs.

    Args:
        targets: of the Makefile.
        suffix: of the name of each log.
        go_on: also after a failure.

    Returns:
        The parts in the order in which they ended.
    """
    lines = [[name for name in line if name in targets] for line in BESIDE]
    beside = [line for line in lines if line and len(os.sched_getaffinity(0)) > 1]
    first = [name for name in targets if not any(name in line for line in beside)]
    first = first or beside.pop()
    parts: list[Part] = []
    silent: list[Part] = []

    def run_each(names: Sequence[str], is_shown: bool) -> Iterator[Part]:
        for name in names:
            if go_on or not any(part.code for part in parts):
                part = run(name, LOGS / f"{name}{suffix}.log", is_shown)
                parts.append(part)
                yield part

    def show_silent() -> None:
        while silent:
            part = silent.pop(0)
            print(f"== {part.name} said:\n{part.output.rstrip()}")
            part.print_end()

    def run_silent(names: Sequence[str]) -> None:
        silent.extend(run_each(names, False))

    threads = [threading.Thread(target=run_silent, args=[line]) for line in beside]
    if beside:
        names = " ".join(name for line in beside for name in line)
        print(f"== {names}: beside the others, shown at the end of each", flush=True)
    for thread in threads:
        thread.start()
    for part in run_each(first, True):
        part.print_end()
        show_silent()
    for thread in threads:
        thread.join()
    show_silent()
    return parts


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that only compute, until the end of the block or of this process."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def print_summary(parts: Sequence[Part], seconds: float) -> None:
    """Times, then what was skipped in one line; ``seconds``: of all."""
    for part in parts:
        print(f"{part.name:<15}{part.seconds:5.0f} s  {'FAILED' if part.code else ''}".rstrip())
    reasons = sum((skipped(part.output) for part in parts), Counter())
    each = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
    print(f"{'all':<15}{seconds:5.0f} s")
    print(f"skipped here: {reasons.total()} tests{': ' + each if each else ''}")


def main(words: Sequence[str]) -> int:
    """Exit status: 1 when a part has failed."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("targets", nargs="+", help="of the Makefile")
    parser.add_argument("--times", type=int, default=1, help="more than 1 goes on after failures")
    parser.add_argument("--load", type=int, default=0, help="processes that keep the machine busy")
    options = parser.parse_args(words)
    several = options.times > 1
    parts: list[Part] = []
    began = time.monotonic()
    with busy(options.load):
        for number in range(1, options.times + 1):
            parts += run_all(options.targets, f"-{number}" if several else "", several)
            if several:
                print(f"== {number} of {options.times}", flush=True)
    print_summary(parts, time.monotonic() - began)
    failed = sum(part.code != 0 for part in parts)
    if several:
        logs = LOGS.relative_to(ROOT)
        print(f"passed: {len(parts) - failed} of {len(parts)}; what each said: {logs}/")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
