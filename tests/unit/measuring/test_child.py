"""A program is started whole, whenever Ctrl-C comes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.unit.hostile import LIMIT_S

STARTS = """
import os, signal, sys
from pathlib import Path
from peakmark import interrupts
from peakmark.measuring import child, guard

interrupts.once()
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
if sys.argv[1] == "guard":
    with guard.standing():
        pass
else:
    shows = ["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]
    started = child.start(shows, Path("/"), {"PATH": os.environ["PATH"]}, 1, 2, lambda: None)
    sys.exit(started.wait())
"""


@pytest.mark.parametrize("what", ["guard", "program"])
def test_ctrl_c_in_a_fork_is_no_traceback_and_no_programs_matter(what: str) -> None:
    """Seen on a busy machine: it came while Python put its threads in order in the new process, which told so at length."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS, what], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    if what == "program":
        masks = [int(line.split()[1], 16) for line in done.stdout.splitlines()]
        assert len(masks) == 2
        assert not any(mask & 1 << 1 for mask in masks), "a later Ctrl-C ends it"
