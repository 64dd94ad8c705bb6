"""Run one program within limits of time, memory and disk, keep its output, and leave nothing
behind.

The program runs without a shell in its own process group, with environment modules (Environment
Modules or Lmod) where it needs them.
"""

from __future__ import annotations

import ctypes
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

from peakmark import data
from peakmark.errors import MeasurementError, Sentence, Unavailable
from peakmark.run import cleanup
from peakmark.tools.base import C_LOCALE, Command, Completed, signal_name

SHOWN_LINES = 5
"""Most lines of a failed program's output in a message."""
KEPT_BYTES = 16 << 20
"""Most bytes that are kept of an output: more than any known tool prints. An endless output must not
fill the disk of records.
"""
RESERVED_BYTES = 64 << 10
"""Bytes that are reserved for each output file before a program can fill the disk."""
FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h

CHECK_S = 1.0
"""Seconds between two checks of a running program's server: rare enough not to disturb it."""
LARGEST_WAIT_FACTOR = 10.0
"""Largest factor by which a busy machine extends the time limit of a program."""
MODULES_LIMIT_S = 60.0
"""Seconds that loading environment modules may take."""
_JOB_VARIABLES = ("SLURM_", "SLURMD_", "SRUN_", "PMI_", "PMI2_", "PMIX_")
_SIGNALS = {
    "SIGKILL": " (somebody killed it, or the system as memory ran out)",
    "SIGXFSZ": " (it wrote a larger file than the cell may)",
}
_REASON = re.compile(
    r"error|fail|fatal|cannot|can't|could not|unable|denied|refused|no such|not found|not permitted|invalid|unknown|"
    r"abort|segmentation|out of memory|no space|exceeded|unsupported",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Limits:
    """Limits of every process of a command.

    Slurm limits a job too. These limits also hold without Slurm, and end one cell instead of the
    whole job.

    Attributes:
        memory_bytes: of its private memory.
        file_bytes: of its largest file.
        fills_disk: whether it may fill the disk, so that room for its messages is reserved first.
    """

    memory_bytes: int | None = None
    file_bytes: int | None = 1 << 30
    fills_disk: bool = True

    def set(self) -> None:
        """Set the limits of the calling process and of those it starts."""
        # Not RLIMIT_AS: allocators reserve address space that they never use.
        for what, value in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_DATA, self.memory_bytes),
            (resource.RLIMIT_FSIZE, self.file_bytes),
        ):
            if value is not None:
                hard = resource.getrlimit(what)[1]
                limit = value
                if hard != resource.RLIM_INFINITY:
                    limit = min(value, hard)
                resource.setrlimit(what, (limit, limit))


DEFAULT_LIMITS = Limits()


def fill(command: Command, values: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment with ``{address}``, ``{port}`` and ``{key}`` filled in. Keep
    other braces.
    """

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    environment = {name: filled(value) for name, value in command.env.items()}
    return [filled(word) for word in command.argv], environment


def run(
    command: Command,
    directory: Path,
    values: Mapping[str, str] | None = None,
    trouble: Callable[[], Sentence | None] = lambda: None,
    limits: Limits = DEFAULT_LIMITS,
) -> Completed:
    """Run ``command`` in ``directory`` to its end, whatever its exit code.

    Args:
        trouble: called now and then; returns a reason to stop, with its remedy, such as a client's
            server that has ended; else None.

    Raises:
        MeasurementError: when it cannot be started, passes its time limit or meets trouble.
    """
    started = time.monotonic()
    # Wait, and end the program at its limit or at trouble.
    with start(command, directory, values, limits=limits) as process:
        remaining = command.timeout_s
        while not _ends(process, max(0.0, min(remaining, CHECK_S))):
            limit = command.timeout_s * wait_factor()
            remaining = started + limit - time.monotonic()
            met = trouble()
            if met is None and remaining > 0:
                continue
            end(process)
            if met:
                raise failure(command.argv, "was ended", directory, met)
            how = f"did not end within {limit:.0f} s"
            raise failure(command.argv, how, directory)
    argv, _ = fill(command, values or {})
    elapsed = time.monotonic() - started
    return collect_output(command, directory, tuple(argv), process.returncode, elapsed)


def failure(
    argv: Sequence[str], how: str, directory: Path, trouble: Sentence | None = None
) -> MeasurementError:
    """Return the error for a program whose run does not count, with the last lines it printed.

    Args:
        how: how the program ended.
        trouble: why, where that is known, and its remedy; either may be empty.
    """
    fact = f"{program_name(argv)} {how}{last_lines(directory)}"
    if trouble is None:
        return MeasurementError(fact)
    if trouble.fact:
        fact += f"; {trouble.fact}"
    return MeasurementError(fact, trouble.remedy)


def wait_factor() -> float:
    """Return how many times as long a program may take as on an idle machine.

    It is the load average for each CPU, from 1 to ``LARGEST_WAIT_FACTOR``. So a time limit ends a
    program that hangs, not one that waits for its turn.
    """
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(LARGEST_WAIT_FACTOR, max(1.0, crowd))


def _ends(process: Popen[bytes], within_s: float) -> bool:
    """Return whether a program ends within a time. ``Popen.wait`` would poll every 50 ms, which
    disturbs the measurement.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # no descriptors left, or a kernel older than 5.3
        with suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
    else:
        select.select([descriptor], [], [], within_s)
        os.close(descriptor)
    return process.poll() is not None


def collect_output(
    command: Command,
    directory: Path,
    argv: tuple[str, ...],
    returncode: int,
    elapsed_s: float = 0.0,
) -> Completed:
    """Return the text that a command has printed into ``directory`` by now, and its output files."""
    present = [name for name in command.outputs if (directory / name).is_file()]
    files = {name: _text(directory / name) for name in present}
    stdout, stderr = _text(directory / "stdout"), _text(directory / "stderr")
    return Completed(argv, returncode, stdout, stderr, files, elapsed_s)


@contextmanager
def start(
    command: Command,
    directory: Path,
    values: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Popen[bytes]]:
    """Yield a started program in its own process group. End the group, and processes that left it,
    after the block.

    It prints into the files ``stdout`` and ``stderr`` of ``directory``. It does not see the Slurm
    job, because HPL's MPI would take itself for a step of srun and not start.
    """
    argv, environment = fill(command, values or {})
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_JOB_VARIABLES)}
    inherited[cleanup.MEASUREMENT] = cleanup.process_identity()

    def prepare() -> None:
        cleanup.not_ours()
        cleanup.group_started()
        limits.set()
        if command.cpus:
            os.sched_setaffinity(0, command.cpus)

    # Write the input files, then start the program with its output in files.
    for name, text in command.files.items():
        (directory / name).write_text(text, encoding="utf-8")
    with cleanup.orphans_ended():
        with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
            if limits.fills_disk:
                _reserve(out.fileno())
                _reserve(err.fileno())
            try:
                with cleanup.held():
                    process = Popen(
                        argv,
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        cwd=directory,
                        env={**inherited, **C_LOCALE, **environment},
                        start_new_session=True,
                        preexec_fn=prepare,  # noqa: PLW1509 - this process has one thread
                    )
            except OSError as error:
                raise MeasurementError(f"cannot start {argv[0]}: {error.strerror}") from error
        try:
            yield process
        finally:
            end(process)
            cleanup.group_ended(process.pid)


def _reserve(descriptor: int) -> None:
    """Reserve room for a program's messages before the program can fill the disk."""
    length = ctypes.c_int64(RESERVED_BYTES)
    ctypes.CDLL(None).fallocate(descriptor, FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), length)


def end(process: Popen[bytes], grace_s: float = 2.0) -> None:
    """End the whole process group: by SIGTERM, so that a kernel can remove its files, then by
    SIGKILL.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + grace_s
        while _group_lives(process) and time.monotonic() < deadline:
            time.sleep(0.005)


def _group_lives(process: Popen[bytes]) -> bool:
    """Return whether the leader or a descendant in its group still exists."""
    if process.poll() is not None:
        cleanup.reap(process.pid)
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return process.returncode is None
    return True


def program_name(argv: Sequence[str]) -> str:
    """Return the name of the program of a command. A leading ``taskset -c 0,1`` only sets its CPUs."""
    path = argv[0]
    if path == "taskset" and len(argv) > 3:
        path = argv[3]
    return Path(path).name


def describe_end(returncode: int) -> str:
    """Return ``exit code 3``, or ``signal SIGKILL`` with its likely cause."""
    if returncode >= 0:
        return f"exit code {returncode}"
    name = signal_name(-returncode).removeprefix("signal ")
    return f"signal {name}{_SIGNALS.get(name, '')}"


def last_lines(directory: Path) -> str:
    """Return the lines that explain a program's failure, at most ``SHOWN_LINES``.

    They are the first lines that sound like a reason, and the last lines. A long farewell may
    follow the reason (Open MPI's has 20 lines).
    """
    text = _text(directory / "stderr").strip() or _text(directory / "stdout")
    lines = [line.strip()[:200] for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines[:-SHOWN_LINES] if _REASON.search(line)]
    shown = reasons[: SHOWN_LINES - 2]
    shown += lines[-SHOWN_LINES:][len(shown) :]
    if not shown:
        return ""
    return ": " + " | ".join(dict.fromkeys(shown))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(KEPT_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


@contextmanager
def modules_loaded(names: Sequence[str]) -> Iterator[None]:
    """Load environment modules into this process's environment while the block runs.

    Raises:
        Unavailable: with the output of the module command.
    """
    if not names:
        yield
        return
    before, loaded = dict(os.environ), _module_environment(names)
    try:
        _set_environment(loaded)
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _module_environment(names: Sequence[str]) -> dict[str, str]:
    """Return the environment of a shell in which the modules are loaded."""
    try:
        done = subprocess.run(
            ["bash", "-c", data.text("modules.sh"), "modules", *names],
            capture_output=True,
            timeout=MODULES_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"loading the modules {' '.join(names)} took longer than {MODULES_LIMIT_S:.0f} s"
        ) from None
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise Unavailable(
            f"cannot load the modules {' '.join(names)}: {said}", "module avail lists them"
        )
    entries = done.stdout.decode(errors="surrogateescape").split("\0")
    environment = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if equals and not name.startswith("BASH_FUNC_"):  # functions of the shell
            environment[name] = value
    return environment
