"""Rows for the tests of the checks, and what a message tells without its words."""

from types import SimpleNamespace

import msgspec
import pandas as pd
import pytest
from tests.unit.campaign_data import VM, cell, measurement, placed

from peakmark import statistics
from peakmark.limits import Limit
from peakmark.messages import Trust
from peakmark.rows import schema
from peakmark.rows.checks import check_row
from peakmark.rows.placements import add_placements
from peakmark.rows.rows import RowRuns
from peakmark.rows.runs import add_clock, line_of
from peakmark.storage.record_types import RecordContext
from peakmark.tools.base import Measurement

W, U, N = Trust.NO, Trust.CARE, Trust.OK
PLACED = placed(1, 1)["placed"]
CALM = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]
WHEN = {"host": "node1", "started": "2026-11-21T04:00:00", "seconds": 1.0}
UNKNOWN = Limit(None, "", "", "", "unknown")
CPU = {"subsystem": "cpu", "instrument": "cpubench", "workload": "DP", "metric": "rate"}
METRICS = {"memory": "throughput", "disk": "throughput", "network": "throughput"}


def row(
    values=None, details=None, context=None, options=None, *, limit=UNKNOWN, facts=VM, **identity
):
    """A row of six calm repetitions, or of as many as one of the lists has.

    ``details``, ``context`` and ``options`` are of all repetitions, or a list with those of each.
    """
    lists = [each for each in (values, details, context, options) if isinstance(each, list)]
    n = len(next(iter(lists), CALM))
    values = CALM[:n] if values is None else values
    known = [
        each if isinstance(each, list) else [each or {}] * n for each in (details, context, options)
    ]
    of = CPU | {"metric": METRICS.get(identity.get("subsystem"), "rate")} | identity
    metric = of.pop("metric")
    machine = SimpleNamespace(facts_for=lambda *_: facts)
    lines = []
    for number, (value, detail, around, asked) in enumerate(zip(values, *known, strict=True)):
        measured_cell = cell(**of, repetition=number, **asked)
        measured = measurement(measured_cell, metric, value, details=detail)
        context = msgspec.convert(WHEN | around, RecordContext)
        line = line_of(machine, measured_cell, msgspec.convert(measured, Measurement), context)
        lines.append(line | {"value": value})
    frame = schema.typed("runs", pd.DataFrame(lines).assign(measurement=0, record="r"))
    frame = add_placements(add_clock(frame), {})
    runs = tuple(schema.lines(frame.assign(share=frame["value"].map(limit.share).astype(float))))
    table = of["subsystem"] if metric == "rate" else f"{of['subsystem']}_{metric}"
    return RowRuns(line_of_row(runs, table, limit), runs, facts)


def line_of_row(runs, table, limit):
    """The line of ``rows`` of these runs, with what the checks read of it."""
    first = runs[0]
    names = ("subsystem", "instrument", "workload", "variant", "block_bytes", "concurrency")
    summary = statistics.summarise([run.value for run in runs])
    return SimpleNamespace(
        **{name: getattr(first, name) for name in names},
        table=table,
        value=summary.median,
        n=summary.n,
        printed_in="",
        level=summary.level,
        limit=limit.value,
        limit_kind=limit.kind,
        limit_origin=limit.origin,
        limit_clock=limit.clock,
        nominal_hz=None,
        efficiency=limit.share(summary.median) if limit.value else None,
        share=limit.share(summary.median),
    )


def limit(value, unit="op/s", clock="observed"):
    return Limit(value, unit, f"1 core x 3 GHz ({clock} clock)", "test", "measured", clock=clock)


def noise(**during):
    """The context of a repetition during which this went on."""
    quiet = {"seconds": 1.0, "steal": 0.0, "others": 0.01, "throttled_s": 0.0, "hot": 0}
    quiet |= {"busy": 0, "users": 0}
    return {"noise": {"during": quiet | during}}


def values_of(message):
    """The values of a message, and its case."""
    return {"case": message.case, **message.values}


def contains(values, expected):
    """Whether these are among the values: numbers within one per mille, words as a part of a text."""
    for name, value in expected.items():
        if isinstance(value, float):
            found = abs(values[name] / value - 1) < 1e-3
        else:
            found = values[name] == value or (value and value in values[name])
        if not found:
            return False
    return True


def rows_and_marks(cases):
    """A test of each case: a row, its marks with their weight, and what the first of them tells."""
    ids = ["+".join(found) or "none" for _, found, _ in cases]
    return pytest.mark.parametrize(("made", "weights", "first"), cases, ids=ids)


def check_marks(measured, weights, first):
    """A row has messages of these weights by their codes, and the first has these values."""
    found = check_row(measured)
    assert {each.code: each.trust for each in found} == weights
    assert not first or contains(values_of(found[0]), first), values_of(found[0])
