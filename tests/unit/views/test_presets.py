"""Presets that repeat published reports: their grids become tables with the headings, rows and
order of the report.
"""

import pandas as pd
import pytest
import yaml
from tests.unit import campaign_data as make
from tests.unit.campaign_data import PRESETS, planned

from peakmark.config import layouts
from peakmark.tools.programs import hpl

FIRST = PRESETS[0]
WORK = ("operations", "total", "accesses", "round_trips")


def seed_of(name):
    """What the published report printed."""
    return yaml.safe_load((make.DATA / "seeds" / f"{name}.yaml").read_text())


def _same(headings):
    """Headings without what printing changes: case and spaces."""
    return ["".join(heading.lower().split()) for heading in headings]


def _corrected(entries, table):
    return {str(one["printed"]): str(one["shown"]) for one in entries if one["table"] == table}


@pytest.mark.parametrize("name", PRESETS)
def test_headings_rows_and_order_are_those_of_the_report(preset, name):
    folder = preset(name) / "tables" / name
    seed = seed_of(name)
    shown = [layout_table.name for layout_table in layouts.load(name).layout_tables]
    order = seed.get("order", list(seed["tables"]))
    assert shown[: len(order)] == order
    for table, printed in seed["tables"].items():
        frame = pd.read_csv(folder / f"{table}.csv", dtype=str, keep_default_na=False)
        corrected = _corrected(seed["corrected_headings"], table)
        assert set(corrected) <= set(printed["headings"]), table
        headings = [corrected.get(heading, heading) for heading in printed["headings"]]
        assert _same(list(frame.columns)) == _same(headings + printed.get("added", [])), table
        corrected = _corrected(seed["corrected_keys"], table)
        keys = [[corrected.get(part, part) for part in key.split(" | ")] for key in printed["keys"]]
        assert [line[: len(keys[0])] for line in frame.values.tolist()] == keys, table


@pytest.mark.parametrize(("name", "key", "instrument", "expected"), [
    *((name, "isa", "cpubench", {"": "scalar"}) for name in (*PRESETS[:2], PRESETS[3])),
    *((name, "isa", "rambench", {"": "auto"}) for name in (*PRESETS[:2], PRESETS[3])),
    (FIRST, "sync", "diskbench", {"RS": None, "RR": None, "WS": "each", "WR": "each"}),
    (FIRST, "fill", "iozone", {"ALL": "new"}),
    (FIRST, "store", "rambench", {"RWS": "libc"}),
    ("six-core-evaluation", "store", "rambench", {"RS": None, "RR": None, "RWS": "libc"}),
    ("disk-patterns-2020", "fill", "diskbench", {"WS": "new"}),
    ("disk-patterns-2020", "sync", "diskbench", {"WS": None}),
    ("file-io-lab", "fill", "diskbench", {"WS": None}),
])  # fmt: skip
def test_presets_use_their_reports_own_definitions(name, key, instrument, expected):
    """``expected``: the only value of an option in the cells of a workload, or of all ("")."""
    cells = [cell for cell in planned(name).cells if cell.instrument == instrument]
    for workload, value in expected.items():
        options = {cell.options.get(key) for cell in cells if workload in ("", cell.workload)}
        assert options == {value}, workload


def test_scale_shortens_every_total_size_and_time_but_leaves_a_block_for_each_thread():
    whole = {cell.id: cell for cell in planned(FIRST).cells}
    scaled = {cell.id: cell for cell in planned(FIRST, scale=0.001).cells}
    assert whole.keys() == scaled.keys()
    for name, cell in scaled.items():
        before, after = whole[name].options, cell.options
        for key in (*WORK, "budget_s", "count", "seconds", "warmup", "size"):
            if before.get(key) is not None:
                assert float(str(after[key])) < float(str(before[key])), (name, key)
        blocks = (cell.block or 0) * cell.concurrency
        if cell.subsystem == "disk" and blocks:
            for key in {"size", "total"} & after.keys():
                assert int(str(after[key])) % blocks == 0, (name, key)
        if cell.subsystem == "memory":
            assert after["pool"] == before["pool"]
            # A copy reads and writes: below two blocks a thread would have nothing to show.
            assert "total" not in after or int(str(after["total"])) >= 2 * blocks, name


def test_a_short_run_leaves_hpl_time_to_solve_something():
    cells = planned(FIRST, scale=0.01).cells
    assert {cell.options["budget_s"] for cell in cells if cell.instrument == "hpl"} == {3.0}
    assert hpl.choose_n(3.0, 1e11, 8 << 30, 192, hpcc=True)
