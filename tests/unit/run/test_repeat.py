"""A disturbed measurement is made again: beside a real program, and where a kernel's clock moves."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.programs import executable
from tests.unit import campaign_data as make
from tests.unit.cases import cases
from tests.unit.hostile import CELL, KERNELS

from peakmark.errors import MeasurementError
from peakmark.machine.facts import cached
from peakmark.run import noise
from peakmark.run.measure import Request, measure
from peakmark.storage import activity, records

OF = replace(CELL, workload="DP", concurrency=2)
ANSWER = json.loads((make.DATA / "cpubench" / "dp-x2" / "stdout").read_text())
COMPETITOR = """import os, signal, time
signal.alarm(60)
open("call").read()
while time.process_time() < 0.1: pass
with open("pipe", "w") as stream: print(os.getpid(), file=stream)
while time.process_time() < 0.3: pass
"""
BESIDE = """if [ -e call ]; then
: > call
cat < pipe > started
rm call
fi
"""
"""It calls another program, which it did not start: that would be ended with it."""
KERNEL = f"""#!/bin/bash
[ "$1" = --version ] && exec {KERNELS / "cpubench"} --version
cd "$(dirname "$0")"
"""
NEXT = 'answer=$(ls *.json | head -n 1)\ncat "$answer" && rm "$answer"\n'
"""Each execution gives the next answer; one too many fails."""


@pytest.fixture
def request_of(known, tmp_path, monkeypatch):
    """A cell whose kernel prints these answers; of all other programs only ``competitor`` counts."""
    real, started = noise.between, tmp_path / "started"

    def between(before, after):
        during = real(before, after)
        number = int(started.read_text()) if started.exists() else 0
        seen = [reading.processes.get(number) for reading in (before, after)]
        seconds = [process.seconds if process else 0.0 for process in seen]
        others = 2.0 if seconds[1] > seconds[0] else 0.0
        return during and replace(during, others=others, steal=0.0)

    def made(*clocks, beside="", repeats=2):
        for number, clock in enumerate(clocks):
            answer = {**ANSWER, "clock_hz_before": 3e9, "clock_hz_after": clock}
            (tmp_path / f"{number}.json").write_text(json.dumps(answer))
        if beside:
            os.mkfifo(tmp_path / "call")
            os.mkfifo(tmp_path / "pipe")
            start = ["sh", "-c", 'setsid "$0" -c "$1" &', sys.executable, COMPETITOR]
            subprocess.run(start, cwd=tmp_path, check=True)
        executable(tmp_path / "cpubench", KERNEL + beside + NEXT)
        campaign = tmp_path / "results" / "c"
        shutil.copytree(known, campaign / "machine")
        output = campaign / "cells" / f"{OF.id}.json"
        return Request(OF, output, campaign, tmp_path, repeats=repeats)

    monkeypatch.setattr(noise, "between", between)
    monkeypatch.setattr(noise, "STEP_S", 2 * noise.SHORTEST_S)
    monkeypatch.setattr(activity, "spare_cpus", lambda *_: 0.0)
    return made


def clock_of(record):
    """The clock that the kernel found after its work, by which its answers are told apart."""
    return record.context.clock_hz_after


def test_beside_a_program_that_ends_the_second_value_counts(request_of):
    request = request_of(3e9, 3.03e9, beside=BESIDE)
    measure(request)
    record = records.read(request.output)
    (attempt,) = record.disturbed
    assert (clock_of(record), clock_of(attempt)) == (3.03e9, 3e9)
    assert attempt.reasons == {"other-load": 2.0} and attempt.measurements
    assert attempt.context.started < record.context.started


@cases("campaign")
def test_the_least_disturbed_value_counts(request_of, clocks, repeats, value, others):
    request = request_of(*clocks, repeats=repeats)
    if not clocks:
        with pytest.raises(MeasurementError):
            measure(request)
        return
    record = measure(request)
    assert record == records.read(request.output)
    assert clock_of(record) == value and list(map(clock_of, record.disturbed)) == others
    assert (request.campaign / "attempts").exists() == (clocks == [2.7e9] and repeats == 2)


@pytest.mark.parametrize("machine", ["KVM", None])
def test_the_placement_of_a_reference_is_measured_before_and_after_it(
    known, tmp_path, monkeypatch, machine
):
    """On a virtual machine, by a kernel that prints one time after the other."""
    output = make.DATA / "likwid-bench" / "dp-x2" / "stdout"
    (tmp_path / "-v").write_text("likwid-bench Version 5.2.2")
    (tmp_path / "-a").write_text("peakflops - plain\n")
    (tmp_path / "-t").write_text(output.read_text().replace("peakflops_avx_fma", "peakflops"))
    tool = executable(tmp_path / "likwid-bench", f"#!/bin/sh\ncat {tmp_path}/$1\n")
    times = 'grep -q C2C <<< "$*"\n' + NEXT
    executable(tmp_path / "rambench", KERNEL.replace("cpubench", "rambench") + times)
    for number in (1, 2):
        (tmp_path / f"{number}.json").write_text(json.dumps({"value": number * 1e-8}))
    facts = cached(known) | {}
    facts["cpu"] = facts["cpu"] | {"virtualised": machine}
    monkeypatch.setattr("peakmark.run.measure.cached", lambda *_: facts)
    of = replace(OF, instrument="likwid-bench")
    campaign = tmp_path / "results" / "c"
    request = Request(of, campaign / "cells" / f"{of.id}.json", campaign, tmp_path, str(tool))
    context = measure(request).context
    found = (context.core_to_core_before, context.core_to_core_after)
    assert found == ((1e-8, 2e-8) if machine else (None, None))


def test_a_machine_that_stays_busy_is_waited_for_once(tmp_path, monkeypatch):
    slept = []
    (tmp_path / "machine").mkdir()
    clock = {"monotonic": lambda: 0.5 * len(slept), "time": time.time, "sleep": slept.append}
    monkeypatch.setattr(noise, "time", SimpleNamespace(**clock))
    loads = iter([2.0] * 5 + [0.0])
    monkeypatch.setattr(noise, "between", lambda *_: SimpleNamespace(others=next(loads)))
    assert noise.wait_for_others(tmp_path, 0.0, 2.0) is None and len(slept) == 4
    assert noise.wait_for_others(tmp_path, 0.0, 2.0) is None and len(slept) == 5
    assert noise.wait_for_others(tmp_path, 0.0, 2.0) == 0.5


def test_a_file_that_cannot_be_read_ends_no_wait(tmp_path, monkeypatch):
    """Its path is too long: an error in the wait would discard the value that was measured before it."""
    monkeypatch.setattr(noise, "STEP_S", 0.0)
    assert noise.wait_for_others(tmp_path / ("n" * 300), 0.0, 0.0) is not None
