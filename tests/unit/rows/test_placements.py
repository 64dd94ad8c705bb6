"""A host moves the virtual CPUs: runs are compared within one placement, and the report says what it saw.

The numbers are those of a virtual machine of two CPUs, whose readings formed three bands.
"""

import itertools
from dataclasses import replace

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.rows import placements, schema
from peakmark.views import score_card

DRAM = {10.3: (28.5, 26.4, 35.4), 26.0: (32.0, 28.6, 41.6), 108.0: (55.7, 52.3, 57.4)}
"""Time of a band, ns -> rates at which two threads read DRAM in it, GB/s."""
SPREAD = {10.3: (1.0, 0.997, 1.002), 26.0: (1.0, 0.92, 1.2, 1.05), 108.0: (1.0, 1.03)}
"""Time of a band -> factors of its readings."""
ROWS = {
    ("HP", None): [(10.3, 233.3), (26.0, 458.0), (26.0, 457.1)],
    ("RWR", 1 << 20): [(108.0, 89.6), (26.0, 44.4), (26.0, 49.4)],
    ("RWS", 1 << 20): [(108.0, 83.0), (26.0, 47.0), (26.0, 47.4)],
    ("RS", 1 << 20): [(10.3, 27.1), (26.0, 32.2), (26.0, 33.1)],
    ("WR", 1 << 20): [(10.3, 26.8), (26.0, 27.0), (26.0, 27.2)],
    ("WS", 1 << 20): [(10.3, 27.57), (26.0, 27.65), (108.0, 27.71)],
}
"""Workload and block of rows of two threads -> band and value of each repetition."""


def measured(folder, rows, slower=(), moved=(), change_facts=None):
    """A real campaign whose runs had these placements and values.

    Args:
        folder: where to make it.
        rows: see ``ROWS``; all other runs are in the band of 26 ns.
        slower: workload and repetition that read DRAM 40 % more slowly.
        moved: workload and repetition of two threads that ended in the band of 108 ns.
        change_facts: changes the facts of the machine.
    """
    factors = {band: itertools.cycle(each) for band, each in SPREAD.items()}
    rates = {band: itertools.cycle(each) for band, each in DRAM.items()}

    def change(record):
        number = record["cell"]["repetition"]
        (entry,) = record["measurements"]
        details = {"cpu_share": 1.0, "held_up": 0}
        run = entry["workload"], number
        band, value = 26.0, (1.0, 1.01, 0.99)[number]
        if entry["concurrency"] == 2:
            row = entry["workload"], entry["block"]
            if row in rows and entry["variant"] in ("", "pool"):
                band, value = rows[row][number]
            for moment in ("before", "after"):
                details[f"core_to_core_{moment}"] = 1e-9 * band * next(factors[band])
                band = 108.0 if run == moved else band
        if entry["variant"] == "pool":
            for moment in ("before", "after"):
                details[f"probe_{moment}"] = 1e9 * next(rates[band]) * (0.6 if run == slower else 1)
        hz = 3.4e9 if band < 20 else (3.69e9, 3.65e9, 3.69e9)[number]
        known = {"clock_hz_before": hz, "clock_hz_after": hz}
        record["context"] |= {"host": "node1", **make.noise(), **known}
        entry["details"] |= details | known
        entry["value"] = 1e9 * value

    return make.edited("cluster", folder, "[cr][pa][um]bench/*/any", change, change_facts)


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """The frames of ``ROWS``."""
    return measured(tmp_path_factory.mktemp("placed") / "c", ROWS)


def rows_of(frames):
    """Workload and block -> row of two threads, in DRAM or without a block."""
    own = frames.rows[frames.rows["is_own"] & frames.rows["concurrency"].eq(2)]
    return {
        (row.workload, row.block_bytes): row
        for row in schema.lines(own[own["variant"].isin(["", "pool"])])
    }


def test_runs_of_a_row_are_compared_in_its_most_usual_placement(placed):
    rows = rows_of(placed)
    medians = {name: rows[name].value / 1e9 for name in ROWS}
    assert medians == pytest.approx({
        ("HP", None): 457.55, ("RWR", 1 << 20): 46.9, ("RWS", 1 << 20): 47.2,
        ("RS", 1 << 20): 32.65, ("WR", 1 << 20): 27.0, ("WS", 1 << 20): 27.65,
    })  # fmt: skip
    assert [rows[name].n for name in ROWS] == [2, 2, 2, 2, 3, 3]
    # Its limit is at their clocks: two threads on one core have another clock.
    assert rows["HP", None].clock_hz == pytest.approx(3.67e9)
    runs = placed.runs[placed.runs["workload"].eq("HP") & placed.runs["concurrency"].eq(2)]
    assert [round(1e9 * band, 1) for band in runs["band"]] == [10.3, 26.0, 26.0]
    # Nobody disturbed a run: each placement has its own rate of DRAM.
    assert not set(placed.warnings["code"]) & {"neighbours"}
    assert placed.runs["causes"].eq("").all()
    # Each row says in which placement it was measured, but one whose runs do not differ.
    bands = pd.Series([rows[name].band for name in ROWS])
    assert bands.between(25e-9, 27e-9).tolist() == [False] + [True] * 3 + [False] * 2
    other = bands.mask(bands.index == 1, 108e-9)
    assert schema.may_be_one(bands, other).tolist() == [True, False] + [True] * 4
    notes = placed.warnings[placed.warnings["code"].eq("placement")]
    assert notes["short"].str.contains("one L3 cache|on one core").all()
    others = notes["short"].str.contains("only|left out")
    assert notes["trust"].eq("care").sum() == others.sum() == 4


def test_the_report_says_what_was_measured_in_each_placement(placed):
    (found,) = placements.describe(placed)
    caveats = [caveat.full_sentence for caveat in score_card.build_caveats(placed)]
    assert found.full_sentence in caveats
    seen = [(*text.partition(" ns in ")[::2],) for text in found.values["bands"]]
    assert [times for times, _ in seen] == ["10.3", "23.9 to 31.2", "108 to 111"]
    assert [runs.partition("; ")[0].rstrip(")") for _, runs in seen] == [
        "4 runs (likely one core",
        "47 runs (likely one L3 cache",
        "3 runs (likely two L3 caches",
    ]
    # Runs on one core were slower than their rows, and those on two caches are some times as fast.
    assert ["; " in runs for _, runs in seen] == [True, False, True]
    bands = placed.runs["band"].where(placed.runs["band"] > 11e-9)
    (found,) = placements.describe(replace(placed, runs=placed.runs.assign(band=bands)))
    assert found.values["bands"][-1].startswith("10.3 ns in 4 runs that changed")


def test_all_nodes_that_moved_are_named_and_rows_of_several_may_mix_placements(placed):
    hosts = placed.runs["host"].mask(placed.runs.index % 2 == 0, "node2")
    (found,) = placements.describe(replace(placed, runs=placed.runs.assign(host=hosts)))
    assert found.values["hosts"] == "node1 and node2"
    assert "may mix placements" in found.text


@pytest.mark.parametrize(("others", "value", "n"), [
    ([25e-9], 26e-9, 4),
    # Most runs are in the upper band, and the lower one is wide.
    ([22e-9, 32e-9, 113e-9, 114e-9, 115e-9], 112.5e-9, 6),
])  # fmt: skip
def test_core_to_core_of_two_cpus_is_that_of_one_placement(tmp_path, others, value, n):
    times = [26e-9, 27e-9, 26e-9, 110e-9, 111e-9, 112e-9, *others]
    facts = make.VM | {"host": "node1"}
    found = make.runs("rambench", "C2C", *times, variant="same-cache", concurrency=2, metric="core_to_core",
                      context=make.placed(2, 2))  # fmt: skip
    row = make.only_row(tmp_path / "c", found, facts=facts)
    assert (row.value, row.n) == (pytest.approx(value), n)


@pytest.mark.parametrize(("column", "near", "far", "usual"), [
    ("cpu_share", 0.97, 0.99, "near"), ("cpu_share", 0.1, 0.97, "far"), ("causes", "waited", "", "far"),
    ("causes", "", "waited", "near"),
])  # fmt: skip
def test_of_two_placements_that_are_equally_frequent_the_undisturbed_or_nearer_one_is_usual(
    column, near, far, usual
):
    runs = pd.DataFrame({"value": [1.0, 2.0, 1.0, 2.0], "band": [108e-9, 26e-9, 108e-9, 26e-9]})
    place = dict.fromkeys(["disturbed", "point", "instrument", "host"], "")
    place |= {"table": "cpu", "subsystem": "memory"} | dict.fromkeys(placements.READINGS, 1.0)
    known = {"causes": "", "cpu_share": 1.0, **place, column: [far, near, far, near]}
    is_usual = placements.mark_usual(runs.assign(**known))["is_usual"]
    assert is_usual.tolist() == [usual == "far", usual == "near"] * 2


def test_a_run_that_moved_has_no_placement(tmp_path):
    frames = measured(tmp_path / "c", ROWS, moved=("HP", 1))
    runs = frames.runs[frames.runs["workload"].eq("HP") & frames.runs["concurrency"].eq(2)]
    assert runs["band"].isna().tolist() == [False, True, False]
    assert rows_of(frames)["HP", None].n == 2  # computing threads share nothing but a core


@pytest.mark.parametrize(("value", "named"), [(0.7, True), (0.99, False)])
def test_a_neighbour_at_the_memory_is_named_if_the_value_fell(tmp_path, value, named):
    rows = {("RR", 1 << 20): [(26.0, value), (26.0, 1.0), (26.0, 1.0)]}
    frames = measured(tmp_path / "c", rows, slower=("RR", 0))
    row = rows_of(frames)["RR", 1 << 20]
    assert ("neighbours" in row.warnings.split()) == named
    assert not list(placements.describe(frames))


def test_pinned_threads_of_a_real_machine_have_one_placement(tmp_path):
    def real(facts):
        facts["cpu"]["virtualised"] = None

    frames = measured(tmp_path / "c", ROWS, change_facts=real)
    assert frames.runs["band"].isna().all() and not list(placements.describe(frames))
    assert "placement" not in set(frames.warnings["code"])
