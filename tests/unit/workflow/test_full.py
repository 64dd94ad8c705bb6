"""A full disk, and what a killed run has left."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, KERNELS, Said

import snakemake_logger_plugin_peakmark as progress_bar
from peakmark.plan import jobs, plan
from peakmark.reasons import MeasurementError
from peakmark.run import cleanup
from peakmark.run.measure import Request, measure
from peakmark.slurm import failures

NO_SPACE = os.strerror(errno.ENOSPC)


@pytest.fixture
def full_disk(tmp_path: Path, own_mounts: None) -> Iterator[Path]:
    """A results folder on a disk of its own on which nothing more has room."""
    folder = tmp_path / "results"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> None:
    with (
        pytest.raises(OSError, match="No space left"),
        (folder / "neighbour").open("wb", buffering=0) as stream,
    ):
        while True:
            stream.write(bytes(4096))


def test_a_full_disk_is_said_before_a_cell_is_measured_and_by_status(
    full_disk: Path, peakmark: Callable[..., Said]
) -> None:
    folder = make.write(full_disk / "c", [], planned=[CELL])
    fill(full_disk)
    output = folder / "cells" / f"{CELL.id}.json"
    with pytest.raises(MeasurementError, match=f"{NO_SPACE}.*{folder}"):
        measure(Request(CELL, output, folder, KERNELS))
    assert NO_SPACE in peakmark("status", folder).stdout
    assert "1 cell" in peakmark("status", folder, "--failed").stdout
    (full_disk / "neighbour").unlink()
    assert measure(Request(CELL, output, folder, KERNELS))["status"] == "ok"
    assert peakmark("status", folder).stdout.splitlines()[-1] == "complete"


def test_a_full_disk_is_said_once_of_all_jobs_that_end(
    full_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(full_disk.parent)
    failures._tell_once.cache_clear()
    grid = {"workloads": ["SP"], "concurrency": [1]}
    made = plan.make({"campaign": "c", "cpu": [grid], "repetitions": 3})
    fill(full_disk)
    for number, cell in enumerate(made.cells):
        details = {"Comment": jobs.comment(made, [cell]), "BatchHost": "n1"}
        assert not failures.keep(made.directory, cell, str(number), "TIMEOUT", details)
    assert capsys.readouterr().err.count("\n") == 1
    bar = progress_bar.LogHandler(
        SimpleNamespace(stdout=False, dryrun=False, printshellcmds=False, verbose=False), None
    )  # type: ignore[arg-type]
    bar.console = Console(file=io.StringIO(), width=300)
    for cell in made.cells:
        bar._failure({"rule_name": "measure", "output": [made.record_name(cell)], "log": []})
    output = bar.console.file.getvalue()  # type: ignore[attr-defined]
    assert output.count(NO_SPACE) == 1 and "failed" not in output


def test_what_a_killed_run_left_goes_when_the_next_cell_begins(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guard ended with it, as where memory ran out."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr(cleanup, "YOUNG_S", 0.0)
    mark = json.dumps({"host": socket.gethostname(), "process": 1, "purpose": "x"})
    left, foreign = (
        tmp_path / "scratch" / "peakmark-abcdefgh",
        tmp_path / "scratch" / "peakmark-zzzzzzzz",
    )
    for folder in (left, foreign):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "data").write_text("x")
    (left / cleanup.MARK).write_text(mark)
    campaign = tmp_path / "c"
    shutil.copytree(known, campaign / "machine")
    measure(Request(CELL, campaign / "cells" / f"{CELL.id}.json", campaign, KERNELS))
    assert not left.exists()
    assert foreign.exists()  # nobody knows whose that is
