"""SIGKILL to a kernel, to a server, and to the measuring process."""

import os
import signal

import pytest
from bench import disk_cell, network_cell
from tests.programs import needs, wait_for
from tests.unit.campaign_data import cell_of


def said(process):
    assert process.stderr is not None
    text = process.stderr.read()
    process.wait()
    return text


IPERF3 = pytest.param("iperf3", marks=needs("iperf3"))


@pytest.mark.parametrize("instrument", ["netbench", IPERF3])
def test_a_killed_server_ends_its_cell_and_is_named(bench, instrument):
    long, short = network_cell(instrument, seconds=60), network_cell(instrument, seconds=1)
    with bench.measuring(long) as process:
        wait_for(lambda: len(bench.processes(instrument)) == 2, "server and client run")
        os.kill(bench.processes(instrument)[0], signal.SIGKILL)
        words = said(process)
    assert process.returncode == 4
    bench.assert_failed(long, words)
    bench.assert_completes(short)


@pytest.mark.parametrize("cell", [
    disk_cell(seconds=60),
    network_cell(seconds=60),
    pytest.param(network_cell("iperf3", seconds=60), marks=needs("iperf3")),
])  # fmt: skip
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_measuring_process_takes_all_with_it(bench, cell, number):
    with bench.measuring(cell) as process:
        wait_for(lambda: bench.processes(cell.instrument), "the program runs")
        if cell.subsystem == "disk":
            wait_for(lambda: list(bench.scratch.rglob("peakmark-0")), "its file is there")
        process.send_signal(number)
        process.wait()
        wait_for(lambda: not bench.processes(), "all processes are gone")
    assert not bench.record_path(cell).exists()
    bench.assert_nothing_left()
    bench.assert_completes(cell_of({**cell.to_json(), "options": {**cell.options, "seconds": 0.1}}))
