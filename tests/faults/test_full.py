"""Scratch full before and in the middle."""

import shutil

import pytest
from bench import KERNELS, MIB, disk_cell
from tests.programs import executable

TOOLS = ["diskbench", "fio", "iozone"]

# Fills the disk when the measurement starts, as a neighbour would, then becomes the real program.
THIEF = """#!/bin/sh
case "$*" in *--version*|-v) exec {program} "$@" ;; esac
head -c {size} /dev/zero > {thief} 2> /dev/null
exec {program} "$@"
"""


@pytest.mark.parametrize("instrument", TOOLS)
def test_too_little_room_is_said_before_anything_is_written(bench, small_scratch, instrument):
    cell = disk_cell(instrument, "ALL" if instrument == "iozone" else "WS", size=64 * MIB)
    done = bench.measure(cell)
    assert done.returncode == 4
    bench.assert_failed(cell, done.stderr, "free disk space")


@pytest.mark.parametrize("instrument", TOOLS)
def test_a_disk_that_fills_up_in_the_middle_gives_no_number(bench, small_scratch, instrument):
    """Room for the file when it is looked, none when it is written."""
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
    assert done.returncode == 4, done.stderr
    assert thief.stat().st_size > 0
    thief.unlink()
    bench.assert_failed(cell, done.stderr)
    assert "space" in done.stderr, done.stderr
    bench.assert_completes(cell)
