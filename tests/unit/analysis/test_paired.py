"""Campaigns measured in turn: judged by pair, so that what the machine did meanwhile is in both and
goes out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.analysis import compare, datasets

WANDERING = [1.0, 1.3, 0.7, 1.1, 0.8, 1.25]
"""A machine that moves by far more than the change that is looked for."""
WOBBLE = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0]


def campaign(
    folder: Path, factor: float, beside: str, late: Sequence[int] = (), isa: str = "auto"
) -> Path:
    """Four rows in six rounds, each a minute after the one before; this side of the rounds in
    ``late`` an hour later.
    """
    records = []
    for number, (moved, own) in enumerate(zip(WANDERING, WOBBLE, strict=True)):
        for row, workload in enumerate(("QP", "HP", "SP", "DP")):
            of = make.cell("cpubench", workload, subsystem="cpu", repetition=number, isa=isa)
            hour = 5 if number in late else 4
            started = f"2026-11-21T{hour:02d}:{10 + number:02d}:{2 * row + (factor != 1):02d}+00:00"
            value = 1e10 * moved * (1 + (factor - 1) * own) * (own if factor == 1 else 1)
            records.append(make.record(of, [make.measurement(of, "rate", value)], started=started))
    make.write(folder, records)
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "beside": beside} if beside else plan))
    return folder


def both(folder: Path, factor: float, **more: object) -> tuple[datasets.Dataset, datasets.Dataset]:
    before = campaign(folder / "a", 1.0, "b")
    after = campaign(folder / "b", factor, "a", **more)  # type: ignore[arg-type]
    return datasets.read(str(before)), datasets.read(str(after))


def test_a_change_far_below_the_drift_is_found_in_pairs_and_only_there(tmp_path: Path) -> None:
    text, counts = compare.report(*both(tmp_path / "turn", 1.05))
    assert counts == {"better": 4}
    assert "measured in turn" in text
    apart = [
        datasets.read(str(campaign(tmp_path / name, factor, "")))
        for name, factor in (("a", 1.0), ("b", 1.05))
    ]
    assert compare.report(*apart)[1] == {"no difference shown": 4}


def test_what_differs_on_purpose_is_said_first_and_judged(tmp_path: Path) -> None:
    text, counts = compare.report(*both(tmp_path, 0.9, isa="scalar"))
    assert "A has auto, B has scalar (4 rows)" in text.splitlines()[0]
    assert counts == {"worse": 4}


def test_unchanged_pairs_show_no_difference(tmp_path: Path) -> None:
    _, counts = compare.report(*both(tmp_path, 1.004))
    assert counts == {"no difference shown": 4}


def test_a_half_that_was_measured_at_another_time_is_no_pair(tmp_path: Path) -> None:
    text, counts = compare.report(*both(tmp_path, 1.05, late=(2,)))
    assert counts == {"cannot tell": 4}
    assert "4 repetitions left out" in text


def test_halves_on_two_hosts_are_no_pair() -> None:
    before = {number: datasets.Turn(1.0, 10.0 * number, 10.0 * number, "a") for number in range(3)}
    after = {number: turn._replace(host="ab"[number == 1]) for number, turn in before.items()}
    assert datasets.pairs(before, before) == [(1.0, 1.0)] * 3
    assert datasets.pairs(before, after) == [(1.0, 1.0)] * 2


def test_a_campaign_beside_another_one_is_compared_as_of_another_time(tmp_path: Path) -> None:
    first, _ = both(tmp_path, 1.05)
    other = datasets.read(str(campaign(tmp_path / "c", 1.05, "elsewhere")))
    assert not compare.in_turn(first, other)


def test_the_ratio_is_the_median_of_the_pairs_own_and_its_interval_theirs() -> None:
    pairs = [(1.0, 1.1), (2.0, 2.4), (4.0, 4.0), (1.0, 1.3), (1.0, 1.2), (1.0, 1.15)]
    ratio, low, high, enough = datasets.pair_ratio(pairs)
    assert (ratio, low, high) == pytest.approx(((1.15 * 1.2) ** 0.5, 1.0, 1.3))
    assert enough
    assert not datasets.pair_ratio(pairs[:5])[3]


def test_the_p_of_pairs_is_students() -> None:
    pairs = [(1.0, 2.0), (1.0, 4.0), (1.0, 8.0)]  # logarithms 1, 2, 3 of two: t = 2 / (1 / sqrt(3))
    assert datasets.pair_p_value(pairs) == pytest.approx(statistics.student(2 * 3**0.5, 2))
    assert datasets.pair_p_value([(1.0, 1.0), (2.0, 2.0)]) == 1.0
