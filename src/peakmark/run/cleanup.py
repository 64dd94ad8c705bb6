"""Clean up after a measurement: end its programs and remove its scratch directory.

The first Ctrl-C or SIGTERM ends the running programs and removes their files. Further signals are
ignored meanwhile. If the measuring process is killed, a guard process does the same; it sleeps on a pipe
that closes when the measuring process ends. If the guard died too, for example because the node lost
power, the next cell removes the directory.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import gethostname
from tempfile import TemporaryDirectory
from typing import NoReturn

from peakmark.errors import MeasurementError, Terminated

OWNER = "PEAKMARK_OWNER"
"""Environment variable with the id of the process that ordered the measurement, such as a local Snakemake.

It is set only if that process runs on the same machine. When it ends, the guard ends the measurement.
"""
FOLDER = "PEAKMARK_FOLDER"
"""Environment variable of every program of a measurement: the folder in which it was started.

Its child processes inherit the variable, so that they are found even if they left its process group.
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a measurement."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h
END_S = 5.0
"""Longest wait, in seconds, for killed processes to end."""

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore every later Ctrl-C
    raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM while the ``with`` block starts a process.

    Otherwise a signal handler could raise an error during the start, which would lose the
    started process.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def reset_signals() -> None:
    """Drop pending signals in a forked process, and let later ones end the process.

    The pending signals were meant for the parent.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_IGN)  # drops a pending one
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def end_with(parent: int) -> None:
    """Let the kernel kill this forked process when its parent ends.

    The guard finds processes by ``FOLDER`` in their environment, which a forked process lacks until
    it executes its program.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(1)


@contextmanager
def handled() -> Iterator[None]:
    """Handle Ctrl-C as in ``once`` while the block runs, then restore the handler.

    After a Ctrl-C nothing is restored, because the process is about to end.
    """
    once()
    try:
        yield
    finally:
        # A Ctrl-C has replaced ``_interrupted`` by SIG_IGN.
        if signal.getsignal(signal.SIGINT) is _interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def end_cleanly() -> None:
    """Let SIGTERM raise an error, so that programs are ended and scratch files removed."""
    signal.signal(signal.SIGTERM, _terminated)


def _terminated(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ignore every later SIGTERM
    raise Terminated


@contextmanager
def private_directory(place: Path) -> Iterator[Path]:
    """Yield a new directory below ``place`` that only this user can enter; remove it afterwards.

    If this process is killed, the guard ends the programs and removes the directory. The directory
    is locked (flock) as long as this process or the guard lives, so that later runs recognise a
    leftover.

    Raises:
        MeasurementError: ``place`` cannot be used.
    """
    with ExitStack() as stack:
        try:
            directory = TemporaryDirectory(
                prefix=f"peakmark-{gethostname()}.",
                dir=place.absolute(),
                ignore_cleanup_errors=True,
            )
            stack.callback(directory.cleanup)  # in case one of the next steps fails
            descriptor = os.open(directory.name, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
        except OSError as error:
            raise MeasurementError(
                f"cannot use the scratch directory {place}: {error.strerror}; set scratch: to a directory on the node"
            ) from error
        with suppress(OSError):  # a filesystem without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = Path(directory.name)
        stack.enter_context(_guarded(path))
        # The guard ends after the directory has been removed.
        stack.callback(directory.cleanup)
        yield path


@contextmanager
def _guarded(directory: Path) -> Iterator[None]:
    """Run a guard while the block runs: a process that cleans up if this one is killed."""
    reading, writing = os.pipe()
    with held():
        child = os.fork()
        if child == 0:
            _guard(reading, writing, directory)
    os.close(reading)
    try:
        yield
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def _guard(reading: int, writing: int, directory: Path) -> NoReturn:
    """Wait in a forked process until the measuring process ends, then remove what it left."""
    try:
        # Detach from the measuring process: its session, signals and open files.
        os.setsid()
        for number in (*SIGNALS, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(writing)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        # The pipe closes when the measuring process ends. Stop that process if its owner ends.
        measuring, watched = os.getppid(), [reading, *_owner()]
        while reading not in select.select(watched, [], [])[0]:
            os.kill(measuring, signal.SIGTERM)
            watched = [reading]
        # A second signal may have ended the measuring process while it ended its programs.
        end_programs(directory)
        # Linux shows no environment of a program that was just starting: search once more.
        time.sleep(0.01)
        end_programs(directory)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os._exit(0)


def _owner() -> list[int]:
    """Return [descriptor of the process that ``OWNER`` names], or [] without such a process."""
    with suppress(KeyError, OSError, ValueError):
        return [os.pidfd_open(int(os.environ[OWNER]))]
    return []


def end_programs(folder: Path) -> None:
    """Kill all processes of the programs that were started in a folder or below it."""
    deadline = time.monotonic() + END_S
    while (found := _programs(folder)) and time.monotonic() < deadline:
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.005)


def _programs(folder: Path) -> list[int]:
    """Return the ids of the processes of the programs that were started in a folder or below it."""
    entry = re.compile(rb"(?:^|\0)" + re.escape(f"{FOLDER}={folder}".encode()) + rb"[/\0]")
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it is another user's, or has ended meanwhile
            if entry.search(path.read_bytes()):
                found.append(int(path.parent.name))
    return found


def remove_leftovers(place: Path) -> None:
    """Remove the scratch directories of dead runs on this host directly below ``place``."""
    name = re.compile(rf"peakmark-{re.escape(gethostname())}\.[a-z0-9_]{{8}}")
    with suppress(OSError):
        for path in place.iterdir():
            if name.fullmatch(path.name) and _is_dead(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_dead(path: Path) -> bool:
    """Return whether a scratch directory is this user's and no process holds its lock.

    Return False if it cannot be opened: it is another user's, or has been removed meanwhile.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return path.stat().st_uid == os.geteuid()
