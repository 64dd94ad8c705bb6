"""diskbench, IOZone and fio: variants, sizes, what each command says."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.instruments import samples

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.instruments import REGISTRY
from peakmark.instruments.base import Completed
from peakmark.instruments.programs.diskbench import engine_of
from peakmark.instruments.programs.iozone import USUAL_LARGEST, Iozone
from peakmark.machine import storage
from peakmark.machine.host import Host
from peakmark.reasons import Unavailable
from peakmark.resources import ROOT

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


def test_diskbench_command() -> None:
    words = " ".join(
        argv(
            disk(
                "diskbench",
                "WR",
                "io_uring-qd8",
                4096,
                2,
                seconds=2.5,
                warmup=0,
                seed=7,
                size="64MiB",
            )
        )
    )
    assert words == (
        "/usr/bin/diskbench --workload WR --record 4096 --size 67108864 --directory . --engine io_uring --depth 8 "
        "--seconds 2.5 --threads 2 --cpus 0,1 --warmup 0 --seed 7"
    )
    assert "--total 1048576" in " ".join(argv(disk("diskbench", "WS", "psync", 4096, 1, total=MIB)))
    assert "--seconds" not in argv(disk("diskbench", "WS", "psync", 4096, 1, total=MIB, seconds=1))


def test_diskbench_result_must_be_the_cells() -> None:
    cell, completed = samples.load("diskbench/rr-psync-x2")
    bench = REGISTRY["diskbench"]
    with pytest.raises(ParseError, match="engine or depth"):
        bench.parse(dataclasses.replace(cell, variant="io_uring-qd2"), completed)
    with pytest.raises(ParseError, match="iops"):
        bench.parse(dataclasses.replace(cell, block=8192), completed)
    with pytest.raises(ParseError, match="threads is 2"):
        bench.parse(dataclasses.replace(cell, concurrency=1), completed)


def test_iozone_commands() -> None:
    single = argv(disk("iozone", "ALL", "psync", MIB, 1, size=64 * MIB))
    assert " ".join(single) == "/usr/bin/iozone -I -e -i 0 -i 1 -i 2 -r 1024k -s 65536k -f iozone.0"
    several = argv(disk("iozone", "ALL", "psync", 4096, 3, size=MIB, ops=True))
    # A third of a MiB in whole records of 4 KiB is 85 of them.
    assert " ".join(several) == (
        "/usr/bin/iozone -I -e -O -i 0 -i 1 -i 2 -r 4k -s 340k -t 3 -F iozone.0 iozone.1 iozone.2"
    )


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        (disk("iozone", "ALL", "psync", 512, 1), Unavailable, "multiple of 1024 B"),
        (disk("iozone", "RR", "psync", 4096, 1), Unavailable, "no workload RR"),
        (disk("iozone", "ALL", "io_uring-qd8", 4096, 1), Unavailable, "no variant"),
        (
            disk("iozone", "ALL", "psync", MIB, 8, size=4 * MIB),
            ConfigError,
            "leaves no record of 1MiB",
        ),
        (disk("iozone", "ALL", "psync", MIB, 1, ops="yes"), ConfigError, "ops='yes'"),
        (disk("fio", "RR", "psync", MIB, 8, size=4 * MIB), ConfigError, "leaves no record of 1MiB"),
        (disk("fio", "ALL", "psync", MIB, 1), Unavailable, "no workload ALL"),
    ],
)
def test_what_cannot_be_done(cell: Cell, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        argv(cell)


def test_how_is_written_reaches_every_program() -> None:
    asked = {"sync": "each", "fill": "new", "size": 8 * MIB}
    own = " ".join(argv(disk("diskbench", "WS", "psync", MIB, 2, **asked)))
    assert "--sync each --fill new" in own
    assert "--sync" not in " ".join(argv(disk("diskbench", "WS", "psync", MIB, 2)))
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
    assert {one: new[one].details.get("fill") for one in new} == {
        "WS": "new",
        "WR": "overwrite",
        "RS": None,
        "RR": None,
    }
    assert [new[one].value for one in ("RS", "RR", "WR")] == [
        old[one].value for one in ("RS", "RR", "WR")
    ]


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
    with pytest.raises(
        Unavailable, match="largest record of this build of IOZone is 16MiB, the cell's is 100MiB"
    ):
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


@pytest.mark.parametrize("name", ["iozone", "fio"])
def test_a_record_that_no_sector_holds_has_a_reason_and_the_next_size(name: str) -> None:
    workspace = dataclasses.replace(
        samples.workspace(), facts={"storage": {"logical_block_size": 4096, "scratch": "/scratch"}}
    )
    workload = "ALL" if name == "iozone" else "RR"
    for block, larger in ((1024, "4KiB"), (6 << 10, "8KiB")):
        with pytest.raises(
            Unavailable,
            match=f"/scratch moves multiples of 4096 B; the next larger record is {larger}",
        ):
            REGISTRY[name].prepare(
                disk(name, workload, "psync", block, 1), samples.tool(name), workspace
            )
    assert REGISTRY[name].prepare(
        disk(name, workload, "psync", 4096, 1), samples.tool(name), workspace
    )


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
    made = subprocess.run(
        ["losetup", "--sector-size", "4096", "--show", "--find", image],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no loop device here: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        mounted = subprocess.run(
            ["mount", device, place], capture_output=True, text=True, check=False
        )
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
        with pytest.raises(
            Unavailable, match="moves multiples of 4096 B; the next larger record is 4KiB"
        ):
            REGISTRY[name].prepare(
                disk(name, workload, "psync", 1024, 1), samples.tool(name), workspace
            )
    kernel = ROOT / "build" / "kernels" / "diskbench"
    if kernel.exists():
        said = subprocess.run(
            [kernel, "--workload", "RR", "--record", "1KiB", "--size", "1MiB", "--directory", large_sectors],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert said.returncode == 77 and "the next larger record has 4096" in said.stderr


def test_iozone_sleeps_are_in_its_estimate() -> None:
    one, two = (
        REGISTRY["iozone"].estimate(disk("iozone", "ALL", "psync", MIB, n, size=64 * MIB))
        for n in (1, 2)
    )
    assert one.seconds < 5
    assert two.seconds > 20
    assert one.disk_bytes == two.disk_bytes == 64 * MIB


def test_iozone_output_must_be_the_cells() -> None:
    iozone = REGISTRY["iozone"]
    cell, completed = samples.load("iozone/t2-1m")
    with pytest.raises(ParseError, match="in operations per second"):
        iozone.parse(dataclasses.replace(cell, options={**cell.options, "ops": True}), completed)
    with pytest.raises(ParseError, match="of 2 processes"):
        iozone.parse(dataclasses.replace(cell, concurrency=3), completed)
    with pytest.raises(ParseError, match="record size"):
        iozone.parse(dataclasses.replace(cell, block=4096), completed)


def test_fio_command() -> None:
    words = argv(
        disk("fio", "WS", "io_uring-qd16", MIB, 2, seconds=1.5, warmup=0.25, size=64 * MIB, seed=3)
    )
    assert words == (
        *(
            "/usr/bin/fio",
            "--name=peakmark",
            "--directory=.",
            "--size=33554432",
            "--bs=1048576",
            "--rw=write",
        ),
        *(
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=16",
            "--numjobs=2",
            "--thread",
            "--group_reporting",
        ),
        *(
            "--fallocate=none",
            "--overwrite=1",
            "--time_based",
            "--runtime=1500ms",
            "--ramp_time=250ms",
        ),
        *("--end_fsync=1", "--randseed=3", "--lat_percentiles=1", "--output-format=json"),
    )
    total = argv(disk("fio", "RR", "psync", 4096, 2, total=MIB))
    assert "--io_size=524288" in total
    assert not any(
        word.startswith(("--time_based", "--runtime", "--ramp_time", "--end_fsync"))
        for word in total
    )


def test_fio_result_must_be_the_cells() -> None:
    cell, completed = samples.load("fio/rr-psync-x2")
    fio = REGISTRY["fio"]
    with pytest.raises(ParseError, match="another pattern or record size"):
        fio.parse(dataclasses.replace(cell, workload="RS"), completed)
    with pytest.raises(ParseError, match="another pattern or record size"):
        fio.parse(dataclasses.replace(cell, block=8192), completed)
    with pytest.raises(ParseError, match=r"io_bytes is 0"):
        fio.parse(
            cell, dataclasses.replace(completed, stdout=completed.stdout.replace("26349568", "0"))
        )
