"""Values in outputs of the real tools, read off by hand: a damaged output gives no others."""

import dataclasses
import json
import math
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cases import cases, tables
from tests.unit.tools import samples

from peakmark.catalogue import SHAPES
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import REGISTRY, common
from peakmark.tools.base import Completed

GOOD = {
    case: {tuple(name.split()): value for name, value in values.items()}
    for case, values in tables("tools")["values"][1:]
}
"""Case -> (workload, metric) -> value."""
UNITS = {
    "rate": "op/s",
    "iops": "1/s",
    "latency": "s",
    "core_to_core": "s",
    "message_rate": "message/s",
}
LISTS = ("points", "order")
KERNEL_CASES = [case for case in GOOD if not REGISTRY[case.partition("/")[0]].reference]
REFERENCE_CASES = [
    case for case in GOOD if not isinstance(REGISTRY[case.partition("/")[0]], common.Kernel)
]
"""Outputs of programs that peakmark does not compile."""
NAMES = sorted(REGISTRY)
FIRST = {name: next(case for case in GOOD if case.startswith(f"{name}/")) for name in NAMES}


def test_every_sample_is_tested():
    _, *failures = tables("tools")["test_failures_are_told"]
    assert set(samples.CASES) == GOOD.keys() | {case for case, _ in failures}


@pytest.mark.parametrize("case", GOOD)
def test_values(case):
    parsed = samples.parse(case)
    cell, _ = samples.load(case)
    assert samples.values(parsed) == pytest.approx(GOOD[case], rel=1e-9, abs=0)
    for row in parsed.measurements:
        throughput = "bit/s" if cell.subsystem == "network" else "B/s"
        assert row.unit == UNITS.get(row.metric, throughput)
        assert row.concurrency == cell.concurrency
        assert row.block == (8 if "blocks" in cell.options else cell.block)
        shape = cell.workload in SHAPES
        assert row.variant == ("same-cache" if shape else cell.variant)
        several_gpus = cell.subsystem == "gpu" and cell.concurrency > 1
        assert (shape or several_gpus) == bool(row.details.get("points"))
        plain = {name: value for name, value in row.details.items() if name not in LISTS}
        for value in plain.values():
            assert value is None or isinstance(value, str | int | float)
            assert not isinstance(value, float) or math.isfinite(value)


@cases("tools")
def test_failures_are_told(case, words):
    with pytest.raises(ParseError, match=words):
        samples.parse(case)


def attempt(case, text):
    """What is read when the numbers' text is replaced; None where it is refused in a sentence."""
    try:
        return samples.parse(case, text)
    except (ParseError, Unavailable) as error:
        assert str(error).strip() and "\n" not in str(error)
        return None


def damaged(text):
    """Outputs that are cut, lack a line, or have a decimal comma or digits of another script."""
    lines = text.splitlines(keepends=True)
    without = ["".join(lines[:gone] + lines[gone + 1 :]) for gone in range(len(lines))]
    digits = {ord("0") + digit: 0x0660 + digit for digit in range(10)}
    return [*samples.cuts(text), *without, text.replace(".", ","), text.translate(digits)]


@pytest.mark.parametrize("case", GOOD)
def test_a_damaged_output_never_gives_other_numbers(case):
    parsed = [attempt(case, text) for text in damaged(samples.text_of(case))]
    assert None in parsed
    expected = samples.values(samples.parse(case))
    assert all(samples.values(one) == expected for one in parsed if one is not None)


@pytest.mark.parametrize("case", GOOD)
def test_something_else_is_refused(case):
    texts = ["", "\n", "\0" * 100, "Segmentation fault\n", "{", "[]", "null", "nan", "{}\n"]
    texts += ["é½٣" * 50, '{"a":' * 2000]
    # HPL reads hpcc's output, as hpcc solves a system too.
    tool = case.partition("/")[0]
    others = [name for name in NAMES if name != tool and (tool, name) != ("hpl", "hpcc")]
    texts += [samples.text_of(FIRST[name]) for name in others]
    assert [text[:80] for text in texts if attempt(case, text) is not None] == []
    cell, _ = samples.load(case)
    with pytest.raises(ParseError):
        REGISTRY[cell.instrument].parse(cell, Completed((), 0, "", ""))


@settings(max_examples=200)
@given(case=st.sampled_from(REFERENCE_CASES), seed=st.integers(0, 2**32 - 1))
def test_damaged_bytes_raise_nothing_else(case, seed):
    chance = random.Random(seed)  # noqa: S311
    letters = list(samples.text_of(case))
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(letters))
        letters[place] = chance.choice('0123456789.,eE+-naif \t\n{}[]:"=/x')
    parsed = attempt(case, "".join(letters))
    assert parsed is None or all(row.value > 0 for row in parsed.measurements)


@cases("tools")
def test_a_result_of_another_cell_is_refused(case, changes, words):
    with pytest.raises(ParseError, match=words):
        samples.parse(case, **changes)


@cases("tools")
def test_a_contradiction_is_refused(case, old, new, words):
    text = samples.text_of(case)
    assert old in text
    with pytest.raises(ParseError, match=words):
        samples.parse(case, text.replace(old, new))


@pytest.mark.parametrize("case", KERNEL_CASES)
def test_keys_of_a_kernel_are_checked(case):
    keys = ("instrument", "workload", "threads", "value", "unit", "seconds")
    wrong = [(key, None) for key in keys]
    wrong += [("instrument", "other"), ("unit", "GB/s"), ("threads", 99)]
    wrong += [("value", value) for value in (0, -1.0, "x")] + [("seconds", 0)]
    for key, value in wrong:
        with pytest.raises(ParseError, match=key):
            samples.parse(case, samples.with_json(case, **{key: value}))
    if any(UNITS.get(metric) != "s" for _, metric in GOOD[case]):
        work = json.loads(samples.text_of(case))["work"]
        with pytest.raises(ParseError, match="contradicts itself"):
            samples.parse(case, samples.with_json(case, work=2 * work))


@cases("tools")
def test_details(case, metric, expected):
    rows = samples.parse(case).measurements
    found = next(row.details for row in rows if row.metric.startswith(metric))
    for key, value in expected.items():
        assert found.get(key) == (pytest.approx(value) if type(value) is float else value), key


def rows_of(cell, recorded, **changes):
    """The rows of an execution that measures several: what its kernel printed, with some values changed."""
    printed = json.loads((samples.DATA / f"{recorded}.json").read_text())
    done = Completed((), 0, json.dumps(printed | changes), "")
    return REGISTRY[cell.instrument].parse(cell, done).measurements


def test_each_mix_of_latency_under_load_is_a_row_with_its_points():
    """Printed on two cores, with --reads 100,50 --rates 2."""
    rows = rows_of(samples.cell("rambench", "LOADED", "", None, 2), "loaded")
    assert [(row.variant, len(row.details["points"])) for row in rows] == [("r100", 3), ("r50", 3)]
    for row in rows:
        assert (row.unit, row.value) == ("s", row.details["points"][-1][1])
        assert all(point[2] > 0.99 for point in row.details["points"])
    assert rows[0].details["store"] == "streaming"


def test_each_operation_on_files_is_a_row():
    of = samples.cell("diskbench", "META", "", None, 2, seconds=0.1)
    rows = rows_of(of, "metadata")
    values = {row.variant: row.value for row in rows}
    assert values == {"create": 16207.0, "stat": 198972.0, "unlink": 44655.0}
    kinds = {(row.workload, row.block, row.metric, row.unit) for row in rows}
    assert kinds == {("META", None, "metadata", "1/s")} and rows[0].details["filesystem"] == "nfs"
    with pytest.raises(ParseError, match="value is missing"):
        rows_of(of, "metadata", rows=[{"variant": "create", "value": 1.0}, {"variant": "stat"}])


def test_hpl_says_what_a_small_matrix_lacks_for_a_share_of_the_limit():
    (said,) = [text for text in samples.parse("hpl/hpcc-x2").warnings if "N =" in text]
    assert "N = 2688 in 0.28 s" in said and "budget_s" in said and "xhpl" in said


@pytest.mark.parametrize(("n", "seconds", "is_small"), [
    (1920, 0.035, True), (9999, 60.0, True), (50_000, 4.9, True), (0, 0.0, True), (10_000, 5.0, False),
])  # fmt: skip
def test_a_matrix_is_small_by_its_size_or_its_time(n, seconds, is_small):
    assert common.is_too_small({"N": n, "seconds": seconds}) is is_small


def test_hpl_names_the_blas_and_hpcc_without_its_file_the_reason():
    assert samples.parse("hpl/xhpl-x2").version == "2.3"
    plain = samples.parse("hpl/hpcc-reference-blas")
    assert plain.library["blas"] == "reference BLAS or unknown"
    cell, completed = samples.load("hpl/hpcc-x2")
    lost = dataclasses.replace(completed, files={}, stderr="hpcc: cannot write here\n")
    with pytest.raises(ParseError, match="cannot write here"):
        REGISTRY["hpl"].parse(cell, lost)


@cases("tools")
def test_warnings(case, changes, words):
    text = samples.text_of(case)
    for old, new in changes:
        text = text.replace(old, new)
    parsed = samples.parse(case, text)
    if words is None:
        assert parsed.warnings == ()
    else:
        assert any(words in warning for warning in parsed.warnings)
    if case.startswith("ping"):
        assert samples.only(parsed).details["loss"] == pytest.approx(0.2)


def test_percentiles_of_fio_are_of_submission_and_completion_where_it_gives_them():
    document = json.loads(samples.text_of("fio/wr-uring-total-x1"))
    write = document["jobs"][0]["write"]
    whole = {name: value + 33576 for name, value in write["clat_ns"]["percentile"].items()}
    write["lat_ns"]["percentile"] = whole
    rows = samples.parse("fio/wr-uring-total-x1", json.dumps(document)).measurements
    latency = next(row for row in rows if row.metric == "latency")
    assert latency.details["p99"] == pytest.approx(whole["99.000000"] / 1e9)
    assert latency.value == pytest.approx(write["lat_ns"]["mean"] / 1e9)


def test_new_files_of_iozone_are_its_first_phase():
    cell, _ = samples.load("iozone/t2-1m")
    phases = (samples.parse("iozone/t2-1m", options={**cell.options, "fill": fill}) for fill in ("overwrite", "new"))  # fmt: skip
    old, new = ({row.workload: row for row in parsed.measurements} for parsed in phases)
    assert (old["WS"].details["phase"], new["WS"].details["phase"]) == ("rewrite", "write")
    assert new["WS"].value == old["WS"].details["write"]
    assert old["WS"].value == new["WS"].details["rewrite"]
    fills = {one: new[one].details.get("fill") for one in new}
    assert fills == {"WS": "new", "WR": "overwrite", "RS": None, "RR": None}
    assert all(new[one].value == old[one].value for one in ("RS", "RR", "WR"))


def test_a_phase_of_iozone_in_which_a_process_moved_nothing_has_no_value():
    """With files of one record, IOZone printed the rate of one process as that of 48."""
    text = samples.text_of("iozone/t2-1m")
    partial = text.replace("14336.00 kB", "0.00 kB", 1).replace("=  573898.62", "= 0.00", 1)
    assert partial != text
    rows = samples.parse("iozone/t2-1m", partial).measurements
    assert [row.workload for row in rows] == ["RS", "RR", "WR"]
    # The lowest rate of two processes is at most half of their sum.
    for line, number in (("Min xfer", "0.00"), ("Min throughput per process", "9e9")):
        with pytest.raises(Unavailable, match="larger files"):
            samples.parse("iozone/t2-1m", re.sub(rf"({line}\s*=)\s*\S+", rf"\1 {number}", text))


def test_qperf_whose_ends_measured_different_times():
    """Seen on a busy machine: the clocks of both ends count hundredths of a second."""
    text = samples.text_of("qperf/all")
    fields = {"latency": 1553846, "msg_rate": 637, "loc_real_time": 1010000000}
    for name, value in fields.items():
        text = re.sub(rf"({name} +=) +\S+", rf"\1 {value}", text)
    longer, alike = (
        re.sub(r"(rem_real_time +=) +\S+", rf"\1 {value}", text)
        for value in (1030000000, 1010000000)
    )
    for row in samples.parse("qperf/all", longer).measurements:
        assert row.value == pytest.approx(2 * 1553846e-9, rel=0.02)
    with pytest.raises(ParseError, match="contradicts itself"):
        samples.parse("qperf/all", alike)
