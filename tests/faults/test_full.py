"""Scratch full before and in the middle, read-only; the results' disk full while records are
written.

Quotas: test_guest.py.
"""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable

import pytest
from bench import KERNELS, MIB, Bench, cpu_cell, disk_cell, executable

from peakmark.storage import records

Mount = Callable[..., None]
TOOLS = ["diskbench", "fio", "iozone"]

# Fills the disk when the measurement starts, as a neighbour would, then becomes the real program.
THIEF = """#!/bin/sh
case "$*" in *--version*|-v) exec {program} "$@" ;; esac
head -c {size} /dev/zero > {thief} 2> /dev/null
exec {program} "$@"
"""


@pytest.mark.parametrize("instrument", TOOLS)
def test_too_little_room_is_said_before_anything_is_written(
    bench: Bench, mount: Mount, instrument: str
) -> None:
    mount(bench.scratch, "tmpfs", "size=8m")
    cell = disk_cell(instrument, "ALL" if instrument == "iozone" else "WS", size=64 * MIB)
    done = bench.measure(cell)
    assert done.returncode == 1
    bench.assert_failed(cell, done.stderr, "free some space")


@pytest.mark.parametrize("instrument", TOOLS)
def test_a_disk_that_fills_up_in_the_middle_gives_no_number(
    bench: Bench, mount: Mount, instrument: str
) -> None:
    """Room for the file when it is looked, none when it is written."""
    mount(bench.scratch, "tmpfs", "size=8m")
    program = str(KERNELS / instrument) if instrument == "diskbench" else shutil.which(instrument)
    if program is None:
        pytest.skip(f"{instrument} is not here")
    thief = bench.scratch / "thief"
    tool = executable(
        bench.directory / "bin" / instrument,
        THIEF.format(program=program, size=64 * MIB, thief=f"'{thief}'"),
    )
    cell = disk_cell(instrument, "ALL" if instrument == "iozone" else "WS", size=4 * MIB)
    done = bench.measure(cell, str(tool), kernels=tool.parent)
    assert done.returncode == 1, done.stderr
    assert thief.stat().st_size > 0
    thief.unlink()
    bench.assert_failed(cell, done.stderr)
    assert "space" in done.stderr, done.stderr
    bench.assert_completes(cell)


def test_a_read_only_disk_is_named(bench: Bench, mount: Mount) -> None:
    mount(bench.scratch, "tmpfs", "size=8m,ro")
    cell = disk_cell()
    done = bench.measure(cell)
    assert done.returncode == 1
    reason = f"cannot use the scratch directory {bench.scratch}: Read-only file system"
    bench.assert_failed(cell, done.stderr, reason)


def test_a_full_results_disk_loses_no_finished_record(bench: Bench, mount: Mount) -> None:
    """Cells are measured until the disk refuses; every record that exists is whole, and with room
    the rest follows.
    """
    mount(bench.campaign, "tmpfs", "size=64k,nr_inodes=200")
    done, cells = None, [cpu_cell(repetition=number) for number in range(40)]
    bench.plan(cells)
    for cell in cells:
        done = bench.measure(cell)
        if done.returncode:
            break
        assert records.read(bench.record_path(cell))["status"] == "ok"
    assert done is not None and done.returncode == 1  # the disk was large enough for all
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert "Traceback" not in done.stderr
    bench.assert_nothing_left()
    present = [one for one in cells if bench.record_path(one).exists()]
    assert 0 < len(present) < len(cells)
    before = {one.id: records.read(bench.record_path(one)) for one in present}
    names = [path.name for path in bench.campaign.rglob("*") if path.name.endswith(".tmp")]
    assert not names  # no half file stays
    subprocess.run(["mount", "-o", "remount,size=8m", str(bench.campaign)], check=True)
    bench.assert_completes(cells[len(present)])
    assert {one.id: records.read(bench.record_path(one)) for one in present} == before


def test_a_results_folder_without_rights_is_one_sentence(bench: Bench, mount: Mount) -> None:
    mount(bench.campaign, "tmpfs", "size=1m")
    cell = cpu_cell()
    assert bench.measure(cell).returncode == 0
    before = bench.record_path(cell).read_text()
    argv = bench.argv(cpu_cell(repetition=1))
    subprocess.run(["mount", "-o", "remount,ro", str(bench.campaign)], check=True)
    done = bench.run(argv)
    assert done.returncode == 1
    assert os.strerror(errno.EROFS) in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(bench.record_path(cell).read_text()) == json.loads(before)
    bench.assert_nothing_left()
