"""Clean up after a measurement: end its processes and remove its scratch directories.

The first Ctrl-C or SIGTERM ends the running programs and removes their files. Further signals are
ignored meanwhile. A watchdog process does the same for a measurement that was killed. If the watchdog
died too, for example because the node lost power, the next cell removes the directories.

The watchdog starts with the cell and sleeps on a pipe. The measuring process reports process groups
and directories to it through the pipe. If the pipe closes while the watchdog's list is not empty,
the measuring process is dead, and the watchdog cleans up. The watchdog also watches the process that
ordered the measurement (a local Snakemake). When that process ends, the watchdog sends SIGTERM to the
measuring process.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import select
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import gethostname
from typing import NoReturn

from peakmark.errors import MeasurementError, Terminated

OWNER = "PEAKMARK_OWNER"
"""Environment variable with the ``process_identity`` of the process that ordered the measurement.

It is set only if that process runs on the same machine.
"""
MEASUREMENT = "PEAKMARK_MEASUREMENT"
"""Environment variable with the ``process_identity`` of the measuring process.

Every process that a measurement starts inherits it.
"""
GRACE_S = 20.0
"""Seconds between the watchdog's SIGTERM and its SIGKILL to the measuring process."""
END_S = 5.0
"""Longest wait, in seconds, for killed processes to end."""

PREFIX = "peakmark-"
MARK = ".peakmark-scratch"
"""File that marks each scratch directory made by this module.

Directories made by diskbench have no mark and hold only numbered files.
"""
YOUNG_S = 60.0
"""Age in seconds below which a directory is never removed, because it may not be locked yet."""
_NAME = r"peakmark-(serve-)?[A-Za-z0-9_]{6,8}"
_KERNEL_FILE = r"peakmark-[0-9]{1,10}"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # PR_SET_CHILD_SUBREAPER ..., linux/prctl.h

_pipe: int | None = None

pressed = False
"""True if Ctrl-C was pressed since ``once`` was called."""


def once() -> None:
    """Let the first Ctrl-C raise KeyboardInterrupt, and ignore every later Ctrl-C until this process ends.

    Do nothing if Ctrl-C is already ignored, as in the background of a script, or if the caller is not
    the main thread.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # another thread
            signal.signal(signal.SIGINT, _interrupted)


def _interrupted(*_: object) -> None:
    global pressed  # noqa: PLW0603 - of the whole process, as the signal is
    pressed = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def held(*signals: int) -> Iterator[None]:
    """Block Ctrl-C, or the given signals, while the block runs.

    If Ctrl-C arrives while Python forks, Python loses it and prints a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals or {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def not_ours() -> None:
    """Drop a pending Ctrl-C in a forked process, and let a later Ctrl-C end the process.

    The pending Ctrl-C was meant for the parent.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # drops a pending one
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def handled() -> Iterator[None]:
    """Handle Ctrl-C as in ``once`` while the block runs, then restore the handler.

    After a Ctrl-C nothing is restored, because the process is about to end.
    """
    once()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def end_cleanly(*others: int) -> None:
    """Let SIGTERM raise an error, so that programs are ended and scratch files removed.

    Args:
        others: further signals to handle like SIGTERM, unless they are ignored.
    """
    heeded = [number for number in others if signal.getsignal(number) is not signal.SIG_IGN]
    signals = [signal.SIGTERM, *heeded]

    def terminated(*_: object) -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise Terminated

    for number in signals:
        signal.signal(number, terminated)


@contextmanager
def watchdog() -> Iterator[None]:
    """Run the watchdog process while the block runs. Nested blocks share one watchdog."""
    global _pipe  # noqa: PLW0603 - one for each process, as forked children report to it
    if _pipe is not None:
        yield
        return
    read_fd, write_fd = os.pipe()
    mark = f"{MEASUREMENT}={process_identity()}"
    with held():
        child = os.fork()
        if child == 0:
            _run_watchdog(read_fd, write_fd, mark)
    os.close(read_fd)
    _pipe = write_fd
    try:
        yield
    finally:
        _pipe = None
        os.close(write_fd)
        os.waitpid(child, 0)


def group_started() -> None:
    """Report to the watchdog that the calling process leads a new process group.

    A forked child calls this before it executes the program.
    """
    _report(f"+group {os.getpid()}")


def group_ended(group: int) -> None:
    """Report to the watchdog that a process group has ended."""
    _report(f"-group {group}")


@contextmanager
def orphans_ended() -> Iterator[None]:
    """End the processes that are left over after the block from its programs, in any session.

    Ending the process group is not enough, because a daemon leaves its group by calling setsid. While
    the block runs, this process is a child subreaper (prctl(2)): it becomes the parent of its descendants'
    orphans. After the block it ends all children that it did not have before.
    """
    before, was = _children(), _is_subreaper()
    _set_subreaper(True)
    try:
        yield
    finally:
        _end_children(before)
        _set_subreaper(was)


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_GET_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    return bool(flag.value)


def _set_subreaper(on: bool) -> None:
    """Choose whether this process is a child subreaper: the parent of its descendants' orphans."""
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, ctypes.c_ulong(on), 0, 0, 0)


def _children() -> set[int]:
    """Return the process ids of this process's children, including ended ones."""
    ours, found = str(os.getpid()), set()
    with os.scandir("/proc") as entries:
        numbers = [entry.name for entry in entries if entry.name.isdigit()]
    for number in numbers:
        with suppress(OSError, IndexError):  # it has ended meanwhile
            if _stat_fields(number)[1] == ours:
                found.add(int(number))
    return found


def reap(group: int) -> None:
    """Collect the exit codes of ended processes of a group that are children of this process."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _end_children(kept: set[int]) -> None:
    """Kill the children of this process except ``kept``, and the orphans that they leave."""
    deadline = time.monotonic() + END_S
    while (children := _children() - kept) and time.monotonic() < deadline:
        for child in children:
            _signal(os.kill, child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(0.005)


def _report(line: str) -> None:
    if _pipe is not None:
        with suppress(OSError):  # if the watchdog was killed, measure without it
            os.write(_pipe, f"{line}\0".encode(errors="surrogateescape"))


def _stat_fields(process: int | str) -> list[str]:
    """Return the fields of /proc/PID/stat that follow the process's name (proc(5)).

    The name may contain any character, so it is skipped up to its last bracket.
    """
    text = Path(f"/proc/{process}/stat").read_bytes().decode(errors="replace")
    return text.rpartition(")")[2].split()


def _start_time(process: int) -> str:
    return _stat_fields(process)[19]


def process_identity() -> str:
    """Return process id and start time of this process, which no later process shares."""
    return f"{os.getpid()}:{_start_time(os.getpid())}"


def _open_owner() -> int | None:
    """Return a descriptor of the process that ``OWNER`` names, or None if it has ended or is unset."""
    number, _, started = os.environ.get(OWNER, "").partition(":")
    with suppress(OSError, ValueError):
        descriptor = os.pidfd_open(int(number))
        if _start_time(int(number)) == started:
            return descriptor
        os.close(descriptor)
    return None


def _run_watchdog(read_fd: int, write_fd: int, mark: str) -> NoReturn:
    """Run the watchdog in a forked process, then exit without returning to the caller's code.

    Args:
        read_fd: reading end of the pipe to the measuring process.
        write_fd: writing end of the pipe, to close.
        mark: ``NAME=value`` in the environment of every process that the measurement starts.
    """
    try:
        # Detach from the measuring process: its session, signals and open files.
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(write_fd)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        # Wait until the measuring process ends, then clean up what it left.
        items = _listen(read_fd)
        if items:
            _kill_marked(mark)
        for item in items:
            kind, _, name = item.partition(" ")
            if kind == "group":
                _kill_group(int(name))
            else:
                shutil.rmtree(name, ignore_errors=True)
    finally:
        os._exit(0)


def _listen(read_fd: int) -> set[str]:
    """Return the groups and directories that are still listed when the pipe closes.

    Meanwhile, stop the measuring process if the process that ordered the measurement ends.
    """
    items: set[str] = set()
    parent, owner = os.getppid(), _open_owner()
    deadline, rest = None, b""
    while True:
        wait = None
        if deadline is not None:
            wait = max(0.0, deadline - time.monotonic())
        watched = [read_fd]
        if owner is not None:
            watched.append(owner)
        ready, _, _ = select.select(watched, [], [], wait)
        # If the owner has ended, send SIGTERM, then SIGKILL after GRACE_S.
        if owner in ready:
            owner, deadline = None, time.monotonic() + GRACE_S
            _signal(os.kill, parent, signal.SIGTERM)
        elif deadline is not None and not ready:
            deadline = None
            if os.getppid() == parent:
                _signal(os.kill, parent, signal.SIGKILL)
        if read_fd not in ready:
            continue
        # Each line is + or -, then a group or directory, then a null byte.
        text = os.read(read_fd, 65536)
        if not text:
            return items
        *lines, rest = (rest + text).split(b"\0")
        for line in lines:
            item = line[1:].decode(errors="surrogateescape")
            if line.startswith(b"+"):
                items.add(item)
            else:
                items.discard(item)


def _kill_marked(mark: str) -> None:
    """Kill all processes with ``mark`` in their environment, also those that left their group."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                _signal(os.kill, int(path.parent.name), signal.SIGKILL)


def _kill_group(group: int) -> None:
    deadline = time.monotonic() + END_S
    while _signal(os.killpg, group, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.01)


def _signal(send: Callable[[int, int], None], target: int, number: int) -> bool:
    """Send a signal, and return whether it was sent.

    A target that this user may not signal counts as gone: its number has passed to a process of another
    user, or this process cannot end it anyway.
    """
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


@contextmanager
def private_directory(place: Path, purpose: str, prefix: str = PREFIX) -> Iterator[Path]:
    """Yield a new directory below ``place`` that only this user can enter, and remove it
    afterwards.

    The watchdog removes the directory if this process is killed. The directory has a mark and a lock
    (flock). The lock ends with this process, so that later runs recognise a leftover.

    Raises:
        MeasurementError: ``place`` cannot be used.
    """
    mark = {"host": gethostname(), "process": os.getpid(), "purpose": purpose}
    with ExitStack() as stack:
        try:
            path = Path(tempfile.mkdtemp(prefix=prefix, dir=place.absolute()))
            stack.callback(_remove_directory, path)
            _report(f"+directory {path}")
            descriptor = os.open(path, _FOLDER)
            stack.callback(os.close, descriptor)
            with suppress(OSError):  # without a lock, the directory is never treated as a leftover
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (path / MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")
        except OSError as error:
            raise MeasurementError(
                f"cannot use the scratch directory {place}: {error.strerror}; set scratch: to a directory on the node"
            ) from error
        yield path


def _remove_directory(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    _report(f"-directory {path}")


def disk_usage(directory: Path) -> int:
    """Return the disk space in bytes of all files below a directory. Do not follow links."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += Path(folder, name).lstat().st_blocks * 512
    return total


def remove_leftovers(place: Path) -> None:
    """Remove the scratch directories of dead runs directly below ``place``.

    Never follow links, so that a directory that was replaced by a link is not entered.
    """
    with suppress(OSError):
        for path in place.iterdir():
            if re.fullmatch(_NAME, path.name) and _is_leftover(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_leftover(path: Path) -> bool:
    """Return whether the directory was made by a dead run of this user on this host."""
    try:
        descriptor = os.open(path, _FOLDER)
    except OSError:
        return False
    try:
        # It must be private to this user, and old enough that its owner has locked it.
        status = os.fstat(descriptor)
        private = status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700
        if not private or time.time() - status.st_ctime < YOUNG_S:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its owner lives
        # It must be made by diskbench, or by peakmark on this host: other hosts may share scratch.
        names = os.listdir(descriptor)  # noqa: PTH208 - of the folder that was examined
        if MARK not in names:
            return all(re.fullmatch(_KERNEL_FILE, name) for name in names)
        mark = os.open(MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        with os.fdopen(mark, "rb") as stream:
            host: str = json.loads(stream.read(4096))["host"]
        return host == gethostname()
    except (OSError, ValueError, KeyError, TypeError):
        return False
    finally:
        os.close(descriptor)
