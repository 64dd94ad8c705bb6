"""Messages: codes with values, put into words by one catalogue."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from peakmark import slurm
from peakmark.messages import (
    Message,
    Range,
    between,
    catalogue,
    merge,
    message,
    render,
    texts,
)
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.resources import ROOT

GOLDEN = ROOT / "tests" / "unit" / "data" / "messages.txt"
PACKAGE = ROOT / "src" / "peakmark"


def spread(share: float) -> Message:
    return message("spread", spread=share)


def test_messages_that_differ_in_numbers_alone_share_a_sentence() -> None:
    merged = merge([spread(0.07), spread(0.31), spread(0.095), message("remark", remark="other 4")])
    assert {form.message.text for form in merged.values()} == {
        "values spread by 7 – 31% of their mean: repeat on an idle node, or more often, or longer",
        "other 4",
    }
    assert [form.own and form.own.text for form in merged.values()] == ["7%", "31%", "10%", None]
    assert merge([]) == {}


def test_another_program_or_another_sign_is_another_sentence() -> None:
    messages = [
        message("waited", about=name, lost=0.1, often="") for name in ("cpubench", "rambench")
    ]
    messages += [message("drift", more=more, p=0.01, heat="") for more in (0.2, -0.3)]
    assert [form.message for form in merge(messages).values()] == messages


def test_one_and_several_of_what_is_counted_share_a_sentence() -> None:
    messages = [
        message(
            "other-load",
            cpus=cpus,
            often=message("meanwhile", where=""),
            busy=message("busy", busy=busy, users=""),
        )
        for cpus, busy in ((1.3, 1), (2.0, 3))
    ]
    (fact,) = {form.message.fact for form in merge(messages).values()}
    assert "1.3 – 2 CPUs" in fact and "1 – 3 busy processes" in fact


def test_numbers_keep_their_units_and_several_are_a_range() -> None:
    clocks = [
        message("clock-lowered", share=share, clock=clock, below="")
        for share, clock in ((0.049, 2.74e9), (0.06, 2.79e9))
    ]
    flushes = [
        message("flush", flush=flush, megabytes=655.0, where=message("safe-cache"))
        for flush in (132e-6, 1.5e-6)
    ]
    own = [form.own for form in merge([*clocks, *flushes]).values() if form.own]
    assert [number.text for number in own] == ["4.9%", "6.0%", "132 us", "1.5 us"], (
        "the first of what differs"
    )
    assert between(own[:2]).text == "4.9 – 6.0%" and between(own[:1]).text == "4.9%"
    assert (
        "1.2 us – 1.3 ms"
        in render(
            message("flush", flush=Range(1.2e-6, 1.3e-3), megabytes=1.0, where="")
        ).sentence.fact
    )


def test_an_error_holds_fact_and_remedy_of_its_code() -> None:
    error = Unavailable("memory", program="pmbw", need=1 << 30, may=3 << 20)
    assert (error.code, error.values["need"]) == ("memory", 1 << 30)
    assert (
        "1GiB" in error.fact
        and "3MiB" in error.fact
        and error.remedy
        and str(error) == f"{error.fact}: {error.remedy}"
    )
    variant = {"variant": "x", "workload": "LAT", "known": ("none", "y")}
    assert str(Unavailable("variant", program="ping", **variant)).endswith("none, y")
    assert "no interface 'a{b}'" in str(
        Unavailable("no-interface", host="n", interface="a{b}", known="is lo (::1)")
    )


def test_an_error_of_a_sentence_alone_has_no_code() -> None:
    error = MeasurementError("the lock {path} is gone")
    assert (str(error), error.code) == ("the lock {path} is gone", None)


MAKERS = {"message", "Unavailable", "MeasurementError"}


def used() -> Iterator[str]:
    """Every text in the package that may be a code."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def made() -> Iterator[tuple[str, set[str]]]:
    """(code, names of its values) of every message that names both where it is made."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                not isinstance(node, ast.Call)
                or getattr(node.func, "id", "") not in MAKERS
                or not node.args
            ):
                continue
            if not isinstance(node.args[0], ast.Constant) or any(
                keyword.arg is None for keyword in node.keywords
            ):
                continue
            keywords = {str(keyword.arg): keyword.value for keyword in node.keywords}
            case = keywords.pop("case", ast.Constant(""))
            keywords.pop("about", None)
            if isinstance(case, ast.Constant) and (
                keywords or getattr(node.func, "id", "") == "message"
            ):
                yield f"{node.args[0].value} {case.value}".rstrip(), set(keywords)


def fields(entry: Mapping[str, Any]) -> set[str]:
    return set(re.findall(r"(?<!{){(\w+)", entry["text"] + entry.get("remedy", "")))


def test_every_code_has_a_text_for_its_values_and_every_text_is_used() -> None:
    entries = catalogue()
    for code, names in made():
        assert code in entries, code
        assert fields(entries[code]) <= names, code
    words = set(used())
    words |= set(slurm.ENDED_BADLY)  # cases of job-ended are the states of Slurm
    unused = [code for code in entries if not set(code.split(" ")) <= words]
    assert not unused


def in_words(code: str, entry: Mapping[str, Any]) -> str:
    fact, remedy = texts(code, entry.get("example", {}))
    return f"{code}\n    {fact}\n" + (f"    -> {remedy}\n" if remedy else "")


def test_the_words_of_every_code_are_those_of_the_golden_file() -> None:
    """After a change of words: PEAKMARK_GOLDEN=1 pytest tests/unit/test_messages.py, then read the
    difference.
    """
    words = "\n".join(in_words(code, entry) for code, entry in catalogue().items())
    if os.environ.get("PEAKMARK_GOLDEN"):
        GOLDEN.write_text(words, encoding="utf-8")
    assert words == GOLDEN.read_text(encoding="utf-8")


def test_an_entry_has_an_example_of_its_fields_and_lines_without_a_full_stop() -> None:
    for code, entry in catalogue().items():
        assert set(entry) <= {"text", "remedy", "example"}, code
        assert fields(entry) == set(entry.get("example", {})), code
        for line in (entry["text"], entry.get("remedy", "")):
            assert "\n" not in line and not line.endswith((".", ";", " ")), code
