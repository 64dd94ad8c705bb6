"""Messages: codes with values, put into words by one catalogue."""

import ast
import os
import re

from peakmark.messages import CATALOGUE, Range, catalogue, merge, message, texts
from peakmark.resources import ROOT

GOLDEN = ROOT / "tests" / "unit" / "data" / "messages.txt"


def test_messages_that_differ_in_numbers_alone_share_a_sentence():
    spreads = [message("spread", spread=share) for share in (0.07, 0.31, 0.095)]
    merged = merge([*spreads, message("remark", remark="other 4")])
    facts = {form.fact for form in merged.values()}
    assert facts == {"values spread by 7 to 31% of their mean", "other 4"}
    assert merge([]) == {}


def load(cpus, busy):
    parts = {"often": message("meanwhile", where=""), "busy": message("busy", busy=busy, users="")}
    return message("other-load", share=cpus, **parts)


def test_another_program_or_sign_is_another_sentence_and_another_count_is_not():
    waited = [message("waited", about=tool, share=0.1, often="") for tool in ("cpubench", "pmbw")]
    drifts = [message("drift", more=more, p=0.01) for more in (0.2, -0.3)]
    assert list(merge(waited + drifts).values()) == waited + drifts
    (fact,) = {form.fact for form in merge([load(1.3, 1), load(2.0, 3)]).values()}
    # Behind *up to* only the end of the range is printed.
    assert "up to 2 CPUs" in fact and "1 to 3 busy processes" in fact


def test_messages_that_differ_in_names_name_a_few_of_them():
    servers = [message("server", hosts=frozenset([f"node{number}"])) for number in range(64)]
    (form,) = set(merge(servers).values())
    assert form.fact.count("node") == 3 and "node0, node1, node2 and 61 more" in form.fact
    assert len(merge(servers)) == 64


def test_a_range_of_numbers_keeps_their_units():
    flush = message("flush", flush=Range(1.2e-6, 1.3e-3), megabytes=655.0)
    assert "1.2 us to 1.3 ms" in flush.fact


def made(node):
    """(code, names of its values) of a message that names both where it is made."""
    if not isinstance(node, ast.Call) or not node.args or getattr(node.func, "id", "") != "message":
        return None
    code, keywords = node.args[0], {str(keyword.arg): keyword.value for keyword in node.keywords}
    case = keywords.pop("case", ast.Constant(""))
    keywords.pop("about", None)
    named = isinstance(code, ast.Constant) and isinstance(case, ast.Constant)
    if named and "None" not in keywords:
        return f"{code.value} {case.value}".rstrip(), set(keywords)
    return None


def fields(entry):
    return set(re.findall(r"(?<!{){(\w+)", entry["text"] + entry.get("remedy", "")))


def test_every_code_has_a_text_for_its_values_and_every_text_is_used():
    entries = catalogue()
    words = set()
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src" / "peakmark").rglob("*.py")]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(node.value)
        if message_of := made(node):
            code, names = message_of
            assert code in entries, code
            assert fields(entries[code]) <= names, code
    # tests/unit/views/test_printed.py knows the figures that have a caption.
    codes = [code for code in entries if not code.startswith("caption ")]
    assert not [code for code in codes if not set(code.split(" ")) <= words]


def test_the_words_of_every_code_are_those_of_the_golden_file():
    """PEAKMARK_GOLDEN=1 pytest tests/unit/test_messages.py writes it."""
    printed = []
    for code, entry in catalogue().items():
        fact, remedy = texts(code, entry.get("example", {}))
        printed.append(f"{code}\n    {fact}\n" + (f"    -> {remedy}\n" if remedy else ""))
    words = "\n".join(printed)
    if os.environ.get("PEAKMARK_GOLDEN"):
        GOLDEN.write_text(words, encoding="utf-8")
    assert words == GOLDEN.read_text(encoding="utf-8")


def test_no_code_stands_twice():
    codes = re.findall(r"^([\w /-]+):$", CATALOGUE.read_text(), re.MULTILINE)
    assert len(codes) == len(set(codes)) == len(catalogue())


def test_an_entry_has_an_example_of_its_fields_and_lines_without_a_full_stop():
    for code, entry in catalogue().items():
        assert set(entry) <= {"kind", "text", "short", "remedy", "per", "example"}, code
        assert fields(entry) == set(entry.get("example", {})), code
        short = message(code, **entry.get("example", {})).short
        assert len(short.split()) <= 6, code
        for line in (entry["text"], short, entry.get("remedy", "")):
            assert "\n" not in line and not line.endswith((".", ";", " ")), code
