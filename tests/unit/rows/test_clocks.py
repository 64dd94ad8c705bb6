"""Clock and work per cycle are two figures: a throttled node reaches its limit at a low clock."""

import pytest
from tests.unit import campaign_data as make
from tests.unit.rows.checked import U, noise

from peakmark.rows import schema

FULL, THROTTLED = 3.69e9, 0.75 * 3.69e9
PER_CYCLE = {"DP": 16, "SP": 32}


def fleet(folder, hz, usual=FULL, drift=(1.0,), change_facts=None):
    """Four nodes in a quiet hour, each at 98 % of the limit at the clock that it had.

    The clock of each repetition is higher by the next of the factors ``drift``.
    """

    def change(record):
        clock = hz.get(record["context"]["host"], usual)
        clock *= drift[record["cell"]["repetition"] % len(drift)]
        known = {"clock_hz_before": clock, "clock_hz_after": clock}
        record["context"] |= noise() | known
        (entry,) = record["measurements"]
        entry["details"] |= known | {"clock_hz_loaded": clock, "cpu_share": 1.0, "held_up": 0}
        operations = entry["concurrency"] * PER_CYCLE[entry["workload"]]
        entry["value"] = 0.98 * clock * operations

    return make.edited("cluster", folder, "cpu/cpubench/*/node?", change, change_facts)


def cpu_rows(frames):
    """The measured rows of the CPU."""
    return frames.rows[frames.rows["table"].eq("cpu") & frames.rows["n"].gt(0)]


def doubted(frames):
    """The rows of each node that a low clock puts in doubt."""
    rows = {}
    for row in schema.lines(cpu_rows(frames)):
        assert row.efficiency == pytest.approx(0.98)
        marked = "slowed-down" in row.warnings.split()
        assert marked == (row.trust == U)
        if marked:
            rows.setdefault(row.node, []).append(row)
    return rows


@pytest.mark.parametrize("drift", [(1.0, 0.97, 1.04), (1.06, 1.0, 1.0), (1.0, 1.04, 1.04)])
def test_a_drifting_clock_changes_no_share(tmp_path, drift):
    frames = fleet(tmp_path / "c", {}, drift=drift)
    assert doubted(frames) == {}
    assert cpu_rows(frames)["clock_hz"].to_numpy() == pytest.approx(FULL * sorted(drift)[1])
    runs = frames.runs[frames.runs["table"].eq("cpu") & frames.runs["kept"]]
    assert runs["share"].tolist() == pytest.approx([0.98] * len(runs))


@pytest.mark.parametrize(("hz", "found"), [(THROTTLED, ["node3"]), (0.93 * FULL, [])])
def test_a_throttled_node_is_seen_beside_equal_ones(tmp_path, hz, found):
    frames = fleet(tmp_path / "c", {"node3": hz})
    marked = doubted(frames)
    assert list(marked) == found
    assert all(len(rows) == 4 for rows in marked.values())
    for row in schema.lines(cpu_rows(frames)):
        assert row.clock_share == pytest.approx(hz / FULL if row.node == "node3" else 1.0)


@pytest.mark.parametrize(("maximum", "count"), [(FULL, 4), (1.05 * THROTTLED, 0)])
def test_a_clock_far_below_the_datasheets_is_low(tmp_path, maximum, count):
    def stated(facts):
        facts["cpu"]["clock_hz"]["maximum"] = maximum

    frames = fleet(tmp_path / "c", {}, usual=THROTTLED, change_facts=stated)
    assert len(doubted(frames)) == count
