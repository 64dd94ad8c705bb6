"""diskbench, IOZone and fio: variants, sizes, what each command says."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.errors import ConfigError
from peakmark.machine import storage
from peakmark.machine.host import Host
from peakmark.reasons import Unavailable
from peakmark.resources import ROOT
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed
from peakmark.tools.programs.diskbench import engine_of
from peakmark.tools.programs.iozone import USUAL_LARGEST, Iozone

MIB = 1 << 20


def disk(
    instrument: str, workload: str, variant: str, block: int, n: int, **options: object
) -> Cell:
    return samples.cell("disk", instrument, workload, variant, block, n, **options)


def argv(cell: Cell) -> tuple[str, ...]:
    tool = samples.tool(cell.instrument)
    return REGISTRY[cell.instrument].prepare(cell, tool, samples.workspace()).command.argv


def test_variants() -> None:
    assert engine_of(disk("fio", "RR", "psync", 4096, 1)) == ("psync", 1)
    assert engine_of(disk("fio", "RR", "io_uring-qd32", 4096, 1, engine="io_uring", depth=32)) == (
        "io_uring",
        32,
    )
    for variant in ("", "io_uring", "io_uring-qd0", "libaio-qd4", "io_uring-qd4x"):
        with pytest.raises(ConfigError, match=r"psync or e\.g\."):
            engine_of(disk("fio", "RR", variant, 4096, 1))
        for name in ("fio", "diskbench"):
            with pytest.raises(Unavailable, match="io_uring-qdN"):
                argv(disk(name, "RR", variant, 4096, 1))
    with pytest.raises(ConfigError, match="depth=8 contradicts variant io_uring-qd32"):
        engine_of(disk("fio", "RR", "io_uring-qd32", 4096, 1, depth=8))


def test_how_is_written_reaches_every_program() -> None:
    asked = {"sync": "each", "fill": "new", "size": 8 * MIB}
    own = argv(disk("diskbench", "WS", "psync", MIB, 2, **asked))
    assert own[own.index("--sync") :][:4] == ("--sync", "each", "--fill", "new")
    assert "--sync" not in argv(disk("diskbench", "WS", "psync", MIB, 2))
    fio = argv(disk("fio", "WS", "psync", MIB, 2, seconds=5, **asked))
    assert {"--sync=1", "--overwrite=0", f"--io_size={4 * MIB}"} <= {
        *fio
    } and "--time_based" not in fio
    plain = argv(disk("fio", "WS", "psync", MIB, 2, seconds=5))
    assert "--sync=1" not in plain and {"--overwrite=1", "--time_based"} <= {*plain}
    assert "-o" in argv(disk("iozone", "ALL", "psync", MIB, 2, **asked))
    assert "-o" not in argv(disk("iozone", "ALL", "psync", MIB, 2))


def test_new_files_of_iozone_are_its_first_phase() -> None:
    iozone = REGISTRY["iozone"]
    cell, completed = samples.load("iozone/t2-1m")
    found = {}
    for fill in ("overwrite", "new"):
        of = dataclasses.replace(cell, options={**cell.options, "fill": fill})
        found[fill] = {row.workload: row for row in iozone.parse(of, completed).measurements}
    old, new = found["overwrite"], found["new"]
    assert (old["WS"].details["phase"], new["WS"].details["phase"]) == ("rewrite", "write")
    assert (
        new["WS"].value == old["WS"].details["write"]
        and old["WS"].value == new["WS"].details["rewrite"]
    )
    fills = {one: new[one].details.get("fill") for one in new}
    assert fills == {"WS": "new", "WR": "overwrite", "RS": None, "RR": None}
    for one in ("RS", "RR", "WR"):
        assert new[one].value == old[one].value


def test_writes_that_wait_for_the_device_have_more_time() -> None:
    for name, workload in (("diskbench", "WS"), ("fio", "WS"), ("iozone", "ALL")):
        plain, waiting = (
            REGISTRY[name]
            .estimate(disk(name, workload, "psync", 4096, 1, size=MIB, total=MIB, **more))
            .seconds
            for more in ({}, {"sync": "each"})
        )
        assert waiting > plain + 0.4


REFUSED = "Error: maximum record size 102400 kB is greater than maximum buffer size 16384 kB\n"
"""What IOZone 3.489 prints, with exit code 23."""


def test_a_record_that_this_build_of_iozone_refuses_is_no_failure() -> None:
    iozone = REGISTRY["iozone"]
    cell = disk("iozone", "ALL", "psync", 100 * MIB, 1)
    command = iozone.prepare(cell, samples.tool("iozone"), samples.workspace()).command
    done = Completed(command.argv, 23, REFUSED, "")
    assert done.returncode in command.ok_codes
    with pytest.raises(Unavailable, match="16MiB, the cell's is 100MiB"):
        iozone.parse(cell, done)


def test_the_largest_record_is_asked_of_the_build(tmp_path: Path) -> None:
    program = tmp_path / "iozone"
    for said, largest in (
        (REFUSED.replace("16384", "4096"), 4 * MIB),
        (
            "iozone: help mode\n\n    Usage: iozone [-s filesize_kB] [-r record_size_kB]\n",
            1024 * MIB,
        ),
        ("Segmentation fault\n", USUAL_LARGEST),
    ):
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}END\nexit 23\n")
        program.chmod(0o755)
        assert Iozone().largest(str(program)) == largest


@pytest.mark.parametrize(("name", "workload"), [("iozone", "ALL"), ("fio", "RR")])
def test_a_record_that_no_sector_holds_has_a_reason_and_the_next_size(
    name: str, workload: str
) -> None:
    facts = {"storage": {"logical_block_size": 4096, "scratch": "/scratch"}}
    space = dataclasses.replace(samples.workspace(), facts=facts)
    for block, larger in ((1024, "4KiB"), (6 << 10, "8KiB")):
        cell = disk(name, workload, "psync", block, 1)
        with pytest.raises(Unavailable, match=f"/scratch .*4096 B.*{larger}"):
            REGISTRY[name].prepare(cell, samples.tool(name), space)
    whole = disk(name, workload, "psync", 4096, 1)
    assert REGISTRY[name].prepare(whole, samples.tool(name), space)


@pytest.fixture
def large_sectors(tmp_path: Path) -> Iterator[Path]:
    """A file system on a disk whose sectors have 4096 bytes: a loop device of this machine's
    kernel.
    """
    image, place = tmp_path / "image", tmp_path / "place"
    place.mkdir()
    with image.open("wb") as stream:
        stream.truncate(32 * MIB)
    if os.geteuid() != 0 or not shutil.which("losetup") or not shutil.which("mkfs.ext4"):
        pytest.skip("a loop device needs root, losetup and mkfs.ext4")
    argv = ["losetup", "--sector-size", "4096", "--show", "--find", image]
    made = subprocess.run(argv, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no loop device here: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        mounted = subprocess.run(["mount", device, place], capture_output=True, text=True)
        if mounted.returncode != 0:
            pytest.skip(f"no mount here: {mounted.stderr.strip()}")
        try:
            yield place
        finally:
            subprocess.run(["umount", place], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def test_a_disk_of_large_sectors_refuses_small_records_and_says_what_it_takes(
    large_sectors: Path,
) -> None:
    facts = {"storage": storage.collect(Host(), large_sectors)}
    assert facts["storage"]["logical_block_size"] == 4096
    workspace = dataclasses.replace(samples.workspace(), directory=large_sectors, facts=facts)
    for name, workload in (("iozone", "ALL"), ("fio", "RR")):
        cell = disk(name, workload, "psync", 1024, 1)
        with pytest.raises(Unavailable, match=r"4096 B.*4KiB"):
            REGISTRY[name].prepare(cell, samples.tool(name), workspace)
    kernel = ROOT / "build" / "kernels" / "diskbench"
    if kernel.exists():
        words = ["--workload", "RR", "--record", "1KiB", "--size", "1MiB", "--directory"]
        said = subprocess.run([kernel, *words, large_sectors], capture_output=True, text=True)
        assert said.returncode == 77 and "has 4096" in said.stderr


def test_iozone_sleeps_are_in_its_estimate() -> None:
    one, two = (
        REGISTRY["iozone"].estimate(disk("iozone", "ALL", "psync", MIB, n, size=64 * MIB))
        for n in (1, 2)
    )
    assert one.seconds < 5
    assert two.seconds > 20
    assert one.disk_bytes == two.disk_bytes == 64 * MIB
