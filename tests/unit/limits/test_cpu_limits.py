"""Limits of computing."""

from __future__ import annotations

import pytest
from tests.unit.limits.machines import VM, cpu, machine

from peakmark import data, limits
from peakmark.messages import message


@pytest.mark.parametrize(
    ("workload", "per_cycle"),
    [("DP", 16), ("FP32", 32), ("SP", 32), ("HP", 64), ("QP", 128), ("QPDOT", 64)],
)
def test_zen_3_at_the_clock_measured_beside_the_row(workload: str, per_cycle: int) -> None:
    limit = cpu(workload, 2, VM, clock_hz=3.2e9)
    assert limit.value == pytest.approx(2 * 3.2e9 * per_cycle)
    assert limit.kind == "measured"
    assert "2 cores x 3.2 GHz (observed clock)" in limit.formula
    assert "Zen 3" in limit.explained


def test_threads_beyond_the_cores_do_not_raise_the_limit() -> None:
    assert cpu("DP", 4, VM, clock_hz=3e9).value == cpu("DP", 2, VM, clock_hz=3e9).value
    assert cpu("DP", 4, VM, clock_hz=3e9).remarks == (
        message("limit-of-cores", threads=4, cores=2),
    )
    one = machine(limits={"physical_cores_allowed": 1})
    assert cpu("DP", 2, one, clock_hz=3e9).value == pytest.approx(48e9)


def test_three_clocks_and_which_one_is_used() -> None:
    facts = machine(cpu={"clock_hz": {"nominal": 2.4e9, "maximum": 3.6e9, "observed": 3.1e9}})
    assert limits.clocks(facts, clock_hz=3.0e9) == {
        "observed": 3.0e9,
        "nominal": 2.4e9,
        "maximum": 3.6e9,
    }
    assert "3.1 GHz (observed clock)" in cpu("DP", 1, facts).formula
    nominal = cpu("DP", 1, facts, clock_hz=3.0e9, site={"cpu": {"clock": "nominal"}})
    assert nominal.value == pytest.approx(2.4e9 * 16)
    assert "nominal clock" in nominal.formula
    assert nominal.kind == "read"
    fallback = machine(cpu={"clock_hz": {"nominal": 2.4e9, "maximum": None, "observed": None}})
    assert "nominal clock" in cpu("DP", 1, fallback).formula
    clockless = machine(cpu={"clock_hz": {"nominal": None, "maximum": None, "observed": None}})
    assert cpu("DP", 1, clockless).value is None


def test_an_unknown_cpu_has_an_estimate_that_is_no_limit() -> None:
    facts = machine(cpu={"microarchitecture": None, "model_name": "New Chip 9000"})
    limit = cpu("DP", 2, facts, clock_hz=3e9)
    assert limit.value is None
    assert "New Chip 9000" in (limit.reason or "") and "cpu.operations_per_cycle.DP" in (
        limit.reason or ""
    )
    assert limit.remarks == (message("limit-guessed", isa="avx2", rate=96e9),)
    assert limits.efficiency(1e9, limit) is None
    assert cpu("QP", 2, facts, clock_hz=3e9).remarks == ()
    stated = cpu(
        "DP", 2, facts, clock_hz=3e9, site={"name": "x", "cpu": {"operations_per_cycle": {"DP": 8}}}
    )
    assert stated.value == pytest.approx(48e9)


def test_the_instruction_set_decides_not_the_design_alone() -> None:
    server = {
        "microarchitecture": "Ice Lake-SP",
        "isa": ["sse2", "avx2", "fma", "avx512f", "avx512_vnni"],
    }
    wide = machine(cpu={**server, "isa_best": "avx512"})
    assert cpu("DP", 1, wide, clock_hz=1e9).value == pytest.approx(32e9)
    assert cpu("QPDOT", 1, wide, clock_hz=1e9).value == pytest.approx(256e9)
    masked = machine(cpu={**server, "isa_best": "avx2", "isa": ["sse2", "avx2", "fma"]})
    assert cpu("DP", 1, masked, clock_hz=1e9).value == pytest.approx(16e9)
    assert cpu("QPDOT", 1, masked, clock_hz=1e9).value == pytest.approx(64e9)
    bare = machine(cpu={**server, "isa_best": "sse2", "isa": ["sse2"]})
    assert cpu("DP", 1, bare, clock_hz=1e9).value is None


@pytest.mark.parametrize(
    ("design", "double"),
    [
        ("Haswell", 16), ("Broadwell", 16), ("Skylake-SP", 32), ("Skylake-SP (1 FMA)", 16), ("Cascade Lake", 32),
        ("Ice Lake-SP", 32), ("Sapphire Rapids", 32), ("Emerald Rapids", 32), ("Granite Rapids", 32),
        ("Sierra Forest", 8), ("Zen", 8), ("Zen+", 8), ("Zen 2", 16), ("Zen 3", 16), ("Zen 4", 16), ("Zen 5", 32),
        ("K10", 4), ("Neoverse N1", 8), ("Neoverse N2", 8), ("Neoverse V1", 16), ("Neoverse V2", 16), ("A64FX", 32),
    ],
)  # fmt: skip
def test_double_precision_of_every_design(design: str, double: float) -> None:
    site = {"cpu": {"microarchitecture": design, "cores": 1, "nominal_hz": 1e9}}
    limit = cpu("DP", 1, {}, site=site)
    assert limit.value == pytest.approx(double * 1e9)


def test_single_precision_is_twice_double_everywhere() -> None:
    per_cycle = {
        (name, line["isa"], line["workload"]): float(line["operations_per_cycle"])
        for line in data.table("operations")
        for name in line["microarchitecture"].split("|")
    }
    for (name, isa, workload), value in per_cycle.items():
        if workload == "DP":
            assert per_cycle[name, isa, "FP32"] == 2 * value
        if workload == "SP":
            assert value <= per_cycle[name, isa, "HP"] <= per_cycle[name, isa, "QP"]


def test_the_formula_says_that_the_clock_was_observed_under_the_work() -> None:
    limit = cpu("DP", 2, VM, clock_hz=2.72e9, clock_loaded=True)
    assert limit.value == pytest.approx(2 * 2.72e9 * 16)
    assert "under the work" in limit.formula
    assert "(observed clock)" in cpu("DP", 2, VM, clock_hz=2.72e9).formula
    nominal = cpu(
        "DP",
        1,
        VM,
        clock_hz=2.72e9,
        clock_loaded=True,
        site={"cpu": {"clock": "nominal", "nominal_hz": 2e9}},
    )
    assert "2 GHz (nominal clock)" in nominal.formula


def test_the_cores_of_a_row_are_those_its_records_tell() -> None:
    first_job = machine(limits={"physical_cores_allowed": 1}, cpu={"virtualised": None})
    placed = {"cores": 2, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    limit = cpu("DP", 2, first_job, clock_hz=3e9, placed=placed)
    assert limit.value == pytest.approx(2 * 3e9 * 16)
    assert "placed on" in limit.cores
    assert cpu("DP", 2, first_job, clock_hz=3e9).value == pytest.approx(
        3e9 * 16
    )  # a record of an earlier version
    assert cpu("DP", 2, VM, clock_hz=3e9, placed={**placed, "cores": 1}).value == pytest.approx(
        3e9 * 16
    )


def test_cores_of_a_guest_are_not_called_physical() -> None:
    placed = {"cores": 2, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
    for limit in (cpu("DP", 2, VM, clock_hz=3e9), cpu("DP", 2, VM, clock_hz=3e9, placed=placed)):
        assert "physical" not in limit.cores and "virtual machine" in limit.cores
