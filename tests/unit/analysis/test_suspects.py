"""Slow nodes that are measured again, and the certificate that says how often the verdict is right."""

from __future__ import annotations

import csv

import pytest
from tests.unit import campaign_data as make

from peakmark import tables
from peakmark.analysis import Analysis, suspects
from peakmark.cell import AGAIN, TRIAL, Cell
from peakmark.report import nodes
from peakmark.storage import planfile

CONFIG = {"seed": 1, "repeat_suspects": True}
NODES = [f"node{number}" for number in range(1, 9)]


def rows(factors, purpose=""):
    """Six repetitions of two rows of the CPU on some nodes."""
    records = []
    for node, factor in factors.items():
        for workload, rate in (("DP", 1e11), ("SP", 2e11)):
            wobble = 1 + 0.0005 * (NODES.index(node) % 3)
            values = [rate * factor * wobble * near for near in make.near(1.0)]
            records += make.runs("cpubench", workload, *values, node=node, host=node)
    if purpose:
        for record in records:
            record["cell"]["purpose"] = purpose
    return records


def again(folder, factors):
    """The campaign with the second measurement of these nodes."""
    for record in rows(factors, AGAIN):
        make._write_record(folder / "cells" / f"{Cell.from_json(record['cell']).id}.json", record)
    return Analysis.of(folder)


@pytest.fixture
def campaign(tmp_path):
    """Eight nodes, of which node3 is slower by a tenth; what is measured again is decided."""
    healthy = dict.fromkeys(NODES, 1.0)
    folder = make.write(tmp_path / "c", rows({**healthy, "node3": 0.9}), config=CONFIG)
    analysis = Analysis.of(folder)
    chosen = suspects.choose(analysis.results, analysis.rows, [])
    planfile.write_suspects(folder, chosen)
    return folder


def test_slow_rows_are_measured_again_beside_two_healthy_nodes(campaign):
    results = Analysis.of(campaign).results
    assert {row.rpartition("/")[2] for row in results.suspects} == {"node3"}
    assert len(results.suspects) == 2
    planned = [cell for cell in results.cells if cell.purpose]
    assert len(planned) == 2 * 3 * 6 and {cell.purpose for cell in planned} == {AGAIN}
    beside = {cell.node for cell in planned} - {"node3"}
    assert len(beside) == 2
    # Until they are measured, they are missing; and nothing is told of them.
    assert set(results.missing) == set(planned) and Analysis.of(campaign).checks == []


@pytest.mark.parametrize(
    ("suspect", "controls", "case"),
    [
        (0.9, 1.0, "confirmed"),
        (1.0, 1.0, "flaky"),
        (0.7, 1.0, "worse"),
        # All were slower by a tenth meanwhile: the suspect is what the others are.
        (0.9, 0.9, "flaky"),
        (0.72, 0.8, "confirmed"),
    ],
)
def test_the_second_measurement_confirms_or_not(campaign, suspect, controls, case):
    chosen = Analysis.of(campaign).results.suspects
    beside = {row.rpartition("/")[2] for each in chosen.values() for row in each}
    analysis = again(campaign, {**dict.fromkeys(beside, controls), "node3": suspect})
    assert [each.case for each in analysis.suspects] == [case, case]
    assert all(set(each.controls) == beside for each in analysis.suspects)
    behind = 1 - suspect / controls
    assert analysis.suspects[0].behind == pytest.approx(behind, abs=0.01)
    (told,) = analysis.checks
    assert (told.code, told.case) == ("second-measurement", case)
    assert dict(told.values)["node"] == "node3"
    assert nodes.fleet_data(analysis)["slow"] == ([] if case == "flaky" else ["node3"])
    tables.build(campaign)
    with (campaign / "tables" / "suspects.csv").open() as file:
        assert {line["outcome"] for line in csv.DictReader(file)} == {case}
    with (campaign / "tables" / "runs.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8 * 2 * 6  # of the rows alone


@pytest.mark.parametrize(("share", "explained"), [(0.89, True), (0.99, False), (0.5, False)])
def test_lost_time_is_the_reason_where_it_explains_the_rate(tmp_path, share, explained):
    records = rows({**dict.fromkeys(NODES, 1.0), "node3": 0.9})
    for record in records:
        own = share if record["cell"]["node"] == "node3" else 0.99
        record["measurements"][0]["details"]["cpu_share"] = own
    analysis = Analysis.of(make.write(tmp_path / "c", records, config=CONFIG))
    ((node, why),) = analysis.slow
    assert node.node == "node3" and ("lost-time" in {each.code for each in why}) == explained


def test_without_the_key_nothing_is_measured_again(campaign):
    plan = campaign / "plan.json"
    plan.write_text(plan.read_text().replace('"repeat_suspects": true', '"repeat_suspects": false'))
    results = Analysis.of(campaign).results
    assert results.suspects == {} and not any(cell.purpose for cell in results.cells)


def test_the_certificate_counts_what_was_slowed_and_no_table_has_it(tmp_path):
    plain = rows({**dict.fromkeys(NODES, 1.0), "node7": 0.8})  # which is slow anyway: no trial
    trials = rows({"node2": 0.9, "node5": 1.0, "node7": 0.8}, TRIAL)
    trials = [record for record in trials if record["cell"]["workload"] == "DP"]
    folder = make.write(tmp_path / "c", [*plain, *trials], config={**CONFIG, "certify": True})
    cells = [Cell.from_json(record["cell"]) for record in trials]
    tables.build(folder)  # which needs no seal
    assert {each.case for each in Analysis.of(folder).checks} == {"records"}
    without = make.write(tmp_path / "without" / "c", plain, config=CONFIG)
    tables.build(without)
    for name in ("cpu", "nodes", "summary", "runs", "measurements"):
        texts = [(each / "tables" / f"{name}.csv").read_text() for each in (folder, without)]
        assert texts[0] == texts[1]
    planfile.write_seal(folder, {cell.row for cell in cells if cell.node != "node5"})
    found, false, *records = Analysis.of(folder).checks
    assert (found.code, found.case) == ("certificate-found", "trials")
    assert [dict(each.values)["count"] for each in (found, false)] == [1, 0]
    assert [dict(each.values)["of"] for each in (found, false)] == [1, 1]
    assert {each.case for each in records} == {"records"}


def test_rates_from_records_follow_their_spread():
    def fleet(spread):
        return {
            (node, row): [1 + spread * ((7 * place + 3 * row + 5 * n) % 11 - 5) for n in range(6)]
            for place, node in enumerate(NODES)
            for row in range(6)
        }

    quiet, wild = (suspects.of_records(fleet(spread), (), (), 1, 60) for spread in (0.001, 0.02))
    assert quiet.found == quiet.slowed and quiet.false == 0
    assert wild.found < 0.5 * wild.slowed
    assert quiet.slowed == len(NODES) * 6 * suspects.SHARE  # no more than the records tell
    assert suspects.of_records(fleet(0.001), (), (), 1, 60) == quiet  # seeded
    times = suspects.of_records(fleet(0.001), (), range(6), 1, 60)
    assert times.found == times.slowed
