"""The registry: names, cheap import, what every instrument refuses and estimates."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.tools import samples
from tests.unit.tools.test_outputs import GOOD

from peakmark.catalogue.workloads import KERNELS, WORKLOADS
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.tools import REGISTRY, references
from peakmark.tools.common import Instrument


def test_names_and_what_they_measure() -> None:
    assert all(name == instrument.name for name, instrument in REGISTRY.items())
    assert REGISTRY.keys() == {*KERNELS.values(), *references()}
    for subsystem, name in KERNELS.items():
        assert set(REGISTRY[name].workloads[subsystem]) == set(WORKLOADS[subsystem])
        assert not REGISTRY[name].reference
    for name, tool in references().items():
        assert REGISTRY[name].reference
        for row in tool.rows:
            wanted = {row.cell} if row.cell else set(row.workloads)
            assert wanted <= set(REGISTRY[name].workloads[row.subsystem])
    pairs = {name for name, one in REGISTRY.items() if one.two_nodes}
    assert pairs == {"netbench", "iperf3", "qperf", "ping"}


@pytest.mark.parametrize("case", GOOD)
def test_estimates(case: str) -> None:
    cell, _ = samples.load(case)
    cost = REGISTRY[cell.instrument].estimate(cell)
    assert cost.seconds > 0
    assert cost.memory_bytes > 0
    assert (cost.disk_bytes > 0) == (cell.subsystem == "disk")


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_prepared_commands(name: str, tmp_path: Path) -> None:
    """What holds for every command: the C locale, generous limits, placeholders only where a peer
    fills them.
    """
    for case in (case for case in GOOD if case.startswith(f"{name}/")):
        cell, _ = samples.load(case)
        instrument: Instrument = REGISTRY[name]
        with_lists = {"pmbw", "likwid-bench"}  # these ask the tool which routines it has
        if name in with_lists:
            continue
        invocation = instrument.prepare(
            cell, samples.tool(instrument.executables[0]), samples.workspace(tmp_path)
        )
        for command in filter(None, (invocation.command, invocation.server)):
            assert command.env["LC_ALL"] == "C"
            assert command.timeout_s >= max(60, 5 * instrument.estimate(cell).seconds)
            assert all(isinstance(word, str) and word for word in command.argv)
            assert ("{address}" in command.argv) <= instrument.two_nodes
        assert (invocation.server is not None) == (instrument.two_nodes and name != "ping")


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_wrong_cells_get_one_sentence(name: str) -> None:
    instrument = REGISTRY[name]
    subsystem, workloads = next(iter(instrument.workloads.items()))
    good, _ = samples.load(next(case for case in GOOD if case.startswith(f"{name}/")))
    wrong = [
        (ConfigError, samples.cell(subsystem, "other", workloads[0], good.variant, good.block, 1)),
        (ConfigError, samples.cell("nothing", name, workloads[0], good.variant, good.block, 1)),
        (ConfigError, samples.cell(subsystem, name, workloads[0], good.variant, good.block, 0)),
        (Unavailable, samples.cell(subsystem, name, "NOSUCH", good.variant, good.block, 1)),
        (Unavailable, samples.cell(subsystem, name, workloads[0], "no-variant", good.block, 1)),
    ]
    for kind, cell in wrong:
        with pytest.raises(kind) as caught:
            instrument.prepare(cell, samples.tool(name), samples.workspace())
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_programs_that_are_not_the_tool(name: str, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    missing = tmp_path / "missing"
    for path in (plain, missing, *([silent] if name != "hpl" else [])):
        with pytest.raises(Unavailable if REGISTRY[name].reference else MeasurementError) as caught:
            REGISTRY[name].find(str(path))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["rambench", "diskbench", "netbench", "pmbw", "fio", "iozone", "iperf3"]
)
def test_a_block_is_needed(name: str) -> None:
    good, _ = samples.load(next(case for case in GOOD if case.startswith(f"{name}/")))
    without = samples.cell(good.subsystem, name, good.workload, good.variant, None, 1)
    with pytest.raises(PeakmarkError, match="needs a block size"):
        REGISTRY[name].prepare(without, samples.tool(name), samples.workspace())


@pytest.mark.parametrize(
    "options",
    [{"seconds": 0}, {"seconds": -1}, {"seconds": "soon"}, {"seconds": True}, {"size": "1 GB"}],
)
def test_bad_option_values(options: dict[str, object]) -> None:
    cell = samples.cell("disk", "fio", "RR", "psync", 4096, 1, **options)
    with pytest.raises(ConfigError, match=next(iter(options)) + "|1 GB"):
        REGISTRY["fio"].prepare(cell, samples.tool("fio"), samples.workspace())
