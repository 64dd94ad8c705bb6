"""The score card: which row a headline shows, whether to trust it, and page one around it."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from tests.unit.campaign_data import VM, frames, placed, reached, runs

from peakmark.messages import Trust
from peakmark.rows import build, schema
from peakmark.views import score_card

KIB, MIB = 1 << 10, 1 << 20
QUIET = (1.0, 1.002, 0.998)
WILD = (1.0, 1.5, 0.5)
ETHERNET = reached("eth1")


def times(value, factors):
    return [value * factor for factor in factors]


def card(of):
    """Title of each line -> the line."""
    return {line.title: line for line in score_card.card_lines(of)}


def disk(block, value, moved=1.0, wobble=QUIET, workload="RS"):
    """A disk's row of three repetitions of which so much reached the device."""
    details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
    return runs("diskbench", workload, *times(value, wobble), block=block, details=details)


@pytest.mark.parametrize("wobble", [QUIET, WILD])
def test_the_row_is_that_of_the_largest_block_and_all_threads_however_calm_others_are(
    wobble, tmp_path
):
    records = disk(64 * KIB, 1e9) + disk(MIB, 5e8, wobble=wobble)
    records += runs("cpubench", "DP", *times(5e10, QUIET))
    records += runs("cpubench", "DP", *times(4e10, wobble), concurrency=2)
    lines = card(frames(tmp_path / "c", records))
    assert (lines["Disk, 1 MiB reads"].value, lines["FP64 multiply-add"].value) == (5e8, 4e10)
    assert lines["FP64 multiply-add"].place == "2 threads"


def test_a_time_is_that_of_the_fewest_streams(tmp_path):
    records = runs("netbench", "LAT-TCP", *times(5e-5, QUIET), context=ETHERNET)
    records += runs("netbench", "LAT-TCP", *times(1e-5, QUIET), concurrency=2, context=ETHERNET)
    line = card(frames(tmp_path / "c", records))["TCP round trip"]
    assert (line.text, line.place) == ("50.0 µs", "1 stream")


def test_several_nodes_are_one_line_with_their_median_and_say_how_many_are_slow(twelve):
    line = card(twelve)["FP64 multiply-add"]
    assert line.place.endswith("12 nodes") and len(line.runs) == 12
    assert (line.trust, line.reason) == ("ok", "1 of 12 nodes slow")


@pytest.mark.parametrize(("table", "fio", "iozone", "is_comparable", "best"), [
    ("disk_throughput", 8.0, 9.0, True, "iozone"), ("disk_latency", 9.0, 8.0, True, "iozone"),
    ("disk_throughput", 8.0, 9.0, False, "fio"),
])  # fmt: skip
def test_the_best_reference_is_the_fastest_that_is_comparable(
    table, fio, iozone, is_comparable, best
):
    """Whether iozone is comparable is a case; peakmark's kernel measured 10."""
    measured = [("diskbench", 10.0, False), ("fio", fio, True), ("iozone", iozone, is_comparable)]
    rows = pd.DataFrame(measured, columns=["instrument", "value", "is_comparable"])
    rows = rows.assign(table=table, point="p", is_own=rows["instrument"].eq("diskbench"))
    rows = schema.typed("rows", rows)
    own = next(schema.lines(rows))
    assert score_card.best_reference(rows, own).instrument == best
    assert score_card.best_reference(rows[rows["is_own"]], own) is None


@pytest.mark.parametrize(("records", "title", "trust", "reason"), [
    (disk(MIB, 16e9, moved=0.1), "Disk, 1 MiB reads", "no", "10\u00a0% reached the device"),
    (disk(MIB, 16e9, wobble=WILD), "Disk, 1 MiB reads", "care", "spread 100\u00a0%"),
    (disk(MIB, 16e9), "Disk, 1 MiB reads", "ok", ""),
    (runs("cpubench", "DP", 5e10), "FP64 multiply-add", "care", "one run"),
    (runs("netbench", "TCP", *times(1e10, QUIET), context=reached("lo")), "TCP", "no", "loopback"),
])  # fmt: skip
def test_whether_to_trust_a_value_and_why_not(records, title, trust, reason, tmp_path):
    line = card(frames(tmp_path / "c", records))[title]
    assert (line.trust, line.reason) == (trust, reason)


def test_the_terminal_has_eighty_columns_and_reads_no_markup_of_a_record(tmp_path):
    facts = VM | {"os": {"distribution": "[red]Linux"}}
    records = runs("cpubench", "DP", *times(5e10, WILD), context=placed(1, 2))
    page = score_card.build(frames(tmp_path / "c", records, facts=facts))
    plain = score_card.terminal(page)
    assert max(len(line) for line in plain.splitlines()) <= score_card.WIDTH
    assert "[red]Linux" in plain and "\x1b" not in plain
    assert re.search("\x1b\\[3[123]m(ok|care|no)", score_card.terminal(page, is_coloured=True))


def test_several_nodes_have_the_gravest_trust_and_say_how_many_have_it(tmp_path):
    records = []
    for name, moved in (("n1", 1.0), ("n2", 0.1), ("n3", 0.0)):
        place = {"node": name, "host": name, "block": MIB}
        details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
        records += runs("diskbench", "RS", *times(1e9, QUIET), details=details, **place)
    line = card(frames(tmp_path / "two", records))["Disk, 1 MiB reads"]
    assert (line.trust, line.reason) == ("no", "0\u00a0% reached the device on 2 of 3")


def test_markdown_and_json_have_the_same_lines(tmp_path):
    records = runs("cpubench", "DP", *times(5e10, QUIET)) + disk(MIB, 1e9)
    page = score_card.build(frames(tmp_path / "c", records))
    text = score_card.markdown(page)
    for line in json.loads(json.dumps(page))["card"]:
        assert f"| {line['title']}, {line['place']} | {line['text']} |" in text


@pytest.mark.parametrize(("runs", "text"), [
    ((2.899e12, 2.901e12), "2.90 TB/s"), ((2.85e12, 2.9e12), "2.85 to 2.90 TB/s"), ((2.9e12,), ""),
])  # fmt: skip
def test_a_range_has_two_ends_only_if_they_differ_as_printed(runs, text):
    assert score_card.range_of(runs, "B/s") == text


def test_page_one_counts_the_nodes_that_measured(golden):
    assert "min; " in score_card.measured_when(build.load(golden("node")))
    assert "in 69 min on 4 nodes; " in score_card.measured_when(build.load(golden("cluster")))


def test_the_verdict_names_shares_of_limits_and_why_other_parts_have_none(tmp_path):
    (line,) = score_card.card_lines(frames(tmp_path / "c", runs("cpubench", "DP", 4e10, 4e10)))
    # Two lines of the CPU are two parts: they are other work.
    mixed = replace(line, group=score_card.RATED, share=0.99, title="FP64 on all pipes")
    rated = replace(mixed, title="L3 copy", subsystem="memory")
    low, high = [replace(rated, share=share) for share in (0.95, 0.98)]
    round_trip = replace(low, share=0.4, title="TCP round trip", subsystem="network")
    care = {"trust": Trust.CARE, "share": None, "title": "DRAM copy"}
    without = replace(rated, group=score_card.WITHOUT_LIMIT, **care)
    loopback = replace(line, group=score_card.NOT_THIS_DEVICE, reason="loopback", title="TCP")
    loopback = replace(loopback, subsystem="network")
    unknown = replace(without, title="L3 latency", trust=Trust.OK)
    card = [mixed, low, high, round_trip, without, unknown, loopback]
    assert score_card.verdict(card).replace("\u00a0", " ") == (
        "FP64 on all pipes 99.0 %, L3 95.0 to 98.0 %, TCP round trip 40.0 % of the limit; use with care: DRAM;"
        " not rated: DRAM (no limit known), L3 latency (no limit known), TCP (loopback)"
    )
    assert score_card.verdict([loopback]) == "Not rated: TCP (loopback)"
