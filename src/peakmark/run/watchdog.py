"""A second process that puts away what a measuring process leaves behind when it is killed.

It sleeps on a pipe from the moment a cell begins; what is started and made is told it through the
pipe. When the pipe closes and something is still there, the measuring process is dead: the guard
ends the process groups and removes the private directories. It also watches the process that
ordered the measurement (a local Snakemake, named by the environment) and tells the measuring
process to end when that one is gone. What kills both at once, a node that loses power, leaves
directories for `peakmark clean`.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from peakmark import interrupts

OWNER = "PEAKMARK_OWNER"
"""Process id and start time of who ordered the measurement; only set where it is on the same
machine.
"""
GRACE_S = 20.0
END_S = 5.0

_pipe: int | None = None


@contextmanager
def standing() -> Iterator[None]:
    """The guard is up while the block runs. Within another one, that one serves."""
    global _pipe  # noqa: PLW0603 - one for each process, as children report from where no object is at hand
    if _pipe is not None:
        yield
        return
    read_fd, write_fd = os.pipe()
    with interrupts.held():
        child = os.fork()
        if child == 0:
            _keep(read_fd, write_fd)
    os.close(read_fd)
    _pipe = write_fd
    try:
        yield
    finally:
        _pipe = None
        os.close(write_fd)
        os.waitpid(child, 0)


def began() -> None:
    """Called by a new process that leads its own group, before it becomes the program."""
    tell("group", os.getpid())


def ended(group: int) -> None:
    """A process group that is gone."""
    tell("ended", group)


@contextmanager
def directory(path: Path) -> Iterator[None]:
    """A private directory that goes when the block is left, here or by the guard."""
    tell("made", path)
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)
        tell("removed", path)


def tell(word: str, what: object) -> None:
    """One line to the guard, if there is one."""
    if _pipe is not None:
        with contextlib.suppress(
            OSError
        ):  # a guard that was killed itself keeps nobody from measuring
            os.write(_pipe, f"{word} {what}\0".encode(errors="surrogateescape"))


def start_time(process: int) -> str:
    """When a process began, in clock ticks since boot: with its id it names one process for good.
    Errors: OSError.
    """
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[19]


def own() -> str:
    """The value of ``OWNER`` that names this process."""
    return f"{os.getpid()}:{start_time(os.getpid())}"


def _owner() -> int | None:
    """A descriptor of the process that ``OWNER`` names; None when there is none, or it is another
    by now.
    """
    number, _, started = os.environ.get(OWNER, "").partition(":")
    try:
        descriptor = os.pidfd_open(int(number))
        if start_time(int(number)) == started:
            return descriptor
        os.close(descriptor)
    except (OSError, ValueError):
        pass
    return None


def _keep(read_fd: int, write_fd: int) -> NoReturn:
    """The guard's whole life; it never returns into the program it was forked from."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(write_fd)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        _clear(*_listen(read_fd))
    finally:
        os._exit(0)


def _listen(read_fd: int) -> tuple[set[int], set[str]]:
    """Groups and directories that are there when the pipe closes."""
    groups: set[int] = set()
    directories: set[str] = set()
    parent, owner = os.getppid(), _owner()
    deadline, rest = None, b""
    while True:
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([read_fd] if owner is None else [read_fd, owner], [], [], wait)
        if owner is not None and owner in ready:
            owner, deadline = None, time.monotonic() + GRACE_S
            _signal(os.kill, parent, signal.SIGTERM)
        elif deadline is not None and not ready:
            deadline = None
            if os.getppid() == parent:
                _signal(os.kill, parent, signal.SIGKILL)
        if read_fd not in ready:
            continue
        text = os.read(read_fd, 65536)
        if not text:
            return groups, directories
        *lines, rest = (rest + text).split(b"\0")
        for line in lines:
            word, _, what = line.decode(errors="surrogateescape").partition(" ")
            match word:
                case "group":
                    groups.add(int(what))
                case "ended":
                    groups.discard(int(what))
                case "made":
                    directories.add(what)
                case "removed":
                    directories.discard(what)


def _clear(groups: set[int], directories: set[str]) -> None:
    for group in groups:
        deadline = time.monotonic() + END_S
        while _signal(os.killpg, group, signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(0.01)
    for path in directories:
        shutil.rmtree(Path(path), ignore_errors=True)


def _signal(send: object, target: int, number: int) -> bool:
    """Whether there was still somebody to hear it."""
    try:
        send(target, number)  # type: ignore[operator]
    except (ProcessLookupError, PermissionError):
        return False
    return True
