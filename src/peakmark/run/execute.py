"""Run one program: no shell, own process group, limits in time, memory and disk, output kept whole,
nothing left behind.
"""

from __future__ import annotations

import math
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from peakmark import interrupts
from peakmark.reasons import MeasurementError
from peakmark.run import watchdog
from peakmark.tools.base import C_LOCALE, Command, Completed, signal_name

SHOWN_LINES = 5
KEPT_BYTES = 16 << 20
"""More than any known tool prints; a tool that goes on for ever must not fill the disk of records.
"""

RESERVED_BYTES = 64 << 10
FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h

LONGEST_S = 3600.0
LOOK_S = 1.0
"""How often a running client's server is looked after: rarely enough not to be measured."""
MOST_CROWDED = 10.0
"""By how much at most a limit grows where many want each CPU: what hangs ends some time on a busy
machine too.
"""


@dataclass(frozen=True)
class Limits:
    """What every process of a command may have: bytes of memory of its own, and bytes of its
    largest file.

    Slurm limits a job too; these hold where there is no Slurm, and end one cell instead of the
    whole job.

    fills_disk  whether it writes so much that room for its words is taken first
    """

    memory_bytes: int | None = None
    file_bytes: int | None = 1 << 30
    fills_disk: bool = True

    def set(self) -> None:
        """Take effect in the calling process and those it starts."""
        _lower(resource.RLIMIT_CORE, 0)
        if self.memory_bytes is not None:
            # Not RLIMIT_AS: allocators reserve address space that they never use.
            _lower(resource.RLIMIT_DATA, self.memory_bytes)
        if self.file_bytes is not None:
            _lower(resource.RLIMIT_FSIZE, self.file_bytes)


USUAL = Limits()

Trouble = tuple[str, dict[str, Any]]
"""Why a program's run does not count: a code of ``messages.yaml``, and its values."""


def _lower(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def fill(command: Command, values: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """argv and environment with ``{address}``, ``{port}`` and ``{key}`` filled in; other braces
    stay as they are.
    """

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    return [filled(word) for word in command.argv], {
        name: filled(value) for name, value in command.env.items()
    }


def run(
    command: Command,
    directory: Path,
    values: Mapping[str, str] | None = None,
    trouble: Callable[[], Trouble | None] | None = None,
    limits: Limits = USUAL,
) -> Completed:
    """Run ``command`` in ``directory`` to its end.

    ``trouble`` is asked now and then why there is no sense in waiting on, as when the server of a
    client is gone.

    Errors: MeasurementError when it cannot be started, passes its time limit (a longer one where
    many want each CPU, see ``share``) or meets trouble; the exit code is for the caller.
    """
    started = time.monotonic()
    with start(command, directory, values, limits=limits) as process:
        left = command.timeout_s
        while not _ends(process, max(0.0, min(left, LOOK_S) if trouble else left)):
            limit = command.timeout_s * share()
            left = started + limit - time.monotonic()
            met = trouble() if trouble else None
            if met is None and left > 0:
                continue
            end(process)
            how = "was ended" if met else f"did not end within {limit:.0f} s"
            raise failed(command.argv, how, directory, met or ("timeout", {}))
    argv, _ = fill(command, values or {})
    return left_by(command, directory, tuple(argv), process.wait(), time.monotonic() - started)


def failed(argv: Sequence[str], how: str, directory: Path, met: Trouble) -> MeasurementError:
    """What is raised for a program that ended in a way that does not count, with the last lines it
    printed.
    """
    code, values = met
    return MeasurementError(
        code, program=program(argv), how=how, said=last_lines(directory), **values
    )


def share() -> float:
    """How many times as long a program may take as on an idle machine: the number of tasks that
    want each CPU by the load average, between 1 and ``MOST_CROWDED``. A limit is there to end
    what hangs, not what has to wait for its turn.
    """
    return min(MOST_CROWDED, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _ends(process: Popen[bytes], within_s: float) -> bool:
    """Whether a program ends in time. The kernel tells: to look every 50 ms would wake this process
    beside the measurement, and be late by half of that.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # no descriptors left, or a kernel older than 5.3
        descriptor = None
    try:
        if descriptor is not None:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            return bool(poller.poll(math.ceil(min(within_s, LONGEST_S) * 1e3)))
        with suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
        return process.poll() is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def left_by(
    command: Command,
    directory: Path,
    argv: tuple[str, ...],
    returncode: int,
    elapsed_s: float = 0.0,
) -> Completed:
    """What a command has left in ``directory`` by now: all that it printed, and its output files."""
    return Completed(
        argv=argv,
        returncode=returncode,
        stdout=_text(directory / "stdout"),
        stderr=_text(directory / "stderr"),
        files={
            name: _text(directory / name)
            for name in command.outputs
            if (directory / name).is_file()
        },
        elapsed_s=elapsed_s,
    )


def inherited() -> dict[str, str]:
    """The environment of this process without what tells of a Slurm job: HPL's MPI would take it
    for orders, and refuse to start where Slurm was not built with its PMI.
    """
    foreign = ("SLURM_", "SLURMD_", "SRUN_", "PMI_", "PMI2_", "PMIX_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


@contextmanager
def start(
    command: Command,
    directory: Path,
    values: Mapping[str, str] | None = None,
    limits: Limits = USUAL,
) -> Iterator[Popen[bytes]]:
    """A started program in its own process group; the group is ended when the block is left,
    however it is left.

    It prints into the files ``stdout`` and ``stderr`` of ``directory``.
    """
    argv, env = fill(command, values or {})

    def prepare() -> None:
        interrupts.not_ours()
        watchdog.began()
        limits.set()
        if command.cpus:
            os.sched_setaffinity(0, command.cpus)

    for name, text in command.files.items():
        (directory / name).write_text(text, encoding="utf-8")
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        for stream in (out, err) if limits.fills_disk else ():
            _reserve(stream.fileno())
        environment = {**inherited(), **C_LOCALE, **env}
        try:
            with interrupts.held():
                process = Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=directory,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=prepare,  # noqa: PLW1509 - this process has one thread
                )
        except OSError as error:
            raise MeasurementError("not-started", program=argv[0], why=error.strerror) from error
    try:
        yield process
    finally:
        end(process)
        watchdog.ended(process.pid)


def _reserve(descriptor: int) -> None:
    """Room for a program's words, taken before the program can fill the disk: it must be able to
    say so.
    """
    import ctypes  # late: it takes as long to load as a small program to run

    libc = ctypes.CDLL(None)
    libc.fallocate(
        descriptor, FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(RESERVED_BYTES)
    )


def end(process: Popen[bytes], grace_s: float = 2.0) -> None:
    """End the whole process group: asked first, so that a kernel can remove its files, then made
    to.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + grace_s
        while _group_lives(process) and time.monotonic() < deadline:
            time.sleep(0.005)


def _group_lives(process: Popen[bytes]) -> bool:
    """Whether the leader or any descendant that stayed in its group is still there."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return process.returncode is None
    return True


def program(argv: Sequence[str]) -> str:
    """Name of the program that a command runs: ``taskset -c 0,1`` before it only gives it its CPUs."""
    return Path(argv[3] if argv[0] == "taskset" and len(argv) > 3 else argv[0]).name


def how_ended(returncode: int) -> str:
    """``exit code 3``, or ``signal SIGKILL`` with what it may mean."""
    if returncode >= 0:
        return f"exit code {returncode}"
    name = signal_name(-returncode).removeprefix("signal ")
    return f"signal {name}{_SIGNALS.get(name, '')}"


_SIGNALS = {
    "SIGKILL": " (somebody killed it, or the system as memory ran out)",
    "SIGXFSZ": " (it wrote a larger file than the cell may)",
}


_TELLING = (
    r"error|fail|fatal|cannot|can't|could not|unable|denied|refused|no such|not found|not permitted|invalid|unknown|"
    r"abort|segmentation|out of memory|no space|exceeded|unsupported"
)


def last_lines(directory: Path) -> str:
    """What a program said of its failure, for the message about it: the first lines that sound like
    a reason, which a long farewell may follow (Open MPI's has 20 lines), and the last ones; at
    most ``SHOWN_LINES``.
    """
    text = _text(directory / "stderr").strip() or _text(directory / "stdout")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [
        number
        for number, line in enumerate(lines[:-SHOWN_LINES])
        if re.search(_TELLING, line, re.IGNORECASE)
    ][: SHOWN_LINES - 2]
    last = range(max(0, len(lines) - SHOWN_LINES + len(telling)), len(lines))
    shown = [lines[number][:200] for number in (*telling, *last)]
    return ": " + " | ".join(dict.fromkeys(shown)) if shown else ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(KEPT_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
