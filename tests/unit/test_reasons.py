"""Reasons as codes and values: each that is raised has its words, each with words is raised, and a record keeps both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from peakmark import reasons
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.resources import ROOT

KINDS = {"Unavailable", "MeasurementError"}
ENDED = {"program", "how", "said"}


def raised() -> Iterator[tuple[str, set[str]]]:
    """(code, names of its values) of every reason in the package; of values that come as one, none is known."""
    for path in (ROOT / "src" / "peakmark").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS and node.keywords and node.args:
                names = {keyword.arg or "" for keyword in node.keywords}
                yield from ((one.value, names) for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant))
            elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[1], ast.Dict):
                names = {key.value for key in node.elts[1].keys if isinstance(key, ast.Constant)}
                codes = [one.value for one in ast.walk(node.elts[0]) if isinstance(one, ast.Constant)]
                yield from ((code, names | ENDED) for code in codes if code in reasons.WORDS)


def holes(code: str) -> set[str]:
    return set(re.findall(r"(?<!{){(\w+)", "".join(reasons.WORDS[code])))


def test_every_reason_has_words_for_its_values_and_all_words_are_used() -> None:
    seen = dict(raised())
    assert seen.keys() == reasons.WORDS.keys()
    wrong = {code: names ^ holes(code) for code, names in seen.items() if "" not in names and not holes(code) <= names}
    assert not wrong


def test_a_sentence_holds_fact_and_remedy() -> None:
    error = Unavailable("memory", program="pmbw", need=1 << 30, may=3 << 20)
    assert error.code == "memory"
    expected = "pmbw would allocate 1GiB, but the job may use 3MiB: make the pool smaller or ask for more memory"
    assert str(error) == expected
    assert str(Unavailable("variant", program="ping", variant="x", known=("none", "y"))).endswith("it has none, y")


def test_what_is_told_by_its_sentence_alone_has_no_code() -> None:
    error = MeasurementError("the lock {path} is gone")
    assert (str(error), error.code) == ("the lock {path} is gone", None)


def test_values_may_hold_braces_and_quotes() -> None:
    assert "no interface 'a{b}'" in str(Unavailable("no-interface", host="n", interface="a{b}", known="is lo (::1)"))


@pytest.mark.parametrize("code", reasons.WORDS)
def test_words_are_one_line(code: str) -> None:
    assert all("\n" not in part and not part.endswith((".", ";", " ")) for part in reasons.WORDS[code])
