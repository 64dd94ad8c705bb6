"""What other load during the repetitions of a row says about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peakmark import statistics
from peakmark.analysis import checks, core_checks
from peakmark.analysis.row import Measured, RunValue
from peakmark.limits import Limit


def calm(**changes: Any) -> dict[str, Any]:
    during = {"seconds": 1.0, "steal": 0.0, "others": 0.01, "busy": 0, "users": 0}
    during |= {"throttled_s": 0.0, "hot": 0}
    point = {"load": 0.1, "clock_hz": 2e9, "clock_limit_hz": 3e9, "celsius": 50.0}
    point |= {"running": 0, "users": 0}
    return {"before": point, "during": {**during, **changes}, "after": dict(point)}


def row(noises: list[dict[str, Any]], values: list[float] | None = None) -> Measured:
    values = values or [100.0 + number / 100 for number in range(len(noises))]
    summary = statistics.summarise(values)
    runs = [RunValue(value, {}, {"noise": one}) for value, one in zip(values, noises, strict=True)]
    identity = ("cpu", "cpubench", "DP", "", None, 1, "rate", "op/s")
    limit = Limit(None, "", "", "", "unknown", "not known")
    return Measured(*identity, runs=runs, summary=summary, centre=summary.median, limit=limit)


@pytest.mark.parametrize(
    ("changes", "code", "value"),
    [
        ({"others": 0.9, "busy": 2, "users": 1}, "other-load", "0.9 CPUs"),
        ({"others": 0.9}, "other-load", "0.9 CPUs"),
        ({"steal": 0.08}, "steal", "8.0%"),
        ({"throttled_s": 0.3}, "throttled", "30%"),
        ({"hot": 2}, "hot", ""),
    ],
)
def test_a_disturbance_is_named(changes: dict[str, Any], code: str, value: str) -> None:
    assert checks.check_row(row([calm()] * 6)) == []
    assert checks.check_row(row([{**calm(), "during": None}] * 6)) == []
    (note,) = checks.check_row(row([calm(**changes)] * 6))
    assert (note.code, note.is_warning) == (code, True)
    assert value in note.text and "6 of 6 repetitions" in note.text


def test_the_node_of_the_server_is_named() -> None:
    server = {"server_host": "node2", "server_noise": calm(others=0.9)}
    quiet = row([calm()] * 6)
    runs = [replace(run, context={**run.context, **server}) for run in quiet.runs]
    (note,) = checks.check_row(replace(quiet, runs=runs))
    assert (note.code, note.is_warning) == ("other-load", True)
    assert "0.9 CPUs" in note.text and "node2" in note.text


def test_a_median_stands_while_most_repetitions_are_calm() -> None:
    (note,) = checks.check_row(row([calm(), calm(others=0.9), *[calm()] * 4]))
    assert (note.code, note.is_warning) == ("other-load", False)
    assert "1 of 6 repetitions" in note.text


@pytest.mark.parametrize(
    ("changed", "codes"),
    [({"clock_limit_hz": 2e9}, ["clock-limit"]), ({"clock_hz": 4e8}, [])],  # idle CPUs are slow
)
def test_a_clock_that_somebody_limited_meanwhile(changed: dict[str, Any], codes: list[str]) -> None:
    late = calm()
    late["after"] |= changed
    notes = checks.check_row(row([*[calm()] * 5, late]))
    assert [note.code for note in notes] == codes
    assert all("2 GHz" in note.text and "3 GHz" in note.text for note in notes)


def test_drift_tells_the_heat_where_it_is_known() -> None:
    noises = [calm() for _ in range(8)]
    noises[-1]["after"]["celsius"] = 88.0
    notes = checks.check_row(row(noises, [100.0 - 2 * number for number in range(8)]))
    assert any("50 °C" in note.text and "88 °C" in note.text for note in notes)
    assert core_checks.heat([]) == ""
