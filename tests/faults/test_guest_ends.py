"""Guests that end: at the deadline, after an error, not started at all, with one line why; and
those of other shapes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from bench import LIMIT_S, wait_for
from benchmarks import guest
from benchmarks.guest import GuestError, Machine, common, usermode

HERE = Path(__file__).resolve().parent


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
    monkeypatch.setattr(common, "SYSTEM_PATH", "/nowhere")
    reason = guest.why_not()
    assert reason is not None and "user-mode-linux" in reason and "\n" not in reason
    with pytest.raises(GuestError, match="install"):
        guest.call(tmp_path, "time:sleep", 0, limit_s=1)


def test_a_user_mode_kernel_that_does_not_boot_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Here, as it has too little memory for itself."""
    if reason := guest.why_not():
        pytest.skip(reason)
    monkeypatch.setattr(usermode, "MEMORY_MIB", 1)
    reason = guest.why_not()
    assert reason is not None and "\n" not in reason
    with pytest.raises(GuestError, match="user-mode kernel"):
        guest.call(tmp_path, "builtins:int", "1", limit_s=LIMIT_S)


@pytest.mark.trouble  # an emulated machine takes half a minute of a core to boot
def test_a_machine_has_the_shape_it_was_given(tmp_path: Path) -> None:
    machine = Machine(sockets=2, cores=2, threads=2, nodes=2)
    if reason := guest.why_not(machine):
        pytest.skip(reason)
    seen = guest.call(
        tmp_path, "guest_tasks:shape", machine=machine, limit_s=4 * LIMIT_S, path=[HERE]
    )
    places = [tuple(map(int, line.split(",")[:4])) for line in seen if not line.startswith("#")]
    cpus, cores, sockets, nodes = zip(*places, strict=True)
    assert cpus == tuple(range(machine.cpus))
    assert cores == (0, 0, 1, 1, 2, 2, 3, 3)
    assert sockets == nodes == (0, 0, 0, 0, 1, 1, 1, 1)


def test_a_machine_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="8 CPUs and 1024 MiB are not shared evenly by 3 nodes"):
        Machine(sockets=2, cores=4, nodes=3).argv()
