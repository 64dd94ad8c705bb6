"""Hostile input for the real commands: ``make fuzz-cli``, or ``python -m tests.faults.fuzz_cli
--seed 1 --count 900``.

Each input is a campaign, a file or a command line with something wrong in it, and a command that
reads it, in a process of its own. It must end by itself, in time, in a sentence or a result, and
touch nothing but the campaign that it was given. What fails is kept, with the words to run it
again.
"""

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas  # noqa: F401 - what most commands load, once for all of them
from tests.faults import hostile_kinds
from tests.faults.hostile_kinds import CAMPAIGN, PRECIOUS, Input, Kind

from peakmark import cli
from peakmark.analysis import compare  # noqa: F401
from peakmark.bundle import anonymise, bundle  # noqa: F401
from peakmark.figures import figures  # noqa: F401
from peakmark.workflow import doctor, status  # noqa: F401

LIMIT_S = 20.0
"""Of CPU time, as the machine may be busy with other things."""
PATIENCE_S = 100.0
"""After which a command is ended that waits."""
MOST_MEMORY = 2 << 30
CODES = (0, 1, 2)
TRACEBACK = 70


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit status, what it printed, the CPU time it took and how much
    memory it had (bytes).
    """

    code: int
    text: str
    seconds: float
    memory: int


def state(folder: Path) -> str:
    """A digest of names, kinds, contents and times of all that is below a folder."""
    digest = hashlib.sha256()
    for place, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(place) / name for name in sorted((*folders, *names))):
            about = path.lstat()
            digest.update(
                f"{path.relative_to(folder)} {about.st_mode} {about.st_mtime_ns}\n".encode()
            )
            if path.is_symlink():
                digest.update(os.readlink(path).encode())
            elif path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()


def run(place: Path, given: Input) -> Outcome:
    """Run a command in a process of its own, for at most ``PATIENCE_S`` seconds."""
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(place, given)
    code = None
    while code is None:
        ended, end, usage = os.wait4(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(end)
        elif time.monotonic() - begin > PATIENCE_S:
            os.killpg(child, signal.SIGKILL)
            _, _, usage = os.wait4(child, 0)
            code = -signal.SIGKILL
        else:
            time.sleep(0.002)
    text = (place / "printed").read_text(encoding="utf-8", errors="backslashreplace")
    return Outcome(code, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


def _become(place: Path, given: Input) -> None:
    """In the forked child: the command and nothing else, with no way back."""
    code = TRACEBACK
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        printed = os.open(place / "printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(printed, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        folders = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
        os.environ |= {**folders, "PYTHONFAULTHANDLER": "1"}
        tempfile.tempdir = None
        os.chdir(place)
        if given.closed:
            for stream in given.closed:
                os.close(stream)
            os.execv(sys.executable, [sys.executable, "-m", "peakmark", *given.words])
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
        sys.argv = ["peakmark", *given.words]
        code = cli.main(given.words)
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def judge(outcome: Outcome, before: str, after: str) -> list[str]:
    """What is wrong with an outcome, in few words; nothing where it is as it should be."""
    wrong = []
    if outcome.code == -signal.SIGKILL:
        wrong.append(f"it did not end within {PATIENCE_S:g} s")
    elif outcome.code not in CODES:
        wrong.append(f"it ended with {outcome.code}")
    if outcome.seconds > LIMIT_S:
        wrong.append(f"it took {outcome.seconds:.0f} s")
    if "Traceback" in outcome.text:
        wrong.append("traceback")
    if outcome.memory > MOST_MEMORY:
        wrong.append(f"it took {outcome.memory >> 20} MiB")
    if before != after:
        wrong.append("it changed files of others")
    if "\033" in outcome.text:
        wrong.append("it printed what a terminal obeys")
    if "delete" in outcome.text.lower():
        wrong.append("it advises to delete")
    return wrong


def one(base: Path, place: Path, seed: str, kind: Kind) -> tuple[list[str], Outcome, Input]:
    """Make the input of a seed, run its command and judge what came of it."""
    chance = random.Random(seed)  # noqa: S311 - the same seed gives the same input
    shutil.copytree(base, place, symlinks=True)
    (place / "tmp").mkdir()
    given = kind(place, chance)
    before = state(place / PRECIOUS)
    outcome = run(place, given)
    return judge(outcome, before, state(place / PRECIOUS)), outcome, given


def campaign(work: Path, seed: int, count: int, kinds: dict[str, Kind]) -> list[str]:
    """Run ``count`` inputs, a kind after the other. Returns a line for each that failed; prints a
    summary.
    """
    base = work / "base"
    hostile_kinds.prepare(base)
    (base / "tmp").mkdir()
    # In a process of its own, as all others: where Typst has run, its threads are missing in forked
    # processes, and waited for.
    made = run(base, Input(["bundle", str(CAMPAIGN), "-o", "c.zip"]))
    if made.code:
        raise RuntimeError(f"there is no bundle to begin with: {made.text}")
    shutil.rmtree(base / "tmp")
    failed: list[str] = []
    ended: Counter[str] = Counter()
    slowest = (0.0, "")
    names = list(kinds)
    for number in range(count):
        name = names[number % len(names)]
        place = work / f"{seed}.{number}"
        wrong, outcome, given = one(base, place, f"{seed}.{number}", kinds[name])
        ended[str(outcome.code)] += 1
        slowest = max(slowest, (outcome.seconds, f"{name} {seed}.{number}"))
        if wrong:
            failed.append(
                f"{name} {seed}.{number} in {place}: {', '.join(wrong)}: peakmark {' '.join(given.words)!r}"
            )
            print(failed[-1], *outcome.text.splitlines()[-3:], sep="\n    ", flush=True)
        else:
            shutil.rmtree(place, ignore_errors=True)
    codes = ", ".join(f"{number} ended with {code}" for code, number in sorted(ended.items()))
    print(
        f"seed {seed}: {count} inputs, {len(failed)} failed; {codes}; slowest {slowest[0]:.1f} s ({slowest[1]})"
    )
    return failed


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=900)
    parser.add_argument(
        "--kind", action="append", choices=hostile_kinds.KINDS, help="only these; default: all"
    )
    options = parser.parse_args()
    chosen = {name: hostile_kinds.KINDS[name] for name in options.kind or hostile_kinds.KINDS}
    work = Path(tempfile.mkdtemp(prefix="peakmark-fuzz-"))
    begin = time.monotonic()
    failed = campaign(work, options.seed, options.count, chosen)
    print(f"{time.monotonic() - begin:.0f} s")
    if failed:
        print(f"what failed is kept in {work}")
        return 1
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
