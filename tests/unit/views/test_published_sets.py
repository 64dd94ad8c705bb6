"""The published reports again from their own numbers: averages, efficiencies and runs as printed."""

import csv
import dataclasses
import json
import math

import msgspec
import pytest
from tests.unit import campaign_data as make
from tests.unit import published

from peakmark.config import layouts, site
from peakmark.resources import ROOT
from peakmark.rows import schema
from peakmark.tools.tables import BY_NAME
from peakmark.views import document, layout_tables
from peakmark.views.table import rows_of

NAME = "disk-patterns-2020"
DIFFERENCES = make.DATA / "seeds" / "disk-patterns-2020-differences.csv"
PRINTED = {
    (
        (entry.table, entry.metric, entry.run),
        (entry.workload, entry.concurrency, entry.block, entry.program),
    ): entry.value
    for entry in published.load(NAME)
}


@pytest.fixture(scope="module")
def fed(tmp_path_factory):
    """A campaign of the three runs of the report, with the theoretical values that it used."""
    records = []
    for entry in published.measured(NAME):
        if entry.run.isdigit() or entry.table == "disk_iops":
            records += make.runs(
                entry.instrument, entry.workload, entry.value, metric=entry.metric,
                repetition=int(entry.run or 1) - 1, block=entry.block,
                concurrency=entry.concurrency,
            )  # fmt: skip
    facts = msgspec.to_builtins(site.load(ROOT / "config" / "sites" / "chameleon-skylake-ssd.yaml"))
    rates = dict.fromkeys(("RS", "WS", "RR", "WR"), 510e6)
    facts["disk"] |= {"throughput": rates, "iops": {"RR": 90e3, "WR": 10e3}}
    config = {"site_facts": facts, "report": {"tables": NAME}}
    return make.frames(tmp_path_factory.mktemp("fed") / NAME, records, config=config)


def _listed():
    """The differences that are known: place -> what is printed, what is computed, and why."""
    keys = ("table", "quantity", "workload", "concurrency", "record", "program")
    with DIFFERENCES.open(encoding="utf-8", newline="") as file:
        return {
            tuple(line[key] for key in keys): (
                float(line["printed"]), float(line["computed"]), line["why"]
            )
            for line in csv.DictReader(file)
        }  # fmt: skip


def compared(layout_table, column, own):
    """Quantity, program, and the printed value of a row; None for another column."""
    table, runs = layout_table.table, layout_table.name.endswith("_runs")
    quantity = {"measured": "average", "efficiency": "efficiency"}.get(str(column.value))
    if quantity is None or (runs and quantity == "efficiency"):
        return None
    program = "MyDiskBench" if column.instrument == "diskbench" else "IOZone"
    metric = "efficiency" if quantity == "efficiency" else table.metric
    run = "" if table.name == "disk_iops" else "mean" if runs else "final"
    place = (own.workload, own.concurrency, own.block_bytes, program)
    factor = 100 if quantity == "efficiency" else layout_table.factor
    return quantity, program, PRINTED[(table.name, metric, run), place] * factor


def test_tables_agree_with_the_report_but_for_what_is_listed(fed):
    differing = {}
    count = 0
    for layout_table in layouts.load(NAME).layout_tables:
        margin = 0.3 if layout_table.table.name == "disk_throughput" else 0.1
        points = layout_tables.lines_of(
            layout_table, layout_table.table, rows_of(fed, layout_table.table)
        )
        assert points.own["line"].is_unique
        columns = layout_tables.columns_of(fed, layout_table, points)
        for number, own in enumerate(schema.lines(points.own)):
            for column, shown in zip(layout_table.columns, columns, strict=True):
                pair = compared(layout_table, column, own)
                if pair is None:
                    continue
                count += 1
                quantity, program, printed = pair
                computed = shown.values.iloc[number]
                # Averages are printed as whole numbers, cut or rounded; efficiencies are of those.
                agrees = abs(computed - printed) <= margin
                if quantity == "average":
                    agrees = round(printed) in (math.floor(computed), math.floor(computed + 0.5))
                if not agrees:
                    names = [own.words[key] for key in ("workload", "concurrency", "block")]
                    place = (layout_table.name, quantity, *names, program)
                    differing[place] = (printed, computed)
    assert count == 4 * 21 * 2 * 3 + 2 * 7 * 2 * 2
    listed = _listed()
    assert differing.keys() == listed.keys()
    for place, (printed, computed) in differing.items():
        assert listed[place][0] == pytest.approx(printed), place
        assert listed[place][1] == pytest.approx(computed, abs=0.006), place
        assert listed[place][2], place


@pytest.fixture(scope="module")
def printed():
    """The report of Hyperion's numbers: averages, some with deviations and notes."""
    frames = schema.read(published.FOLDER / "four-subsystems-2018-hyperion")
    return frames, document.build(frames)


def test_a_report_of_printed_numbers_tells_nothing_of_measuring(printed):
    _, shown = printed
    text = json.dumps(shown)
    for words in ("only one run", "irect I/O", "warm-up", "set repetitions", "records of 100 MB"):
        assert words not in text
    assert shown["machine"] == [] and "course report" in shown["page_one"]["box"][-1][1]
    # Nothing is known of what others' programs compute, and where their data lie; advice on measuring is left out.
    titles = [line["title"] for line in shown["page_one"]["card"]]
    assert {"FP64", "Memory copy", "HPL"} <= {*titles} and shown["overview"] is None
    names = [name for name, _, _ in shown["remarks"]]
    assert names.count("above the limit") == 1


def test_notes_stand_below_their_table_and_wrong_values_in_no_sentence(printed):
    frames, shown = printed
    (cpu,) = shown["sections"][0]["parts"]
    assert any("a sixth of the rate of two threads" in each for each in cpu["table"]["remarks"])
    notes = frames.warnings[frames.warnings["code"].eq("note")]
    wrong = set(notes.loc[notes["trust"].eq("no"), "point"])
    of_cpu = frames.findings[
        frames.findings["table"].eq("cpu") & frames.findings["certainty"].ne("")
    ]
    used = {point for points in of_cpu["points"] for point in json.loads(points)}
    assert used and not used & wrong
    # A value that nothing may rest on is no reference on page one either, and the program has the report's name.
    references = [line["reference_text"] for line in shown["page_one"]["card"]]
    assert not any(each.startswith(("IOZone 50", "iperf3")) for each in references)
    # The notes on limits and standard deviations stand below the tables too.
    below = [each["table"]["remarks"] for part in shown["sections"] for each in part["parts"]]
    for words in ("three positive values", "InfiniBand"):
        assert words in json.dumps(below), words


def test_a_wrong_reference_is_marked_where_the_own_program_has_the_same_remark():
    name = "four-subsystems-2018-hyperion"
    frames = schema.read(published.FOLDER / name)
    warnings = frames.warnings
    # Both programs are above the limit in all rows. Leave IOZone's remark in one of them.
    of_others = warnings["point"].ne("disk_iops/any/RR/psync/1024/4/")
    removed = of_others & warnings["about"].eq("iozone") & warnings["code"].eq("above-limit")
    frames = dataclasses.replace(frames, warnings=warnings[~removed])
    (iops,) = layout_tables.shown_tables(frames, BY_NAME["disk_iops"], layouts.load(name))
    marked = [text for text in iops.columns[-1].texts if "IOZone above" in text]
    assert len(marked) == 1
