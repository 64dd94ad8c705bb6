"""Checks of the repetitions themselves: how many, how long, how far apart, what else went on."""

from tests.unit.analysis.checked import codes, row

from peakmark.analysis.checks import check_row
from peakmark.analysis.row import Measured, RunValue
from peakmark.messages import Severity


def test_spread_and_few_repetitions() -> None:
    found = check_row(row([100.0, 120.0, 80.0]))
    assert [(note.code, note.is_warning) for note in found] == [("spread", True), ("few", False)]
    assert "20%" in found[0].text
    assert "75%" in found[1].text and "repetitions: 6" in found[1].text
    assert codes(row([100.0])) == ["few"]
    assert "measured once" in check_row(row([100.0]))[0].text
    assert codes(row([100.0, 104.0, 96.0])) == ["few"]


def test_a_cold_first_repetition_and_a_drift() -> None:
    assert codes(row([80.0, 100.0, 100.4, 99.6, 100.2, 99.8, 100.1])) == [
        "first-differs",
        "outlier",
    ]
    assert codes(row([110.0, 108.5, 107.0, 105.2, 103.0, 101.0])) == ["drift"]
    assert codes(row([105.0, 103.0, 104.0, 101.0, 100.0])) == ["few"]
    assert codes(row([100.6, 100.5, 100.4, 100.3, 100.2, 100.1])) == []


def test_drift_is_one_over_time_not_over_numbers() -> None:
    """A repetition that had failed was measured after all others."""
    values = [110.0, 101.0, 108.5, 107.0, 105.2, 103.0]
    late = row(values)
    runs = [RunValue(value, {}, {"started": f"2026-11-21T04:0{9 if number == 1 else number}:00+00:00"})
            for number, value in enumerate(values)]  # fmt: skip
    assert codes(late) == []
    assert codes(Measured(**{**vars(late), "runs": runs})) == ["drift"]


def test_an_outlier_is_named_and_kept() -> None:
    found = check_row(row([100.0, 100.1, 99.9, 100.2, 104.0, 99.8, 100.0]))
    assert [(note.code, note.is_warning) for note in found] == [("outlier", False)]
    assert "repetition 5 of 7" in found[0].text


def test_short_runs_are_remarked() -> None:
    assert codes(row(details={"seconds": 0.2}, instrument="cpubench")) == ["short-runs"]
    assert codes(row(details={"seconds": 1.0}, instrument="cpubench")) == []
    assert codes(row(details={"seconds": 0.2}, instrument="fio")) == []


def test_what_runs_on_other_cpus_takes_nothing_from_pinned_threads() -> None:
    facts = {"cpu": {"threads": 8, "cores": 8}}
    noise = {
        "before": {},
        "after": {},
        "during": {"seconds": 1.0, "steal": 0.0, "others": 1.5, "busy": 2, "users": 0},
    }
    for threads, level in ((1, Severity.NOTE), (8, Severity.UNSURE)):
        (note,) = check_row(
            row(context={"noise": noise, "cpus": list(range(8))}, concurrency=threads, facts=facts)
        )
        assert (note.code, note.severity) == ("other-load", level)
    # A program on the very CPU takes from it, however many others are free.
    held = row(
        details={"cpu_share": 0.5}, context={"noise": noise, "cpus": list(range(8))}, facts=facts
    )
    assert {note.code: note.severity for note in check_row(held)} == {
        "waited": Severity.UNSURE,
        "other-load": Severity.UNSURE,
    }
