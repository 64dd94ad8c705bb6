"""Run one program within limits of time, memory and disk, keep its output, and end all its processes.

The program runs without a shell, in a separate process group. If the cell needs environment modules
(Environment Modules or Lmod), they are loaded first.
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
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from peakmark import data
from peakmark.errors import MeasurementError, Sentence, Unavailable
from peakmark.run import cleanup
from peakmark.tools.base import C_LOCALE, Command, Completed, signal_name

SHOWN_LINES = 5
"""Largest number of lines of a failed program's output that a message shows."""
KEPT_BYTES = 16 << 20
"""Largest number of bytes of a program's output that are kept, more than any known tool prints.

Without this limit, endless output would fill the disk that holds the records.
"""
RESERVED_BYTES = 64 << 10
"""Bytes reserved for each output file, so that a program that fills the disk can still print."""
FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h

READY = "ready"
"""Line that a held program (``Command.is_held``) prints when it can start. A cell that waits for other
cells prints it too.
"""
CHECK_S = 1.0
"""Seconds between two checks of a running program: rare enough not to disturb the measurement."""
LARGEST_WAIT_FACTOR = 10.0
"""Largest factor by which a busy machine extends the time limit of a program."""
MODULES_LIMIT_S = 60.0
"""Longest time, in seconds, in which environment modules must load."""
_JOB_VARIABLES = ("SLURM_", "SLURMD_", "SRUN_", "PMI_", "PMI2_", "PMIX_")
"""Prefixes of environment variables that programs do not inherit."""
_SIGNALS = {
    "SIGKILL": " (somebody killed it, or the system as memory ran out)",
    "SIGXFSZ": " (it wrote a larger file than the cell may)",
}
"""Signal -> its likely cause."""
_REASON = re.compile(
    r"error|fail|fatal|cannot|can't|could not|unable|denied|refused|no such|not found|not permitted|invalid|unknown|"
    r"abort|segmentation|out of memory|no space|exceeded|unsupported",
    re.IGNORECASE,
)
"""Words by which a line of output is recognised as the reason of a failure."""


@dataclass(frozen=True)
class Limits:
    """Limits of each process of a command.

    Slurm limits the job as a whole. These limits also hold without Slurm, and end one cell instead of
    the whole job.

    Attributes:
        memory_bytes: most bytes of private memory.
        file_bytes: most bytes of a file.
        fills_disk: whether the program may fill the disk, so that room for its output must be
            reserved before it starts.
    """

    memory_bytes: int | None = None
    file_bytes: int | None = 1 << 30
    fills_disk: bool = True

    def set(self) -> None:
        """Apply the limits to the calling process and to processes that it starts."""
        # No core file, which may be as large as the program's memory. RLIMIT_DATA instead of RLIMIT_AS, because
        # allocators reserve address space that they never use.
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
    """Return argv and environment with ``{address}``, ``{port}`` and ``{key}`` replaced.

    Other text in braces is kept.
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
    """Run ``command`` in ``directory`` until it ends, and return its output and exit code.

    Args:
        command: the program, with its time limit.
        directory: folder in which the program runs, and into which its output is written.
        values: placeholder in the command -> its value, see ``fill``.
        trouble: function that is called about once a second. It returns a reason to end the program,
            such as a server that has ended, or None.
        limits: limits of each process of the program.

    Raises:
        MeasurementError: the program cannot be started, exceeds its time limit, or ``trouble``
            returned a reason to end it.
    """
    started = time.monotonic()
    # Wait for the program. End it if it exceeds its time limit or meets trouble.
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
    """Return the error for a failed program, with the last lines that it printed.

    Args:
        argv: command of the program.
        how: how the program ended.
        directory: folder of its output.
        trouble: cause and remedy, if known. Either may be empty.
    """
    fact = f"{program_name(argv)} {how}{last_lines(directory)}"
    if trouble is None:
        return MeasurementError(fact)
    if trouble.fact:
        fact += f"; {trouble.fact}"
    return MeasurementError(fact, trouble.remedy)


def wait_factor() -> float:
    """Return the factor by which time limits are extended on a busy machine.

    The factor is the load average per CPU, from 1 to ``LARGEST_WAIT_FACTOR``. With it, a time limit
    ends a program that hangs, but not one that waits for a CPU.
    """
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(LARGEST_WAIT_FACTOR, max(1.0, crowd))


def _ends(process: Popen[bytes], within_s: float) -> bool:
    """Wait for a program, and return whether it ended within a time.

    ``Popen.wait`` is only used without pidfd, because it polls every 50 ms, which disturbs the
    measurement.
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
    """Read the text that a command has printed into ``directory`` so far, and its output files."""
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
    """Start a program in a new process group, and yield the process. After the block, end the group
    and all processes that left it.

    The program prints into the files ``stdout`` and ``stderr`` in ``directory``. Variables of the
    Slurm job are removed from its environment, because with them HPL's MPI expects to be started by
    srun and does not start.
    """
    argv, environment = fill(command, values or {})
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_JOB_VARIABLES)}
    inherited[cleanup.FOLDER] = str(directory)

    parent = os.getpid()

    def prepare() -> None:
        """Prepare the child process between fork and exec.

        Reset its signals, let it end with its parent, and set its limits and CPUs.
        """
        cleanup.reset_signals()
        cleanup.end_with(parent)
        limits.set()
        if command.cpus:
            os.sched_setaffinity(0, command.cpus)

    # Write the input files, then start the program with its output in files.
    for name, text in command.files.items():
        (directory / name).write_text(text, encoding="utf-8")
    with ExitStack() as stack:
        stack.callback(cleanup.end_programs, directory)
        with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
            if limits.fills_disk:
                _reserve(out.fileno())
                _reserve(err.fileno())
            try:
                # A signal is handled only when the process is known, so that it can be ended.
                with cleanup.held():
                    process = Popen(
                        argv,
                        # A held program waits for its start on standard input.
                        stdin=None if command.is_held else subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        cwd=directory,
                        env={**inherited, **C_LOCALE, **environment},
                        start_new_session=True,
                        preexec_fn=prepare,  # noqa: PLW1509 - this process has one thread
                    )
                    stack.callback(end, process)
            except OSError as error:
                raise MeasurementError(f"cannot start {argv[0]}: {error.strerror}") from error
        yield process


def _reserve(descriptor: int) -> None:
    """Reserve disk space for a program's output, so that it can print after it has filled the disk."""
    length = ctypes.c_int64(RESERVED_BYTES)
    ctypes.CDLL(None).fallocate(descriptor, FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), length)


def end(process: Popen[bytes], grace_s: float = 2.0) -> None:
    """End a process group: first by SIGTERM, so that the program can remove its files, then by
    SIGKILL.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + grace_s
        while _group_lives(process) and time.monotonic() < deadline:
            time.sleep(0.005)


def _group_lives(process: Popen[bytes]) -> bool:
    """Return whether ``process`` or a process of its group still exists.

    Processes of other users do not count, because this user cannot end them.
    """
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        # The group is not made yet, has ended, or has only processes of other users: its leader decides.
        return process.returncode is None
    return True


def program_name(argv: Sequence[str]) -> str:
    """Return the name of the program that a command runs, without a leading ``taskset -c 0,1``."""
    path = argv[0]
    if path == "taskset" and len(argv) > 3:
        path = argv[3]
    return Path(path).name


def describe_end(returncode: int) -> str:
    """Describe how a program ended: ``exit code 3``, or ``signal SIGKILL`` with its likely cause."""
    if returncode >= 0:
        return f"exit code {returncode}"
    name = signal_name(-returncode).removeprefix("signal ")
    return f"signal {name}{_SIGNALS.get(name, '')}"


def is_ready(directory: Path) -> bool:
    """Return whether a held program (``Command.is_held``) has finished its preparation and waits for its start."""
    return READY in _text(directory / "stderr").split("\n")


def last_lines(directory: Path) -> str:
    """Return ``: LINE | LINE``, with the lines of output that explain a program's failure.

    The text is empty if the program printed nothing. It has at most ``SHOWN_LINES`` lines: the first
    lines that match ``_REASON``, then the last lines. The last lines alone are not enough, because Open
    MPI prints 20 lines after the reason.
    """
    text = _text(directory / "stderr").strip() or _text(directory / "stdout")
    # A line of a message has at most 200 characters.
    lines = [line.strip()[:200] for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    # Leave room for the last two lines, which are always shown.
    reasons = [line for line in lines[:-SHOWN_LINES] if _REASON.search(line)]
    shown = reasons[: SHOWN_LINES - 2]
    last = lines[-SHOWN_LINES:]
    shown += last[len(shown) :]  # at most SHOWN_LINES in all
    return ": " + " | ".join(dict.fromkeys(shown))


def _text(path: Path) -> str:
    """Return the first ``KEPT_BYTES`` of a file of output; empty if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(KEPT_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


@contextmanager
def modules_loaded(
    names: Sequence[str], variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Load environment modules into this process's environment while the block runs.

    Args:
        names: names of the modules.
        variables: variables to set after the modules are loaded.

    Raises:
        MeasurementError: loading took too long.
        Unavailable: a module cannot be loaded. The message has the output of the module command.
    """
    if not names and not variables:
        yield
        return
    before = dict(os.environ)
    loaded = _module_environment(names) if names else before
    try:
        _set_environment({**loaded, **(variables or {})})
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _module_environment(names: Sequence[str]) -> dict[str, str]:
    """Load the modules in a shell, and return the environment of that shell."""
    try:
        done = subprocess.run(
            ["bash", "-c", data.text("modules.sh"), "modules", *names],
            capture_output=True,
            timeout=MODULES_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise MeasurementError(
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
        if equals and not name.startswith("BASH_FUNC_"):  # skip functions of the shell
            environment[name] = value
    return environment
