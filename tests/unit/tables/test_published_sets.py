"""The published reports again from their own numbers: averages, efficiencies and runs as printed,
and beside this machine.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit.config.published_sets import entries_of

from peakmark.analysis.analysis import build_rows
from peakmark.config import layouts, published, site
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import layout_tables, presentation, tables
from peakmark.tools.tables import BY_NAME

NAME = "disk-patterns-2020"


DIFFERENCES = make.DATA / "seeds" / "disk-patterns-2020-differences.csv"


def _fed(folder: Path) -> Results:
    """A campaign of the three runs of the report, with the theoretical values that it used."""
    records = []
    for entry in published.load(NAME).measured():
        if entry.run.isdigit() or entry.table == "disk_iops":
            repetition = int(entry.run or 1) - 1
            records += make.runs(
                entry.instrument, entry.workload, entry.value, metric=entry.metric,
                repetition=repetition, block=entry.block, concurrency=entry.concurrency,
            )  # fmt: skip
    facts = site.load(ROOT / "config" / "sites" / "chameleon-skylake-ssd.yaml")
    return Results.read(
        make.write(
            folder,
            records,
            config={"site_facts": facts, "report": {"tables": NAME, "summary": "mean"}},
        )
    )


def _printed(
    quantity: str, run: str, table: str = "disk_throughput"
) -> dict[tuple[str, int, int | None, str], float]:
    metric = "efficiency" if quantity == "efficiency" else BY_NAME[table].metric
    return {
        (entry.workload, entry.concurrency, entry.block, entry.program): entry.value
        for entry in entries_of(NAME)
        if entry.table == table and entry.metric == metric and entry.run == run
        if entry.program != published.THEORETICAL
    }


def _listed() -> dict[tuple[str, ...], tuple[float, float, str]]:
    keys = ("table", "quantity", "workload", "concurrency", "record", "program")
    with DIFFERENCES.open(encoding="utf-8", newline="") as file:
        return {
            tuple(line[key] for key in keys): (
                float(line["printed"]), float(line["computed"]), line["why"]
            )
            for line in csv.DictReader(file)
        }  # fmt: skip


def test_the_tables_give_the_averages_and_efficiencies_of_the_report_but_for_what_is_listed(
    tmp_path: Path,
) -> None:
    results = _fed(tmp_path / NAME)
    tables.build(tmp_path / NAME)
    rows = build_rows(results)
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    compared = 0
    for layout_table in layouts.load(NAME).layout_tables:
        quantities = (
            ("average",) if layout_table.name.endswith("_runs") else ("average", "efficiency")
        )
        for line in layout_tables.lines(layout_table, rows[layout_table.table.name]):
            (row,) = line.rows
            for column in layout_table.columns:
                quantity = {"mean": "average", "efficiency": "efficiency"}.get(str(column.value))
                if quantity not in quantities:
                    continue
                program = "MyDiskBench" if column.instrument == "diskbench" else "IOZone"
                run = (
                    ""
                    if layout_table.table.name == "disk_iops"
                    else "mean"
                    if layout_table.name.endswith("_runs")
                    else "final"
                )
                place = (row.key.workload, row.key.concurrency, row.key.block, program)
                printed = _printed(quantity, run, layout_table.table.name)[place]
                printed *= 100 if quantity == "efficiency" else layout_table.factor
                computed = layout_tables.value(layout_table, column, line)
                assert computed is not None
                compared += 1
                # Averages are printed as whole numbers, cut or rounded; efficiencies were computed
                # from those.
                agrees = (
                    round(printed) in (math.floor(computed), math.floor(computed + 0.5))
                    if quantity == "average"
                    else abs(computed - printed)
                    <= (0.3 if layout_table.table.name == "disk_throughput" else 0.1)
                )
                if not agrees:
                    where = (
                        layout_table.name,
                        quantity,
                        *(line.names[key] for key in ("workload", "concurrency", "block")),
                    )
                    found[*where, program] = (printed, computed)
    assert compared == 4 * 21 * 2 * 3 + 2 * 7 * 2 * 2
    listed = _listed()
    assert found.keys() == listed.keys()
    for where, (printed, computed) in found.items():
        assert listed[where][0] == pytest.approx(printed), where
        assert listed[where][1] == pytest.approx(computed, abs=0.006), where
        assert listed[where][2], where


def test_the_runs_are_listed_as_the_report_lists_them(tmp_path: Path) -> None:
    rows = build_rows(_fed(tmp_path / NAME))
    layout_table = next(one for one in layouts.load(NAME).layout_tables if one.name == "rs_runs")
    line = (
        layout_tables.frame(layout_table, rows["disk_throughput"])
        .set_index("Concurrency and Record Size")
        .loc["12 and 16MB"]
    )
    assert list(line)[:6] == [488.0, 464.0, 475.0, 480.0, 483.0, 477.0]


def test_a_published_set_is_a_column_beside_this_machine(tmp_path: Path) -> None:
    records = []
    for threads in (12, 13):
        records += make.runs("diskbench", "RS", 1e9, block=16 << 20, concurrency=threads)
    folder = make.write(
        tmp_path / "c", records, config={"report": {"published": [NAME, "file-io-lab"]}}
    )
    results = Results.read(folder)
    rows = build_rows(results)["disk_throughput"]
    assert [row.published for row in rows] == [{NAME: 475e6}, {}]  # the median of its three runs
    table = BY_NAME["disk_throughput"]
    grid = presentation.grid(results, table, rows)
    place = [column.label for column in grid.columns].index(NAME)
    assert grid.columns[place].group == "Published Throughput (MB/sec)"
    assert [line[place] for line in grid.body] == ["475", ""]
    assert "file-io-lab" not in [column.label for column in grid.columns]
    frame = tables.frame(table, rows)
    assert list(frame[f"{NAME}: Published Throughput (MB/sec)"].fillna(0)) == [475.0, 0.0]


def test_what_a_published_set_notes_on_a_value_is_a_footnote_of_its_row(tmp_path: Path) -> None:
    records = []
    for threads in (1, 2):
        records += make.runs("cpubench", "QP", 3e9, isa="scalar", concurrency=threads)
    name = "four-subsystems-2018-hyperion"
    results = Results.read(
        make.write(tmp_path / "c", records, config={"report": {"published": [name]}})
    )
    grid = presentation.grid(results, BY_NAME["cpu"], build_rows(results)["cpu"])
    start = f"{name} (published): 6.4 times the rate of one"
    (letter,) = [note.letter for note in grid.notes if note.text.startswith(start)]
    assert [letter in line[-1].split(", ") for line in grid.body] == [False, True]


def test_caches_are_never_set_beside_published_memory(tmp_path: Path) -> None:
    name = "four-subsystems-2018-prometheus"
    records = [
        *make.runs("rambench", "RWS", 2e10, variant="pool"),
        *make.runs("rambench", "RWS", 2e10, variant="block"),
    ]
    found = make.judge(tmp_path / "c", records, config={"report": {"published": [name]}})
    # Its block was 1000000 bytes, for which the nearest power stands; it counted a copied byte once.
    by_variant = {row.key.variant: dict(row.published) for row in found.rows["memory_throughput"]}
    assert by_variant == {"pool": {name: pytest.approx(2 * 3.876088e9)}, "block": {}}
