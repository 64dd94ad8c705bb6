"""Start a program and know how it ended: what ``subprocess`` does, which takes longer to load than a short cell to measure."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from peakmark import interrupts
from peakmark.lean import NoReturn

SHORTEST_S, LONGEST_S = 0.0005, 0.05
# What Python itself ignores, and a program expects as it was.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Child:
    """A program that was started. ``returncode`` is negative for a signal, and None until its end was asked for."""

    def __init__(self, argv: Sequence[str], pid: int) -> None:
        self.args, self.pid = tuple(argv), pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int:
        """How it ended, once it has."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends in time, where the kernel cannot be asked to tell."""
        deadline, pause = time.monotonic() + seconds, SHORTEST_S
        while self.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            pause = min(2 * pause, left, LONGEST_S)
            time.sleep(pause)
        return True


def start(
    argv: Sequence[str],
    directory: Path,
    env: Mapping[str, str],
    out: int,
    err: int,
    prepare: Callable[[], None],
) -> Child:
    """Run a program in a session of its own, with nothing to read. No other open file of this process goes to it.

    out, err  descriptors that it writes to
    prepare   called in its process before it becomes the program

    Errors: OSError when it cannot be executed.
    """
    ear, mouth = os.pipe()  # closed by what executes the program
    try:
        with interrupts.held():
            pid = os.fork()
            if pid == 0:
                _become(argv, directory, env, out, err, prepare, mouth)
    except OSError:
        os.close(ear)
        raise
    finally:
        os.close(mouth)
    with os.fdopen(ear, "rb") as failure:
        number = failure.read()
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)), argv[0])
    return Child(argv, pid)


def _become(
    argv: Sequence[str],
    directory: Path,
    env: Mapping[str, str],
    out: int,
    err: int,
    prepare: Callable[[], None],
    mouth: int,
) -> NoReturn:
    """The new process's whole life as Python: it never returns into the program it was forked from."""
    number = 0
    try:
        os.setsid()
        interrupts.not_ours()
        prepare()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        with os.scandir("/proc/self/fd") as entries:
            for descriptor in [int(entry.name) for entry in entries if int(entry.name) > 2]:
                _no_heir(descriptor)
        os.chdir(directory)
        for ignored in _IGNORED_BY_PYTHON:
            signal.signal(ignored, signal.SIG_DFL)
        os.execvpe(argv[0], list(argv), env)  # noqa: S606 - no shell is wanted
    except OSError as error:
        number = error.errno or 0
    finally:
        os.write(mouth, str(number or 22).encode())
        os._exit(127)


def _no_heir(descriptor: int) -> None:
    try:
        os.set_inheritable(descriptor, False)
    except OSError:
        return  # the one that listed them
