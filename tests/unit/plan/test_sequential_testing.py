"""Repetitions until the interval is narrow: rounds, decisions, and what is spared."""

import json

import campaign_data as data
import msgspec
import pytest

from peakmark import statistics
from peakmark.analysis import analysis
from peakmark.bundle import bundle
from peakmark.config import campaign as configuration
from peakmark.config.types import Criterion
from peakmark.errors import ConfigError
from peakmark.formatting import duration
from peakmark.plan import jobs, plan, plan_text, sequential_testing
from peakmark.storage import decisions
from peakmark.storage import records as stored_records
from peakmark.storage.results import Results
from peakmark.workflow.status import describe

WISH = {"min": 6, "max": 14, "until": "2%"}
GRID = [{"workloads": ["DP", "SP"], "concurrency": [1]}]
CALM = [100.0, 100.1, 99.9, 100.0, 100.2, 99.8]
WILD = [100.0, 130.0, 80.0, 101.0, 99.0, 140.0]


def make(repetitions=None, **changes):
    return plan.make({"campaign": "t", "cpu": GRID, "repetitions": repetitions or WISH, **changes})


MADE = make()


def of_row(workload, made=MADE):
    cells = [cell for cell in made.cells if cell.workload == workload]
    return sorted(cells, key=lambda cell: cell.repetition)


CALM_ROW, WILD_ROW = of_row("DP")[0].row, of_row("SP")[0].row


def records(**values):
    """Row -> records with the first cells' values; keyword: workload."""
    found = {}
    for workload, series in values.items():
        for cell, value in zip(of_row(workload), series, strict=False):
            record = data.record(cell, [data.measurement(cell, "rate", value)]) | {"raw": {}}
            found.setdefault(cell.row, []).append(record)
    return found


def table(folder):
    """Workload -> its row in the table of the CPU."""
    rows = analysis.build_rows(Results.read(folder))["cpu"]
    return {row.key.workload: row for row in rows}


def decide(number = 0, earlier = None, made = MADE, **values):  # fmt: skip
    found = records(**values)
    return sequential_testing.decide(made.cells, made.criteria, earlier or {}, number, found)


def campaign(folder, decided, made=MADE, **values):
    data.write(folder / "t", [record for row in records(**values).values() for record in row])
    data._write(folder / "t" / "plan.json", made.to_json())
    decisions.write(folder / "t" / decisions.FOLDER / "0.json", decided)
    return folder / "t"


@pytest.mark.parametrize("until", ["2%", " 2.0 %", "0.02", 0.02])
def test_shares_have_several_spellings(until):
    wish = {"min": 6, "max": 30, "until": until}
    assert configuration.criterion("repetitions", wish) == Criterion(6, 30, 0.02)


@pytest.mark.parametrize(("wish", "words"), [
    ({"min": 5, "max": 30, "until": "2%"}, ["repetitions.min", "5", "at least 6"]),
    ({"min": 6, "max": 2000, "until": "2%"}, ["repetitions.max", "2000", "at most 1000"]),
    ({"min": 8, "max": 8, "until": "2%"}, ["repetitions.max", "8", "allowed is more than"]),
    ({"min": 6, "max": 30}, ["repetitions lacks until"]),
    ({"min": 6, "max": 30, "until": "2%", "often": 1}, ["often", "max, min, until"]),
    ({"min": 6, "max": 30, "until": "two"}, ["repetitions.until", '"two"', "2% or 0.02"]),
    ({"min": 6, "max": 30, "until": 2}, ["repetitions.until", "2", "between 0 and 1"]),
    ({"min": 6, "max": 30, "until": "0%"}, ["repetitions.until", '"0%"']),
    ([3], ["repetitions", "[3]", "whole number"]),
])  # fmt: skip
def test_a_wrong_criterion_is_one_sentence(wish, words):
    of_tool = {"references": {"hpl": {"repetitions": wish}}}
    for place in (
        {"repetitions": wish},
        *({"cpu": [{**GRID[0], **more}]} for more in ({"repetitions": wish}, of_tool)),
    ):
        with pytest.raises(ConfigError) as caught:
            configuration.complete({"cpu": GRID, **place})
        assert "\n" not in str(caught.value)
        for word in words:
            assert word.removeprefix("repetitions.") in str(caught.value)


def test_rounds_grow_by_half_and_hold_each_cell_once():
    assert Criterion(6, 30, 0.02).counts == (6, 9, 13, 19, 28, 30)
    assert Criterion(6, 7, 0.02).counts == (6, 7)
    rounds = range(sequential_testing.rounds(MADE.criteria))
    in_round = [sequential_testing.in_round(MADE.cells, MADE.criteria, n) for n in (*rounds, 9)]
    ids = [cell.id for cells in in_round for cell in cells]
    assert sorted(ids) == sorted(cell.id for cell in MADE.cells) and len(ids) == 2 * 14
    assert in_round[-1] == []


def test_fixed_rows_belong_to_the_first_round_and_are_never_decided():
    fixed, adaptive = ({**GRID[0], "workloads": [workload]} for workload in ("DP", "SP"))
    made = make(repetitions=3, cpu=[fixed, {**adaptive, "repetitions": WISH}])
    assert {row.split("/")[2] for row in made.criteria} == {"SP_none_x1"}
    assert len(made.required_cells()) == 3 + 6
    assert make(repetitions=3).criteria == {}
    with pytest.raises(ConfigError, match="different repetitions"):
        make(3, cpu=[GRID[0], {**GRID[0], "repetitions": WISH}])


def test_a_calm_row_ends_and_a_wild_one_gets_the_next_round():
    decided = decide(DP=CALM, SP=WILD)
    assert (decided[CALM_ROW].decision, decided[CALM_ROW].asked) == ("narrow", 6)
    assert decided[CALM_ROW].half == pytest.approx(0.002)
    assert (decided[WILD_ROW].decision, decided[WILD_ROW].asked) == ("more", 9)
    second, third = (
        sequential_testing.required_in_round(MADE.cells, MADE.criteria, decided, number)
        for number in (1, 2)
    )
    assert {cell.id for cell in second} == {cell.id for cell in of_row("SP")[6:9]} and third == []
    # An open row has nothing spared yet.
    assert decisions.spared(MADE.cells, decided) == {cell.id for cell in of_row("DP")[6:]}
    # A closed row stays closed, and the cap closes the rest.
    for number, count in enumerate(MADE.criteria[WILD_ROW].counts):
        decided = decide(number, decided, DP=CALM, SP=(WILD * 3)[:count])
        assert (decided[CALM_ROW].decision, decided[CALM_ROW].asked) == ("narrow", 6)
    wild = decided[WILD_ROW]
    assert (wild.decision, wild.asked, wild.n) == ("cap", 14, 14)


def test_failed_cells_are_awaited_and_impossible_ones_tried_no_more():
    assert decide(DP=CALM[:5]) == {}
    cells = of_row("DP")[:6]
    refused = [data.record(cell, status="unavailable", reason="no AVX-512") for cell in cells]
    decided = sequential_testing.decide(MADE.cells, MADE.criteria, {}, 0, {CALM_ROW: refused})
    assert decided[CALM_ROW].decision == "unavailable"
    assert len(decisions.spared(MADE.cells, decided)) == 8


def test_every_figure_of_a_record_must_be_certain():
    criterion, row = MADE.criteria[CALM_ROW], records(DP=CALM)[CALM_ROW]
    assert sequential_testing.half_interval(row, criterion) == pytest.approx(0.002)
    for record, value in zip(row, WILD, strict=True):
        latency = {"metric": "latency", "value": value, "unit": "s"}
        record["measurements"].append({**record["measurements"][0], **latency})
    assert sequential_testing.half_interval(row, criterion) == pytest.approx(30 / 100.5)
    assert sequential_testing.half_interval([], criterion) is None


@pytest.mark.parametrize("bounds", [(6, 30), (6, 7), (6, 14), (10, 30), (20, 40), (6, 1000)])
def test_all_tests_together_miss_in_no_more_than_five_per_cent(bounds):
    criterion = Criterion(*bounds, 0.02)
    found = sequential_testing.alpha_spending(criterion)
    assert tuple(found) == criterion.counts
    assert 0.04 < sum(found.values()) <= sequential_testing.ERROR
    assert all(found.values())  # A row may end at each of them.


def test_the_row_in_the_tables_shows_the_interval_of_its_last_test(tmp_path):
    values = {"DP": [100.0 + number for number in range(9)], "SP": CALM}
    decided = decide(1, decide(**values), **values)
    nine = table(campaign(tmp_path, decided, **values))["DP"].measured.summary
    assert (nine.n, nine.low, nine.high, nine.enough) == (9, 100.0, 108.0, True)
    plain = statistics.summarise(values["DP"])
    # A fixed number of nine repetitions has a narrower interval.
    assert (plain.low, plain.high) == (101.0, 107.0)
    assert decided[CALM_ROW].half == pytest.approx(4 / 104)


def test_the_plan_announces_the_least_and_the_most():
    text = plan_text.describe(MADE)
    assert "28 cells" in text and "at least 12 cells" in text and "6 to 14 repetitions" in text
    least = duration(MADE.durations.total(MADE.required_cells()))
    most = duration(MADE.durations.total(MADE.cells))
    assert f"at least 12 cells, {least}; at most {most}" in text
    assert "at least" not in plan_text.describe(make(3))


def test_a_new_criterion_voids_no_cell_but_the_job_of_a_node():
    other = make({**WISH, "until": "1%"})
    assert [cell.spec() for cell in MADE.cells] == [cell.spec() for cell in other.cells]
    assert jobs.fingerprint(MADE.cells, MADE) != jobs.fingerprint(other.cells, other)


def test_spared_cells_are_neither_missing_nor_done_here_and_in_a_copy(tmp_path):
    values = {"DP": CALM, "SP": CALM}
    folder = campaign(tmp_path, decide(**values), **values)
    text = describe(Results.read(folder))
    assert "12 of 12" in text and "16 spared" in text and text.endswith("complete")
    found = table(folder).values()
    assert [(row.missing, row.measured.summary.n) for row in found] == [(0, 6), (0, 6)]
    assert "repetitions/0.json" in bundle.copy(Results.read(folder), tmp_path / "copy")
    for results in map(Results.read, (folder, tmp_path / "copy")):
        assert (len(results.records), len(results.spared), results.missing) == (12, 16, ())


def test_an_open_row_still_misses_its_cells(tmp_path):
    values = {"DP": CALM, "SP": WILD}
    results = Results.read(campaign(tmp_path, decide(**values), **values))
    text = describe(results)
    assert "12 of 20" in text and "8 spared" in text and len(results.missing) == 8
    # Decisions by another criterion count for nothing.
    other = make({**WISH, "until": "1%"})
    folder = campaign(tmp_path / "other", decide(**values), other, **values)
    assert not Results.read(folder).spared


def test_a_row_that_stays_uncertain_has_a_warning(tmp_path):
    decided = {}
    values = {"DP": (WILD * 3)[:14], "SP": CALM}
    for number in range(sequential_testing.rounds(MADE.criteria)):
        decided = decide(number, decided, **values)
    decided[CALM_ROW] = msgspec.structs.replace(decided[CALM_ROW], decision="cap")
    rows = table(campaign(tmp_path, decided, **values))
    (note,) = (note for note in rows["DP"].warnings if note.code == "shortfall")
    assert "14 repetitions" in note.text and "±2 %" in note.text and "max:" in note.text
    assert not any(note.code == "shortfall" for note in rows["SP"].warnings)


def test_a_record_that_does_not_count_decides_nothing(tmp_path):
    folder = campaign(tmp_path, {}, DP=CALM)
    for path in folder.rglob("cells/**/*.json"):
        stored_records.write(path, json.loads(path.read_text()))

    def count():
        return len(sequential_testing.read_records(folder, MADE.cells, MADE.criteria)[CALM_ROW])

    assert count() == 6
    damaged = folder / "cells" / f"{of_row('DP')[2].id}.json"
    damaged.write_text(damaged.read_text().replace("99.9", "999.9"))
    assert count() == 5
