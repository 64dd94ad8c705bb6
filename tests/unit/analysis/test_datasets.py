"""The sides of a comparison: campaigns, and campaigns measured in turn."""

import json

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import compare, datasets

WANDERING = [1.0, 1.3, 0.7, 1.1, 0.8, 1.25]
"""A machine that moves by far more than the change that is looked for."""
WOBBLE = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0]


def campaign(folder, factor, beside, late=(), isa="auto"):
    """Four rows in six rounds, each a minute after the one before; this side of the rounds in
    ``late`` an hour later.
    """
    records = []
    for number, (moved, own) in enumerate(zip(WANDERING, WOBBLE, strict=True)):
        for row, workload in enumerate(("QP", "HP", "SP", "DP")):
            hour = 5 if number in late else 4
            started = f"2026-11-21T{hour:02d}:{10 + number:02d}:{2 * row + (factor != 1):02d}+00:00"
            value = 1e10 * moved * (1 + (factor - 1) * own) * (own if factor == 1 else 1)
            place = {"repetition": number, "isa": isa, "context": {"started": started}}
            records += make.runs("cpubench", workload, value, **place)
    path = make.write(folder, records) / "plan.json"
    plan = json.loads(path.read_text()) | ({"beside": beside} if beside else {})
    path.write_text(json.dumps(plan))
    return datasets.read(str(folder))


def both(folder, factor, late=(), isa="auto"):
    before = campaign(folder / "a", 1.0, "b")
    return before, campaign(folder / "b", factor, "a", late, isa)


def test_a_change_far_below_the_drift_is_found_in_pairs_and_only_there(tmp_path):
    text, counts = compare.report(*both(tmp_path / "turn", 1.05))
    assert counts == {"better": 4}
    assert "measured in turn" in text
    apart = [campaign(tmp_path / name, factor, "") for name, factor in (("a", 1.0), ("b", 1.05))]
    assert compare.report(*apart)[1] == {"no difference shown": 4}
    elsewhere = campaign(tmp_path / "c", 1.05, "elsewhere")
    assert not compare.in_turn(both(tmp_path / "turn", 1.05)[0], elsewhere)


def test_what_differs_on_purpose_is_said_first_and_judged(tmp_path):
    text, counts = compare.report(*both(tmp_path, 0.9, isa="scalar"))
    assert "A has auto, B has scalar" in text.splitlines()[0]
    assert counts == {"worse": 4}


@pytest.mark.parametrize(("factor", "late", "verdict", "left_out"), [
    (1.004, (), "no difference shown", 0), (1.05, (2,), "better", 4),
    (1.05, (2, 3), "cannot tell", 8),
])  # fmt: skip
def test_a_half_of_another_time_is_no_pair(tmp_path, factor, late, verdict, left_out):
    text, counts = compare.report(*both(tmp_path, factor, late=late))
    assert counts == {verdict: 4}
    assert (f"{left_out} repetitions left out" in text) == bool(left_out)


def test_halves_on_two_hosts_are_no_pair():
    before = {number: datasets.Turn(1.0, 10.0 * number, 10.0 * number, "a") for number in range(3)}
    after = {number: turn._replace(host="ab"[number == 1]) for number, turn in before.items()}
    assert datasets.pairs(before, before) == [(1.0, 1.0)] * 3
    assert datasets.pairs(before, after) == [(1.0, 1.0)] * 2


def of_words(folder, requested):
    """DP rows by what was asked for; a word means two threads."""
    records = []
    for word, value in requested.items():
        is_word = isinstance(word, str)
        context = make.placed(2, 2) if is_word else {}
        for each in make.runs("cpubench", "DP", *make.near(value), concurrency=2, context=context):
            each["cell"]["concurrency"] = word
            records.append(each)
    return datasets.read(str(make.write(folder, records)))


def test_a_word_and_the_number_that_it_meant_are_two_rows(tmp_path):
    before = of_words(tmp_path / "a", {2: 1e9, "cores": 2e9})
    found, _, _ = compare.compare(before, of_words(tmp_path / "b", {2: 1e9, "cores": 1e9}))
    assert [(datasets.describe(one.point), one.verdict) for one in found] == [
        ("cpu cpubench DP x2", "no difference shown"), ("cpu cpubench DP xcores", "worse"),
    ]  # fmt: skip
    only, first, second = compare.compare(before, of_words(tmp_path / "c", {2: 1e9}))
    assert (len(only), first, second) == (1, 1, 0)
