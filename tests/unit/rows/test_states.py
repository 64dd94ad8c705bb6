"""A machine that warms up or has two states is found over all rows; a noisy one is not."""

import pandas as pd
import pytest
from tests.unit.rows import mutated
from tests.unit.rows.mutated import Campaign

from peakmark.rows import build, findings, states
from peakmark.rows.states import FirstRounds
from peakmark.storage.results import Results

NEAR = [1.0, 1.02, 1.04, 1.06, 1.08, 1.1]


def judged(folder, share_of_rows):
    """A real campaign whose first round met DRAM at half its rate."""
    campaign = Campaign("two-nodes", folder / "golden")
    mutated.two_states(campaign, share_of_rows)
    return build.judge(Results.read(campaign.write(folder / "campaign")))


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("states"), 0.5)


def series(values, cells=None):
    """Readings of one probe, each of its own cell unless ``cells`` says otherwise."""
    return pd.DataFrame({"value": values, "record": cells or range(len(values))})


def rounds(*cells, unit="op/s"):
    """Runs of cells, each with its values in order of time."""
    lines = []
    for number, values in enumerate(cells):
        for repetition, value in enumerate(values):
            name = f"cpu/DP_x{number}/{repetition}"
            lines.append({"cell": name, "record": name, "time": repetition, "value": value})
    return pd.DataFrame(lines).assign(kept=True, unit=unit)


# -- two groups of readings


def test_the_border_of_two_groups_lies_between_them():
    low = [20.0 * value for value in NEAR]
    high = [40.0 * value for value in NEAR]
    assert max(low) < states.find_border(series(low + high)) < min(high)


@pytest.mark.parametrize("values", [
    [], [20.0], NEAR,
    [*NEAR, 2.0, 2.1],  # two readings make no state
    [*NEAR, 1.35, 1.36, 1.37],  # closer than the probes of one state may be
    [1.0, 1.2, 1.4, 1.6, 2.2, 2.6, 3.2, 3.8],  # the groups spread more than the gap
])  # fmt: skip
def test_one_noisy_state_has_no_border(values):
    assert states.find_border(series(values)) is None


def test_two_cells_are_too_few_for_a_state():
    values = [*NEAR, 2.0, 2.01, 2.02, 2.03]
    cells = ["a", "b", "c", "d", "e", "f", "g", "g", "h", "h"]
    assert states.find_border(series(values, cells)) is None


def test_two_kinds_of_cells_are_no_two_states():
    readings = series([value * factor for factor in (1.0, 2.0) for value in NEAR])
    shared = {"host": "node1", "probe": "dram", "threads": 1}
    kinds = readings.assign(row=["RS"] * 6 + ["LAT"] * 6, **shared)
    assert set(states.classify(kinds)["state"]) == {""}
    mixed = readings.assign(row=["RS", "LAT"] * 6, **shared)
    assert states.classify(mixed)["state"].tolist() == ["slow"] * 6 + ["fast"] * 6


def test_a_longer_time_is_the_slow_state():
    readings = series([value * factor for factor in (1.0, 2.0) for value in NEAR])
    readings = readings.assign(row="C2C", host="node1", probe="core-to-core", threads=2)
    assert states.classify(readings)["state"].tolist() == ["fast"] * 6 + ["slow"] * 6


# -- a campaign with two states


def test_the_finding_names_the_rates_the_times_the_worst_row_and_what_to_do(frames):
    (text,) = frames.findings.loc[frames.findings["topic"].eq("Two states"), "text"]
    assert text.startswith("The machine had two states: 1 thread read DRAM at 15 ")
    assert " GB/s or at 30 to 31 GB/s. The slow state was seen from " in text
    assert "1 thread measured 5.000 instead of 10.03 GB/s. This row was also disturbed." in text
    assert "Pin the virtual CPUs" in text


def test_rows_that_met_both_states_are_unsure_and_show_no_difference(frames):
    marked = set(frames.warnings.loc[frames.warnings["code"].eq("two-states"), "point"])
    rows = frames.rows[frames.rows["point"].isin(marked) & frames.rows["is_own"]]
    assert sorted(rows["workload"]) == ["RR", "RS", "RWS", "WR", "WS"]
    assert set(rows["severity"]) == {"unsure"}
    values = findings.values_of_rows(frames.runs)
    dram = frames.rows[frames.rows["table"].eq("memory_throughput")]
    compared = set()
    for group in findings.groups_of(dram, values):
        compared |= {pair.point for pair in group.pairs}
    assert compared and not compared & marked


def test_a_state_that_changed_no_row_marks_none(tmp_path):
    frames = judged(tmp_path, 0.98)
    assert "two-states" not in set(frames.warnings["code"])
    (text,) = frames.findings.loc[frames.findings["topic"].eq("Two states"), "text"]
    assert "measured" not in text


def test_slow_memory_and_fast_neighbours_are_no_mixture():
    assert not states.is_mixed(["dram:slow", "core-to-core:fast"])
    assert states.is_mixed(["dram:slow", "dram:fast"])


# -- the first round


def test_the_first_round_of_rates_and_of_times_is_compared_with_the_others():
    rates = states.count_first_rounds(rounds([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]))
    assert (rates.slowest, rates.cells, rates.rounds) == (1, 2, (3, 3))
    times = states.count_first_rounds(rounds([3.0, 1.0, 2.0], [3.0, 2.0, 1.0], unit="s"))
    assert (times.slowest, times.expected) == (2, pytest.approx(2 / 3))


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 1.0, 2.0]])
def test_cells_of_two_rounds_or_of_equal_values_tell_nothing_of_the_first(values):
    found = states.count_first_rounds(rounds(values))
    assert found.cells == 0 and not found.is_warm_up


@pytest.mark.parametrize(("slowest", "cells", "expected"), [
    (61, 95, 95 / 3), (14, 16, 16 / 3),
])  # fmt: skip
def test_a_first_round_that_is_slowest_too_often_is_a_warm_up(slowest, cells, expected):
    found = FirstRounds(slowest, cells, expected, (3, 3))
    assert found.is_warm_up
    assert (
        f"slowest in {slowest} of {cells} measurements, where chance gives {expected:.0f}:"
        in found.text
    )


@pytest.mark.parametrize(("slowest", "cells"), [
    (42, 100),  # as in a real campaign: p = 0.04
    (5, 8),
    (1200, 3000),  # significant, and of no consequence
])  # fmt: skip
def test_a_first_round_that_is_often_the_slowest_by_chance_is_none(slowest, cells):
    assert not FirstRounds(slowest, cells, cells / 3, (3, 3)).is_warm_up
