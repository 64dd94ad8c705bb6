"""Whatever is done to an output: the same numbers or a ParseError, never other numbers and never
another exception.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.tools import samples
from tests.unit.tools.test_outputs import GOOD

from peakmark.errors import ParseError
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed, Parsed

INSTRUMENTS = sorted(REGISTRY)


def attempt(case: str, text: str) -> Parsed | None:
    """What is read when the numbers' text is replaced; None for a ParseError."""
    cell, completed = samples.load(case)
    name, _ = samples.main_text(completed)
    try:
        return REGISTRY[cell.instrument].parse(cell, samples.with_text(completed, name, text))
    except ParseError as error:
        assert str(error).strip()
        assert "\n" not in str(error)
        return None


def whole(case: str) -> str:
    return samples.main_text(samples.load(case)[1])[1]


@pytest.mark.parametrize("case", GOOD)
def test_a_cut_output_never_gives_other_numbers(case: str) -> None:
    expected = samples.values(samples.parse(case))
    refused = 0
    for text in samples.cuts(whole(case)):
        parsed = attempt(case, text)
        refused += parsed is None
        assert parsed is None or samples.values(parsed) == expected, text[-80:]
    assert refused > 0


@pytest.mark.parametrize("case", GOOD)
def test_a_missing_line_never_gives_other_numbers(case: str) -> None:
    expected = samples.values(samples.parse(case))
    lines = whole(case).splitlines(keepends=True)
    for gone in range(len(lines)):
        parsed = attempt(case, "".join(lines[:gone] + lines[gone + 1 :]))
        assert parsed is None or samples.values(parsed) == expected, lines[gone]


@pytest.mark.parametrize("case", GOOD)
@pytest.mark.parametrize(
    "text",
    ["", "\n", "\0" * 100, "Segmentation fault\n", "{", "[]", "null", "nan", "{}\n", "é½٣" * 50],
)
def test_something_else_is_refused(case: str, text: str) -> None:
    assert attempt(case, text) is None


@pytest.mark.parametrize("case", GOOD)
def test_numbers_of_another_locale_are_refused(case: str) -> None:
    """A decimal comma, and digits that float() would take."""
    text = whole(case)
    expected = samples.values(samples.parse(case))
    for changed in (
        text.replace(".", ","),
        text.translate({ord("0") + i: 0x0660 + i for i in range(10)}),
    ):
        parsed = attempt(case, changed)
        assert parsed is None or samples.values(parsed) == expected


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_nothing_was_printed(name: str) -> None:
    cell, _ = samples.load(next(case for case in GOOD if case.startswith(f"{name}/")))
    with pytest.raises(ParseError):
        REGISTRY[name].parse(cell, Completed(argv=(), returncode=0, stdout="", stderr=""))


@pytest.mark.parametrize("case", GOOD)
def test_the_output_of_another_tool_is_refused(case: str) -> None:
    tool = case.split("/")[0]
    for other in GOOD:
        if not other.startswith(f"{tool}/"):
            assert attempt(case, whole(other)) is None, other


@settings(max_examples=200)
@given(case=st.sampled_from(sorted(GOOD)), seed=st.integers(0, 2**32 - 1))
def test_damaged_bytes_raise_nothing_else(case: str, seed: int) -> None:
    """A few characters changed: a number may then be another one, but parse ends with values or a
    ParseError.
    """
    chance = random.Random(seed)  # noqa: S311
    letters = list(whole(case))
    for _ in range(chance.randint(1, 8)):
        letters[chance.randrange(len(letters))] = chance.choice(
            '0123456789.,eE+-naif \t\n{}[]:"=/x'
        )
    parsed = attempt(case, "".join(letters))
    if parsed is not None:
        assert all(row.value > 0 for row in parsed.measurements)


@settings(max_examples=100)
@given(name=st.sampled_from(INSTRUMENTS), text=st.text(max_size=300))
def test_any_text_raises_nothing_else(name: str, text: str) -> None:
    case = next(case for case in GOOD if case.startswith(f"{name}/"))
    assert attempt(case, text) is None
