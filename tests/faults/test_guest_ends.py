"""A guest ends: at its deadline, after an error, and says in a line what is missing where there can be none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from bench import LIMIT_S, wait_for
from benchmarks import guest
from benchmarks.guest import GuestError


def processes_of(folder: Path) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it may end while it is looked at
            found += [path] if f"GUEST={folder}".encode() in path.read_bytes() else []
    return found


def test_a_guest_that_hangs_is_ended_and_its_errors_are_told(tmp_path: Path) -> None:
    if reason := guest.why_not():
        pytest.skip(reason)
    with pytest.raises(GuestError, match=r"did not end within 4 s"):
        guest.call(tmp_path, "time:sleep", 600, limit_s=4)
    wait_for(lambda: not processes_of(tmp_path), "no process of the guest is left")
    with pytest.raises(GuestError, match=r"(?s)ValueError.*'nonsense'"):
        guest.call(tmp_path, "builtins:int", "nonsense", limit_s=LIMIT_S)
    wait_for(lambda: not processes_of(tmp_path), "no process of the guest is left")


def test_without_a_user_mode_kernel_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(guest, "SYSTEM_PATH", "/nowhere")
    reason = guest.why_not()
    assert reason is not None and "user-mode-linux" in reason and "\n" not in reason
    with pytest.raises(GuestError, match="install"):
        guest.call(tmp_path, "time:sleep", 0, limit_s=1)
