"""Kernels that are cut off or say nothing: a failure, and measured when they are mended."""

import json
import math
import os
import shutil
from socket import gethostname

import pytest
from tests.unit.hostile import CELL, KERNELS

from peakmark.errors import MeasurementError
from peakmark.rows.build import judge
from peakmark.run import execute, kernel_build
from peakmark.run.measure import Request, measure
from peakmark.storage import records
from peakmark.storage.results import Results
from peakmark.views import score_card

REAL = KERNELS / "cpubench"

MEASURING = f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\n'
"""Tells its version as the real program does; what follows happens when it measures."""


BROKEN_KERNELS = {
    "empty": lambda _: b"",
    # e_machine of <elf.h> is at offset 18.
    "for another architecture": lambda content: content[:18] + b"\x29\x01" + content[20:],
    "silent": lambda _: "#!/bin/sh\nexit 0\n",
    "ended by a signal": lambda _: "#!/bin/sh\nkill -SEGV $$\n",
    "silent while it measures": lambda _: MEASURING + "exit 0\n",
    "of half an answer": lambda _: MEASURING + f'{REAL} "$@" | head -c 100\n',
}


def write_program(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o755)


@pytest.fixture
def request_of(known, tmp_path):
    """A cell of a campaign, to be measured by a cpubench of this content."""
    campaign = tmp_path / "results" / "c"
    shutil.copytree(known, campaign / "machine")

    def written(content):
        write_program(tmp_path / "cpubench", content)
        return Request(CELL, campaign / "cells" / f"{CELL.id}.json", campaign, tmp_path)

    return written


@pytest.mark.parametrize("kind", BROKEN_KERNELS)
def test_a_broken_kernel_fails_and_measures_when_it_is_mended(kind, request_of):
    request = request_of(BROKEN_KERNELS[kind](REAL.read_bytes()))
    with pytest.raises(MeasurementError) as failure:
        measure(request)
    assert not request.output.exists()
    attempt = records.read(request.campaign / "attempts" / CELL.id / "0.json")
    assert attempt.status == "failed"
    assert attempt.reason in str(failure.value) and "\n" not in str(failure.value)
    assert measure(request_of(REAL.read_bytes())).status == "ok"


def test_only_77_is_final(request_of):
    request = request_of(MEASURING + "echo no FMA >&2; exit 77\n")
    measure(request)
    record = records.read(request.output)
    assert (record.status, record.reason) == ("unavailable", "no FMA")


def test_doctor_starts_every_kernel(tmp_path, peakmark, monkeypatch):
    built = tmp_path / "build" / "kernels"
    built.mkdir(parents=True)
    for name in ("rambench", "diskbench", "netbench"):
        (built / name).symlink_to(KERNELS / name)
    write_program(built / "cpubench", REAL.read_bytes()[:5000])
    monkeypatch.setattr(kernel_build, "folder", lambda: built)
    done = peakmark("doctor")
    assert done.returncode == 4
    *findings, _, verdict = done.stdout.splitlines()
    assert verdict.startswith("not ready: cpubench")
    lines = {line.split()[1]: line for line in findings}
    assert lines["cpubench"].startswith("broken") and "make clean kernels" in lines["cpubench"]
    assert lines["rambench"].startswith("ok")


WRONG = """echo '{"wrong_cpus": [%d]}'; echo 'cpubench: a wrong result on CPU %d' >&2; exit 1\n"""


def test_a_wrong_result_names_the_core_and_page_one_the_second(request_of):
    cpu = min(os.sched_getaffinity(0))
    request = request_of(MEASURING + WRONG % (cpu, cpu))

    def wrong_cores():
        frames = judge(Results.read(request.campaign))
        assert len(frames.rows) == 1
        assert set(frames.warnings.query("code == 'wrong-result'")["trust"]) == {"care"}
        found = score_card.build_caveats(frames)
        return [dict(each.values) for each in found if each.code == "wrong-result"]

    plan = {"campaign": request.campaign.name, "cells": [CELL.to_json()], "config": {}}
    (request.campaign / "plan.json").write_text(json.dumps(plan))
    for expected in ([], [{"core": f"the core of CPU {cpu} on {gethostname()}", "count": 2}]):
        with pytest.raises(MeasurementError, match=f"wrong result on CPU {cpu}"):
            measure(request)
        assert wrong_cores() == expected


def test_what_a_kernel_printed_before_its_time_was_up_is_kept(request_of, tmp_path, monkeypatch):
    printed = tmp_path / "printed"
    request = request_of(MEASURING + f"echo so far; touch {printed}; exec sleep 600\n")
    # The time is up as soon as the kernel has printed, however long a busy machine takes for that.
    monkeypatch.setattr(execute, "wait_factor", lambda: 0.0 if printed.exists() else math.inf)
    with pytest.raises(MeasurementError, match="did not end within"):
        measure(request)
    kept = request.campaign / "attempts" / CELL.id / "0.raw" / "0.stdout"
    assert kept.read_text().strip() == "so far"
