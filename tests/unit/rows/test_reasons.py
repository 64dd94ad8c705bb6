"""Why slow nodes may be slow: facts that they alone have."""

from __future__ import annotations

import pandas as pd
import pytest

from peakmark.rows.node_classes import distinctive_facts


@pytest.mark.parametrize(
    ("values", "slow", "named"),
    [
        ("bbbbbbbba", {8}, True),  # alone
        ("bbbbbbbaa", {7, 8}, True),  # all slow ones
        ("bbbbbbbca", {7, 8}, False),  # the slow ones differ
        ("bbbbbbaaa", {7, 8}, False),  # another has it
        ("abcdefghi", {8}, False),  # all differ: it is a name
        ("bbbbbbbbb", {8}, False),  # as usual
        ("--------a", {8}, True),  # the others have no such fact
        ("a", {0}, False),  # nobody else to tell
    ],
)
def test_a_fact_is_named_where_all_slow_nodes_have_it_and_no_other(values, slow, named):
    lines = []
    for number, value in enumerate(values):
        lines.append((f"node{number}", "kernel", "6"))
        if value != "-":
            lines.append((f"node{number}", "microcode", value))
    facts = pd.DataFrame(lines, columns=["node", "title", "text"])
    found = distinctive_facts(facts, [f"node{number}" for number in slow])
    assert [each.values["what"] for each in found] == ["microcode"] * named
