"""Finding and ending exactly the processes that belong to a cluster: by namespace and by process
id, never by name alone.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError


@dataclass(frozen=True)
class Process:
    """A process, told from a later one with the same id by its start time (clock ticks after boot)."""

    pid: int
    start: int
    name: str

    def alive(self) -> bool:
        """Still running (a zombie counts as gone)."""
        now = describe(self.pid)
        return now is not None and now.start == self.start

    def end(self, number: int = signal.SIGKILL, seconds: float = 10.0) -> bool:
        """Send the signal and wait until the process is gone; False when it is still there after
        `seconds`.
        """
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if (
                not self.alive()
            ):  # the id was given to another process meanwhile: leave that one alone
                return True
            signal.pidfd_send_signal(handle, number)
            return bool(select.select([handle], [], [], seconds)[0])
        except ProcessLookupError:
            return True
        finally:
            os.close(handle)


def describe(pid: int) -> Process | None:
    """The process with this id, or None when there is none or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in parentheses and may hold anything; the fields after the last one are plain
    # (proc(5): state is 3, start 22).
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return None if rest[0] in "ZX" else Process(pid, int(rest[19]), name)


def namespace(pid: int | str, kind: str) -> int | None:
    """The number of the namespace of this kind ("mnt", "net", "pid", "uts") that the process is in,
    or None when it is gone.
    """
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def members(kind: str, number: int) -> Iterator[Process]:
    """Every running process in this namespace; of process tables, not those in a table inside it."""
    for entry in os.listdir("/proc"):
        if (
            entry.isdigit()
            and namespace(entry, kind) == number
            and (process := describe(int(entry)))
        ):
            yield process


def wait_until(
    condition: Callable[[], object], seconds: float, what: str, pause: float = 0.05
) -> None:
    """Return as soon as the condition holds. Raises ClusterError naming `what` when it does not
    within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {seconds:g} s in vain for this: {what}")
        time.sleep(pause)
