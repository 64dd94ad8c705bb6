"""Messages: codes with values, put into words by one catalogue."""

import ast
import os
import re

from peakmark import data
from peakmark.messages import CATALOGUE, catalogue, message, words
from peakmark.resources import ROOT

GOLDEN = ROOT / "tests" / "unit" / "data" / "messages.txt"


def test_a_message_is_text_with_its_amount():
    drift = message("spread", case="drift", more=-0.3, p=0.012)
    assert drift.fact == "values drift by -30% from the first to the last repetition (p = 0.012)"
    assert (drift.short, drift.amount, drift.subject) == ("drifts by -30%", 0.3, "")
    assert drift.full_sentence.startswith("Values drift") and drift.full_sentence.endswith(
        "idle node."
    )


def test_a_field_has_its_unit_and_plural():
    assert "for as little as 71 ms" in message("small-solve", seconds=0.071).fact
    assert words("busy", busy=1, users="") == "1 busy process"
    assert words("busy", busy=3, users="") == "3 busy processes"


def made(node):
    """(code, names of its values) of a message that names both where it is made."""
    makers = ("message", "words")
    if (
        not isinstance(node, ast.Call)
        or not node.args
        or getattr(node.func, "id", "") not in makers
    ):
        return None
    code, keywords = node.args[0], {str(keyword.arg): keyword.value for keyword in node.keywords}
    case = keywords.pop("case", ast.Constant(""))
    keywords.pop("about", None)
    named = isinstance(code, ast.Constant) and isinstance(case, ast.Constant)
    if named and "None" not in keywords:
        return f"{code.value} {case.value}".rstrip(), set(keywords)
    return None


def example_of(entry):
    """The values of an entry's example; a list in YAML is a tuple in a message."""
    values = entry.get("example", {})
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def fields(entry):
    return set(re.findall(r"(?<!{){(\w+)", entry["text"] + entry.get("remedy", "")))


def test_every_code_has_a_text_for_its_values_and_every_text_is_used():
    entries = catalogue()
    said = {line[column] for line in data.table("counters") for column in ("code", "case")}
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src" / "peakmark").rglob("*.py")]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            said.update((node.value, *node.value.split(" ")))
        if message_of := made(node):
            code, names = message_of
            assert code in entries, code
            assert fields(entries[code]) <= names, code
    # tests/unit/views/test_printed.py knows the figures that have a caption.
    codes = [code for code in entries if not code.startswith("caption ")]
    assert not [code for code in codes if not set(code.split(" ")) <= said]


def test_the_words_of_every_code_are_those_of_the_golden_file():
    """PEAKMARK_GOLDEN=1 pytest tests/unit/test_messages.py writes it."""
    printed = []
    for code, entry in catalogue().items():
        shown = message(code, **example_of(entry))
        remedy = f"    -> {shown.remedy}\n" if shown.remedy else ""
        printed.append(f"{code}\n    {shown.fact}\n{remedy}")
    found = "\n".join(printed)
    if os.environ.get("PEAKMARK_GOLDEN"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


def test_no_code_stands_twice():
    codes = re.findall(r"^([\w /-]+):$", CATALOGUE.read_text(), re.MULTILINE)
    assert len(codes) == len(set(codes)) == len(catalogue())
