"""Checks of cores: their clock, their number, which of them the threads had."""

import copy
from dataclasses import replace

import pytest
from tests.unit.analysis.checked import PLACED, VIRTUAL, VM, codes, limit, row

from peakmark.analysis.checks import check_row
from peakmark.analysis.row import Measured, RunValue
from peakmark.messages import Message, Severity


def clocks(*pairs: tuple[float, float], values: list[float] | None = None) -> list[Message]:
    """The notes of a row whose repetitions had these clocks before and after; GHz."""
    values = [100.0] * len(pairs) if values is None else values
    measured = row(values)
    runs = [
        RunValue(value, {"clock_hz_before": before * 1e9, "clock_hz_after": after * 1e9})
        for value, (before, after) in zip(values, pairs, strict=True)
    ]
    return [
        note for note in check_row(replace(measured, runs=runs)) if note.code.startswith("clock")
    ]


def test_a_clock_that_moves() -> None:
    assert codes(row(details={"clock_hz_before": 3.2e9, "clock_hz_after": 3.1e9})) == []
    moved = check_row(row(details={"clock_hz_before": 3.2e9, "clock_hz_after": 2.6e9}))
    assert [note.code for note in moved] == ["clock-moved"]
    assert "fell by up to 19%" in moved[0].text
    assert "6 of 6" in moved[0].text
    assert codes(row(context={"clock_hz_before": 3.2e9, "clock_hz_after": 2.6e9})) == [
        "clock-moved"
    ]
    assert codes(row(context={"clock_hz_before": 3.2e9, "clock_hz_after": None})) == []


def test_a_clock_that_moves_in_few_repetitions_is_no_doubt() -> None:
    """The median stands; in half of them it does not."""
    [note] = clocks((3.0, 3.0), (3.0, 2.7), (3.0, 3.0))
    assert note.severity is Severity.NOTE
    assert "fell" in note.fact and "10%" in note.fact and "1 of 3" in note.fact
    [note] = clocks((3.0, 3.0), (3.0, 2.7), (3.0, 3.3))
    assert note.severity is Severity.UNSURE
    assert "moved" in note.fact and "10%" in note.fact and "2 of 3" in note.fact
    [note] = clocks((2.7, 3.0))
    assert note.severity is Severity.UNSURE
    assert "rose by 11%" in note.fact and "repetitions" not in note.fact


def test_work_that_lowers_the_clock_is_told_and_no_doubt() -> None:
    details = {"clock_hz_before": 2.94e9, "clock_hz_after": 2.96e9}
    [note] = check_row(row(details=details | {"clock_hz_loaded": 2.72e9}))
    assert (note.code, note.severity) == ("clock-lowered", Severity.NOTE)
    assert "by 7.8%, to 2.72 GHz" in note.text
    assert codes(row(details=details | {"clock_hz_loaded": 2.93e9})) == []
    assert codes(row(details=details | {"clock_hz_loaded": None})) == []


def test_a_clock_that_differs_between_repetitions() -> None:
    """It explains why values differ, which are judged themselves: no doubt of its own."""
    [note] = clocks((3.2, 3.2), (3.2, 3.2), (2.9, 2.9))
    assert (note.code, note.severity) == ("clock-differs", Severity.NOTE)
    assert dict(note.values)["more"] == pytest.approx(3.2 / 2.9 - 1)
    assert clocks((3.2, 3.2), (3.1, 3.1)) == []


def test_threads_beyond_what_the_job_was_given() -> None:
    assert codes(row(concurrency=2)) == []
    assert codes(row(concurrency=3)) == ["oversubscribed"]
    assert codes(row(concurrency=64, subsystem="disk", workload="RR")) == []
    facts = copy.deepcopy(VM)
    facts["limits"] |= {
        "cpus_allowed": [0, 1, 2, 3],
        "physical_cores_allowed": 2,
        "cpu_quota": None,
    }
    found = check_row(row(concurrency=4, facts=facts))
    assert [(note.code, note.is_warning) for note in found] == [("shared-cores", False)]
    facts["limits"]["cpu_quota"] = 1.5
    assert codes(row(concurrency=2, facts=facts)) == ["cpu-quota"]
    assert codes(row(concurrency=2, facts={})) == []
    assert codes(row(concurrency=2, facts={}, context={"cpus": [0]})) == ["oversubscribed"]


def test_what_a_job_was_given_stands_in_its_record() -> None:
    facts = copy.deepcopy(VM)
    facts["limits"] |= {
        "cpus_allowed": [0],
        "physical_cores_allowed": 1,
        "cpu_quota": None,
    }  # of the first job
    allowed = {"cores": 4, "cpu_quota": None}
    assert (
        codes(row(facts=facts, concurrency=2, context={"cpus": [0, 1, 2, 3], "allowed": allowed}))
        == []
    )
    crowded = {"cpus": [0, 1, 2, 3], "allowed": {**allowed, "cores": 2}}
    assert codes(row(facts=facts, concurrency=4, context=crowded)) == ["shared-cores"]
    held = {"cpus": [0, 1, 2], "allowed": {**allowed, "cpu_quota": 1.5}}
    assert codes(row(facts=facts, concurrency=2, context=held)) == ["cpu-quota"]


def test_a_throttled_node_does_not_look_perfect() -> None:
    facts = copy.deepcopy(VM)
    facts["cpu"]["clock_hz"] |= {"nominal": 2.1e9}
    slow = {"clock_hz_before": 1.2e9, "clock_hz_after": 1.2e9}
    perfect = limit(101.4)
    found = check_row(row(details=slow, limit=perfect, facts=facts))
    assert [note.code for note in found] == ["below-nominal"] and found[0].is_warning
    values = dict(found[0].values)
    assert (values["clock"], values["nominal"]) == (1.2e9, 2.1e9)
    assert "(56% of" in found[0].text
    # The clock under the work decides, whatever it was before and after.
    fast = {"clock_hz_before": 2.1e9, "clock_hz_after": 2.1e9}
    assert codes(row(details=fast, limit=perfect, facts=facts)) == []
    assert codes(row(details={**fast, "clock_hz_loaded": 1.2e9}, limit=perfect, facts=facts)) == [
        "below-nominal",
        "clock-lowered",
    ]


def test_threads_that_waited_for_their_cpus_are_told() -> None:
    measured = row()

    def of(*shares: float) -> list[Message]:
        runs = [RunValue(100.0 * share, {"cpu_share": share}) for share in shares]
        return check_row(Measured(**{**vars(measured), "runs": runs}))

    assert [note.code for note in of(1.0, 0.99, 1.0)] == []
    [note] = of(1.0, 0.861, 1.0)
    assert (note.code, note.severity) == ("waited", Severity.NOTE)
    assert "13.9%" in note.fact and "1 of 3" in note.fact
    assert of(0.94, 0.93, 1.0)[0].severity is Severity.UNSURE
    # As of the hypervisor's share: what takes less than a quiet machine spreads changes no figure.
    assert of(0.96, 0.96, 0.96)[0].severity is Severity.NOTE
    # A core that does half of what its pipes allow needs no other reason.
    half = {"cpu_share": 0.5}
    assert codes(row(details=half, limit=limit(200.0))) == ["waited"]
    assert codes(row(details={"cpu_share": 1.0}, limit=limit(200.0))) == ["slow-core"]
    assert codes(row(details=half, subsystem="disk", instrument="diskbench")) == []


@pytest.mark.parametrize(
    ("isa", "idle", "loaded", "expected"),
    [
        # As AVX-512 allows: its base clock is below the one on the box.
        ("avx512", 2.8e9, 1.9e9, ["clock-lowered"]),
        ("avx2", 2.8e9, 1.9e9, ["clock-lowered"]),
        # Nothing but heat or power does that.
        ("sse2", 2.8e9, 1.9e9, ["below-nominal", "clock-lowered"]),
        ("avx512", 1.8e9, 1.7e9, ["below-nominal", "clock-lowered"]),
        # Lower than any design asks for.
        ("avx512", 2.8e9, 0.8e9, ["below-nominal", "clock-lowered"]),
    ],
)
def test_wide_vectors_below_the_nominal_clock_are_no_throttling(
    isa: str, idle: float, loaded: float, expected: list[str]
) -> None:
    facts = copy.deepcopy(VM)
    facts["cpu"]["clock_hz"] |= {"nominal": 2.1e9}
    clocks = {"clock_hz_before": idle, "clock_hz_after": idle, "clock_hz_loaded": loaded}
    details = {"isa": isa, **clocks}
    found = check_row(row(details=details, limit=limit(101.4), facts=facts))
    assert [note.code for note in found] == expected
    assert "below the nominal 2.1 GHz" in found[-1].text
    if len(expected) == 2:  # the share is that of the limit, which takes the clock under the work
        assert f"({100 / 101.4 * loaded / 2.1e9:.0%} of" in found[0].text


def test_repetitions_on_other_cores_are_not_alike() -> None:
    measured = row()
    runs = [RunValue(100.0, {}, {"placed": {**PLACED, "cores": cores}}) for cores in (1, 1, 2)]
    assert codes(Measured(**{**vars(measured), "runs": runs})) == ["placement-differs"]


def test_a_core_that_does_less_than_its_pipes_allow_is_unsure() -> None:
    """1.2 instead of 2 fused operations a cycle, and nothing in the record says why."""
    slow = row([60.0] * 6, facts=VIRTUAL, limit=limit(100.0))
    assert codes(slow) == ["slow-core"]
    assert codes(replace(slow, centre=80.0)) == []
    assert codes(replace(slow, concurrency=8)) == []
    noise = {
        "before": {},
        "after": {},
        "during": {"seconds": 1.0, "steal": 0.3, "others": 0.0, "busy": 0, "users": 0},
    }
    stolen = [replace(run, context={"noise": noise}) for run in slow.runs]
    assert codes(replace(slow, runs=stolen)) == ["steal"]
    scalar = [replace(run, options={"isa": "scalar"}) for run in slow.runs]
    assert codes(replace(slow, runs=scalar)) == ["narrower"]


@pytest.mark.parametrize(
    ("isa", "best", "said"),
    [("scalar", "avx512", "plain arithmetic as asked"), ("avx2", "avx512", "AVX2 instructions as asked"),
     ("auto", "avx512", ""), ("avx2", "avx2", ""), ("scalar", None, "plain arithmetic as asked")],
)  # fmt: skip
def test_a_share_of_narrow_instructions_is_said_to_be_theirs(
    isa: str, best: str | None, said: str
) -> None:
    facts = {**VM, "cpu": {**VM["cpu"], "isa_best": best}}
    measured = row([3.0] * 6, facts=facts, limit=limit(100.0))
    measured = replace(measured, runs=[replace(run, options={"isa": isa}) for run in measured.runs])
    (text,) = [note.text for note in check_row(measured) if note.code == "narrower"] or [""]
    assert text.startswith(said) and bool(text) == bool(said)
    unknown = [
        note.code
        for note in check_row(replace(measured, limit=replace(measured.limit, value=None)))
    ]
    assert "narrower" not in unknown
