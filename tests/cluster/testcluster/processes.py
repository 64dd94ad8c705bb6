"""Processes of a cluster, found and ended by namespace and process id, never by name alone."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


class ClusterError(Exception):
    """A test cluster could not do something: one sentence, and the end of a log if there is one."""


@dataclass(frozen=True)
class Process:
    """A process; its start time (clock ticks after boot) tells it from a later one with its id."""

    pid: int
    start: int
    name: str

    def alive(self) -> bool:
        """Whether it still runs (a zombie does not)."""
        now = describe(self.pid)
        return now is not None and now.start == self.start

    def end(self, number: int = signal.SIGKILL, seconds: float = 10.0) -> bool:
        """Send the signal and wait for the end; False when it is still alive after ``seconds``."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive():  # the id may be another process's by now
                return True
            signal.pidfd_send_signal(handle, number)
            return bool(select.select([handle], [], [], seconds)[0])
        except ProcessLookupError:
            return True
        finally:
            os.close(handle)


def describe(pid: int) -> Process | None:
    """The process with this id, or None when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold anything. proc(5): the state is field 3, the start 22.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return None if fields[0] in "ZX" else Process(pid, int(fields[19]), name)


def namespace(pid: int | str, kind: str) -> int | None:
    """Number of a process's namespace of this kind (mnt, net, pid, uts); None when it has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def members(kind: str, number: int | None) -> Iterator[Process]:
    """Every running process in a namespace; of process tables, not those in a table inside it."""
    for entry in os.listdir("/proc"):
        if number is None or not entry.isdigit() or namespace(entry, kind) != number:
            continue
        if process := describe(int(entry)):
            yield process


def wait_until(
    condition: Callable[[], object], seconds: float, what: str, pause: float = 0.05
) -> None:
    """Return as soon as the condition holds. Raises ClusterError naming ``what`` if it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {seconds:g} s in vain for this: {what}")
        time.sleep(pause)
