"""The page of a comparison: the verdicts of the text, what differs first, bars with their intervals."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit.markup import HOSTILE, Page, must_need_nothing_else

from peakmark.rows import build
from peakmark.views import compare, compare_page
from peakmark.views.datasets import KEY, Dataset

CALM = np.array([1.0, 1.001, 0.999, 1.002, 0.998, 1.0])


def side(name, factors, facts=None, table="cpu"):
    """A campaign with a row for each factor, of six repetitions; None leaves its row out."""
    keys, values, of_rows = [], [], []
    for number, factor in enumerate(factors, 1):
        if factor is not None:
            keys.append((table, "cpubench", "DP", "", 0, str(number), "", ""))
            values.append(1e9 * factor * CALM)
            of_rows.append(facts or {})
    rows = pd.DataFrame(keys, columns=KEY)
    rows = rows.assign(severity="", unequal_nodes="", facts=of_rows)
    return Dataset(name, rows, pd.DataFrame(values), (1.0, 2.0), machine=facts or {})


def content(before, *others, **rules):
    comparisons = [compare.judge(before, other, compare.Rules(**rules)) for other in others]
    return compare_page.build(comparisons), comparisons


def test_what_differs_comes_first_with_the_verdicts_of_the_text():
    before = side("a", [1.0, 1.0, 1.0])
    page, (found,) = content(before, side("b", [1.0, 0.5, 1.2]))
    shown = {}
    for heading, lines in page["groups"].items():
        shown[heading] = [(line["name"][-2:], line["others"][0]["verdict"]) for line in lines]
    assert shown == {
        "What differs": [("x2", "worse"), ("x3", "better")],
        "No difference shown": [("x1", "no difference shown")],
        "Not judged": [],
    }
    text = compare.report(found)
    assert text.startswith("\n".join(page["summaries"][0]))
    for line in (*page["groups"]["What differs"], *page["groups"]["No difference shown"]):
        other = line["others"][0]
        assert f"{other['change']} " in text and other["interval"] in text


@pytest.mark.parametrize(("table", "factor", "is_right"), [
    ("cpu", 1.2, True), ("cpu", 0.8, False),
    ("memory_latency", 1.2, False), ("memory_latency", 0.8, True),
])  # fmt: skip
def test_a_bar_to_the_right_is_faster_and_lies_within_its_interval(table, factor, is_right):
    page, _ = content(side("a", [1.0], table=table), side("b", [factor], table=table))
    bar = page["groups"]["What differs"][0]["others"][0]["bar"]
    assert bar["low"] <= bar["change"] <= bar["high"]
    assert (bar["change"] > compare_page.WIDTH / 2) == is_right
    assert bar["band"][0] < compare_page.WIDTH / 2 < bar["band"][1]


def test_a_bar_ends_at_the_edge_of_its_picture():
    page, _ = content(side("a", [1.0]), side("b", [1e3]))
    assert page["groups"]["What differs"][0]["others"][0]["bar"]["change"] == compare_page.WIDTH
    assert page["ends"] == ["-75 %", "+300 %"]


def test_several_campaigns_stand_side_by_side_each_against_the_first():
    page, _ = content(side("a", [1.0, 1.0]), side("b", [1.0, 1.0]), side("c", [2.0, None]))
    assert page["headings"] == ["a (A)", "b (B)", "c (B)"]
    (differs,) = page["groups"]["What differs"]
    assert [other["verdict"] for other in differs["others"]] == ["no difference shown", "better"]
    (level,) = page["groups"]["No difference shown"]
    assert level["others"][1] is None


def test_facts_that_differ_are_listed_with_the_rows_they_stop():
    before, after = side("a", [1.0], {"kernel": "6.1"}), side("b", [0.5], {"kernel": "6.2"})
    page, _ = content(before, after)
    assert page["facts"] == [["kernel", "6.1", "6.2", "1 row"]]
    assert [line["others"][0]["verdict"] for line in page["groups"]["Not judged"]] == ["not alike"]
    page, _ = content(before, after, changed=["kernel"])
    assert page["facts"] == [["kernel", "6.1", "6.2", ""]]
    assert len(page["groups"]["What differs"]) == 1


def test_the_page_needs_nothing_else_and_runs_no_name():
    before = side(HOSTILE, [1.0, 1.0, 1.0], {"kernel": "<b>1"})
    after = side("b", [1.0, 0.5, None], {"kernel": "<b>2"})
    rules = compare.Rules(changed=["kernel"])
    page = Page(compare_page.render([compare.judge(before, after, rules)]).decode())
    must_need_nothing_else(page)
    assert f"{HOSTILE} and b" in page.texts("h1") and "<b>1" in page.texts("td")
    assert len(page.texts("tbody")) == 4
    identifiers = {attributes.get("id") for _, attributes, _ in page.elements}
    for _, attributes, _ in page.elements:
        assert attributes.get("href", "#")[1:] in {*identifiers, "", "ata:,"}


def test_the_command_writes_the_page_and_overwrites_no_file_of_others(tmp_path, peakmark):
    for name, value in (("a", 1e9), ("b", 2e9)):
        make.write(tmp_path / name, make.runs("cpubench", "DP", *make.near(value)))
        build.load(tmp_path / name)
    a, b, target = tmp_path / "a", tmp_path / "b", tmp_path / "c.html"
    said = peakmark("compare", a, b, b, "--html", target)
    assert said.returncode == 0 and said.stdout.splitlines()[-1] == str(target)
    assert said.stdout.count("A is a, B is b") == 2
    assert len(re.findall("<svg", target.read_text())) == 2
    target.write_text("mine")
    assert "nothing was overwritten" in peakmark("compare", a, b, "--html", target).stderr
    assert target.read_text() == "mine"


def test_the_ends_of_the_bars_are_those_of_the_widest_interval():
    _, (found,) = content(side("a", [1.0]), side("b", [1.5]))
    row = found.pairs.iloc[0]
    assert compare_page.reach_of([found]) == pytest.approx(abs(row["change"]) + row["half"])
    assert compare_page.position(math.log(2), math.log(4)) == 0.75 * compare_page.WIDTH
