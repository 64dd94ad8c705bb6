"""Notes that differ in their numbers alone are one sentence with ranges."""

from peakmark.judging.notes import Note, merge, note
from peakmark.judging.phrases import Quoted, between, phrase


def spread(share: float) -> Note:
    return note("spread", spread=share)


def told(text: str) -> Note:
    return note("remark", remark=Quoted(text))


def test_notes_that_differ_in_numbers_alone_share_a_sentence() -> None:
    merged = merge([spread(0.07), spread(0.31), spread(0.095), told("other 4")])
    assert {str(form.wording) for form in merged.values()} == {
        "values spread by 7 – 31% of their mean: repeat on an idle node, or more often, or longer",
        "other 4",
    }
    assert [str(form.own) for form in merged.values()] == ["7%", "31%", "10%", "None"]
    assert merge([]) == {}


def test_what_is_another_words_or_another_programs_is_another_sentence() -> None:
    notes = [note("waited", about=name, lost=0.1, often="") for name in ("cpubench", "rambench")]
    notes += [note("drift", more=more, p=0.01, heat="") for more in (0.2, -0.3)]
    assert [str(form.wording) for form in merge(notes).values()] == [each.text for each in notes]


def test_one_and_several_of_what_is_counted_are_one() -> None:
    notes = [
        note("other-load", cpus=cpus, often=phrase("meanwhile", where=""), busy=phrase("busy", busy=busy, users=""))
        for cpus, busy in ((1.3, 1), (2.0, 3))
    ]
    assert {form.wording.fact for form in merge(notes).values()} == {
        "other programs used up to 1.3 – 2 CPUs meanwhile (1 – 3 busy processes)"
    }


def test_own_numbers_have_their_units_and_of_several_rows_are_a_range() -> None:
    clocks = [
        note("clock-lowered", share=share, clock=clock, below="") for share, clock in ((0.049, 2.74e9), (0.06, 2.79e9))
    ]
    flushes = [note("flush", flush=flush, megabytes=655.0, where=phrase("safe cache")) for flush in (132e-6, 1.5e-6)]
    merged = merge([*clocks, *flushes])
    own = [form.own for form in merged.values() if form.own]
    assert [number.alone for number in own] == ["4.9%", "6.0%", "132 us", "1.5 us"], "the first of what differs"
    assert between(own[:2]).alone == "4.9 – 6.0%"


def test_the_numbers_of_what_a_program_said_are_found() -> None:
    notes = [told(f"took {value} µs of L3, N = {n}") for value, n in (("132", 4), ("3.76e+06", 4))]
    merged = merge(notes)
    assert [str(form.wording) for form in merged.values()] == ["took 132 – 3.76e+06 µs of L3, N = 4"] * 2
    assert [form.own.alone for form in merged.values() if form.own] == ["132 µs", "3.76e+06 µs"]
