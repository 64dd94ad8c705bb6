"""Histograms of the kernels: their percentiles, and what tables and comparisons make of them."""

import json
from collections import Counter

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.errors import ParseError
from peakmark.rows import build
from peakmark.tools import common
from peakmark.tools.tables import BY_NAME
from peakmark.views import compare, table_files
from peakmark.views.compare import dataset_of

SHARES = [0.1, 0.5, 0.9, 0.99, 0.999]


def bucket(time):
    """Where the kernels count a time in ns: ``src/kernels/common/histogram.h``."""
    shift = max(0, time.bit_length() - 1 - common.SUB_BITS)
    return (shift << common.SUB_BITS) + (time >> shift)


def text(times):
    """Times in ns as a kernel prints them, each bucket as a run."""
    counts = Counter(map(bucket, times))
    return ";".join(f"{place} {counts[place]}" for place in sorted(counts))


def details(times):
    """What a kernel prints of times in ns."""
    counts = common.read_histogram(text(times))
    values = common.percentile_times(counts, [*common.PERCENTILES.values()])
    known = dict(zip(common.PERCENTILES, values, strict=True))
    return {**known, "max": 1e-9 * max(times), "histogram": text(times)}


def drawn(centre, seed, slow=0.0, count=5000):
    """Times in ns around ``centre``, of which a share of ``slow`` take a hundred times as long."""
    chance = np.random.default_rng(seed)
    times = centre * chance.lognormal(0, 0.2, count)
    times[chance.random(count) < slow] *= 100
    return [round(time) for time in times]


@pytest.mark.parametrize("case", ["netbench/lat-tcp-x1", "diskbench/rr-psync-x2"])
def test_percentiles_are_those_that_the_kernel_printed(case):
    printed = json.loads((make.DATA / case / "stdout").read_text())
    counts = common.read_histogram(printed["histogram"])
    assert counts.total() == printed.get("round_trips", printed.get("operations"))
    found = common.percentile_times(counts, [*common.PERCENTILES.values()])
    assert found == pytest.approx([printed[name] for name in common.PERCENTILES], rel=1e-12)


def test_merged_counts_have_the_percentiles_of_all_operations():
    parts = [drawn(10**exponent, exponent) for exponent in (2, 4, 7)]
    merged = sum((common.read_histogram(text(times)) for times in parts), Counter())
    every = sorted(time for times in parts for time in times)
    exact = [1e-9 * every[int(share * len(every)) - 1] for share in SHARES]
    assert common.percentile_times(merged, SHARES) == pytest.approx(exact, rel=1 / 128)


@pytest.mark.parametrize(("operations", "known"), [(999, 4), (1000, 5)])
def test_a_percentile_needs_operations_beyond_it(operations, known):
    assert len(common.percentile_times(common.read_histogram(f"900 {operations}"), SHARES)) == known


@pytest.mark.parametrize("wrong", ["", "5", "5 0", "5 1;", "5 1 -2", "12345 1", "5 1\n"])
def test_a_text_that_is_no_histogram_is_refused(wrong):
    with pytest.raises(ParseError):
        common.read_histogram(wrong)


def campaign(folder, slow, seed):
    """Six repetitions of round trips whose medians differ by up to 5 %."""
    records = []
    for number in range(6):
        times = drawn(20000 * (1 + 0.01 * number), seed + number, slow)
        place = {"repetition": number, "block": 1, "details": details(times)}
        records += make.runs("netbench", "LAT-TCP", 1e-9 * statistics.mean(times), **place)
    return make.write(folder, records)


def test_tables_have_percentiles_of_all_operations(tmp_path):
    frames = build.load(campaign(tmp_path / "a", 0.02, 1))
    table = BY_NAME["network_latency"]
    every = table_files.table_frame(table, frames, frames.rows).iloc[0, -3:]
    row = frames.rows.iloc[0]
    assert [value / table.factor for value in every] == pytest.approx([row.p50, row.p99, row.p999])
    assert 20e-6 < row.p50 < 21.5e-6
    assert 1500e-6 < row.p99 < 2500e-6


def test_records_without_histograms_have_the_median(tmp_path):
    bare = {"p50": 2e-5, "p99": 3e-5, "p999": 4e-5, "max": 5e-5}
    records = make.runs("netbench", "LAT-TCP", 2e-5, 2e-5, block=1, details=bare)
    frames = make.frames(tmp_path, records)
    table = BY_NAME["network_latency"]
    found = table_files.table_frame(table, frames, frames.rows)
    headings = [f"MyNETBench {label} ({table.shown})" for label in ("p50", "p99", "p99.9")]
    assert list(found)[-3:] == headings
    assert found[headings[1]].item() / table.factor == pytest.approx(3e-5)


def test_a_comparison_judges_each_percentile(tmp_path):
    before, after = (
        dataset_of(name, build.load(campaign(tmp_path / name, slow, seed)))
        for name, slow, seed in (("a", 0.0, 1), ("b", 0.02, 50))
    )
    rows, *_ = compare.compare(before, after)
    verdicts = dict(zip(rows["percentile"], rows["verdict"], strict=True))
    assert verdicts.pop("p50") == "no difference shown"
    assert verdicts == dict.fromkeys(("", "p99", "p999"), "worse")
    assert "x1 p99.9 " in compare.report(compare.judge(before, after))
