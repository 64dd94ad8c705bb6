"""The own figure against that of a reference: which references count, and what is said of the
ratio.
"""

from statistics import median

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import comparisons, findings


@pytest.mark.parametrize(("own", "tool", "workload", "details", "counts"), [
    ("cpubench", "hpl", "DP", {"seconds": 0.08}, False),
    ("cpubench", "hpl", "DP", {"seconds": 20.0}, True),
    ("rambench", "pmbw", "RS", {"estimate": True}, False),
    ("rambench", "pmbw", "RS", {}, True),
])  # fmt: skip
def test_neither_a_tiny_matrix_nor_an_estimate_is_a_reference(
    tmp_path, own, tool, workload, details, counts
):
    ours, theirs = make.runs(own, workload, 5e10), make.runs(tool, workload, 2e10, details=details)
    row = make.only_row(tmp_path / "c", ours + theirs)
    assert bool(comparisons.best_reference(row)) == counts
    headings = {one.heading for one in findings.conclusions([row])}
    assert ("Reference" in headings) == counts
    assert ("disagreement" in {each.code for each in row.warnings}) == counts


@pytest.mark.parametrize(("metric", "values"), [("throughput", (8, 9)), ("latency", (9, 8))])
def test_the_best_of_several_references_counts(tmp_path, metric, values):
    place = {"metric": metric, "block": 4096 if metric == "latency" else 1 << 20}
    records = make.runs("diskbench", "RR", 10, **place)
    for tool, value in zip(("fio", "iozone"), values, strict=True):
        records += make.runs(tool, "RR", value, **place)
    (row,) = make.judge(tmp_path / "c", records).rows[f"disk_{metric}"]
    reference = comparisons.best_reference(row)
    assert reference is not None and reference[0].instrument == "iozone"


@pytest.mark.parametrize(("ours", "theirs", "ratio"), [
    ((1.0, 1.2, 1.1), (1.0, 1.0, 1.0), (1.1, 1.0, 1.2)),
    ((1.0, 0.5, 0.8), (1.0, 0.55, 0.4), (1.0, 0.909, 2.0)),
    ((1.0, 0.9, 0.61), (0.99, 0.95, 0.6), (1.01, 0.947, 1.017)),
    ((1.0, 1.0, 0.5), (1.0,), (1.0, 1.0, 1.0)),
])  # fmt: skip
def test_a_ratio_is_the_median_of_the_rounds_that_both_ran_in(tmp_path, ours, theirs, ratio):
    records = make.runs("diskbench", "RS", *ours) + make.runs("fio", "RS", *theirs)
    row = make.only_row(tmp_path / "c", records)
    found = comparisons.ratios(row.measured, row.series["fio"])
    assert (median(found), min(found), max(found)) == pytest.approx(ratio, rel=1e-3)
