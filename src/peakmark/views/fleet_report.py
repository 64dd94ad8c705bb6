"""The slow nodes of a campaign, as ``peakmark fleet`` prints them and the report shows them.

``slow_paragraphs`` has the sentences of page one, ``slow_table`` the table of the slow rows.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.errors import ExitCode
from peakmark.formatting import counted, natural, percent, plural, typeset
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME

MOST_LINES = 200
"""Largest number of slow rows in the report; ``tables/nodes.csv`` has all."""
MOST_DISTANCE = 0.1
"""Share behind its class from which a node must be noticed before a report says none is slow."""
MOST_DISTURBED = 0.5
"""Largest share of disturbed rows with which a campaign can show that no node is slow."""
HEADINGS = ("Node", "Resource", "Row", "Value", "Class centre", "Behind (%)", "95 % interval")

Line = Any
"""A line of a frame, as ``schema.lines`` yields it."""


# -- the command


def describe(frames: CampaignFrames) -> list[str]:
    """Return the lines of ``peakmark fleet``: slow nodes, then slow pairs of nodes."""
    lines = [headline(frames)]
    campaign = frames.campaign
    if campaign["missing"]:
        lines.append(
            f"records of {campaign['missing']} of {plural(campaign['cells'], 'planned cell')} are missing"
        )
    lines += slow_paragraphs(frames) or [rule_sentence(frames)]
    links = frames.findings[frames.findings["topic"].eq("Links")]
    return [*lines, *map(typeset, links["text"])]


def headline(frames: CampaignFrames) -> str:
    """Return the number of slow nodes, or why it cannot be told whether a node is slow."""
    name = frames.campaign["name"]
    slow = slow_nodes(frames)
    if not slow and (reason := why_unknown(frames)):
        return f"{name}: cannot tell: {reason}"
    return f"{name}: {plural(len(slow), 'slow node')}"


def exit_code(frames: CampaignFrames) -> ExitCode:
    """Return the exit code of ``fleet --fail-on slow``. The first case that holds counts:

    - DIFFERENT: a node is slow, or a promised value is missed.
    - CANNOT_TELL: it cannot be told whether a node is slow.
    - DIFFERENT: a node has a limit that other nodes of its class do not have.
    - GOOD: otherwise.
    """
    of_promises, _ = judge_promises(frames)
    if slow_nodes(frames) or of_promises == ExitCode.DIFFERENT:
        return ExitCode.DIFFERENT
    if why_unknown(frames):
        return ExitCode.CANNOT_TELL
    return ExitCode.DIFFERENT if lone_limits(frames) else ExitCode.GOOD


def why_unknown(frames: CampaignFrames) -> str:
    """Return why it cannot be told whether a node is slow; empty if it can be told."""
    # Columns of ``frames.nodes``: ``judged`` and ``disturbed`` are numbers of a node's rows. ``distance`` is how far,
    # as a share, the node would have to be behind its class to be called slow.
    judged = frames.nodes[frames.nodes["judged"].gt(0)]
    if judged.empty:
        return "no node was judged"
    if frames.campaign["missing"] and unjudged(frames):
        return "a node was not judged, and records are missing"
    rows = judged["judged"].sum()
    disturbed = judged["disturbed"].sum()
    if disturbed > MOST_DISTURBED * rows:
        return f"{disturbed} of {rows} compared rows were disturbed by other activity"
    distance = judged["distance"].max()
    if distance > MOST_DISTANCE:
        return (
            f"among {plural(len(judged), 'node')} that vary as much, a node would be called slow from"
            f" {math.ceil(100 * distance)} % behind on"
        )
    return ""


def promise_lines(frames: CampaignFrames) -> list[str]:
    """Return whether all promises are kept, then a line on each promise; nothing without promises."""
    # Promise -> verdict -> nodes with this verdict.
    nodes_of: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for entry in frames.campaign["promises"]:
        nodes_of[entry["promise"]][entry["verdict"]].append(entry["node"] or "any node")
    lines = []
    for promise, verdicts in nodes_of.items():
        parts = [f"{text} on {counted(nodes)}" for text, nodes in verdicts.items()]
        lines.append(f"{promise}: {'; '.join(parts)}.")
    if lines:
        _, verdict = judge_promises(frames)
        lines.insert(0, f"Promises: {verdict}.")
    return [typeset(line) for line in lines]


def judge_promises(frames: CampaignFrames) -> tuple[ExitCode, str]:
    """Return the exit code of ``fleet --fail-on promise``, and the verdict on all promised values in words."""
    verdicts = [entry["verdict"] for entry in frames.campaign["promises"]]
    if not verdicts:
        return ExitCode.CANNOT_TELL, "cannot tell, the site file of the run promises no value"
    values = plural(len(verdicts), "value")
    missed = sum(text.startswith("missed") for text in verdicts)
    if missed:
        return ExitCode.DIFFERENT, f"failed, {missed} of {values} missed"
    if unknown := len(verdicts) - verdicts.count("kept"):
        return ExitCode.CANNOT_TELL, f"cannot tell, {unknown} of {values} undecided or not measured"
    return ExitCode.GOOD, f"passed, {values} kept"


def lone_limits(frames: CampaignFrames) -> list[str]:
    """Return a sentence on each limit of a node that other nodes of its class do not have."""
    limits = []
    for text in frames.nodes["limits"]:
        limits += json.loads(text or "[]")
    return limits


def slow_nodes(frames: CampaignFrames) -> list[str]:
    """Return the slow nodes."""
    return sorted(set(lines_of_slow_nodes(frames)["name"]), key=natural)


def lines_of_slow_nodes(frames: CampaignFrames) -> pd.DataFrame:
    """Return the lines of ``frames.fleet`` on slow nodes, not those on other things.

    A line with a ``table`` is on a node whose pairs of nodes are slow in this table.
    """
    return frames.fleet[frames.fleet["kind"].eq("node")]


# -- page one


def slow_paragraphs(frames: CampaignFrames) -> list[str]:
    """Return the paragraphs of page one on the slow nodes of a campaign; none for a single node.

    They say which nodes are slow and why, or that none is; how many slow rows were disturbed; which nodes could
    not be judged; and the rule.
    """
    promised = promise_lines(frames)
    if len(frames.nodes) < 2:
        return promised
    paragraphs = [*promised, *lone_limits(frames), *slow_gpus(frames)]
    for reason, nodes in alike(frames):
        paragraphs.append(f"{slow_sentence(nodes)} {reason}".strip())
    if lines_of_slow_nodes(frames).empty:
        paragraphs.append(all_clear(frames))
    paragraphs += [disturbed_slow_rows(frames), unjudged(frames), rule_sentence(frames)]
    return [typeset(text) for text in paragraphs if text]


def disturbed_slow_rows(frames: CampaignFrames) -> str:
    """Return a sentence on how many rows of slow nodes were disturbed; empty if none was."""
    slow = frames.rows[frames.rows["is_slow"]]
    count = schema.is_disturbed(slow, frames.warnings).sum()
    return f"Slow rows that were disturbed: {count} of {len(slow)}." if count else ""


def rule_sentence(frames: CampaignFrames) -> str:
    """Return when a node is called slow, and what a verdict takes."""
    rule = frames.campaign["rule"]
    return typeset(
        f"A node is slow in a row where the whole interval of its median is more than {rule['beyond']:.0%}"
        f" behind its class, and a significance test agrees; a verdict needs {rule['nodes']} nodes of a class"
        f" and {rule['repetitions']} repetitions of a row."
    )


def all_clear(frames: CampaignFrames) -> str:
    """Return that no node is slow and what would have been found, or why this is unknown."""
    judged = frames.nodes[frames.nodes["judged"].gt(0)]
    if judged.empty:
        return ""
    if reason := why_unknown(frames):
        return f"Whether a node is slow cannot be told: {reason}."
    text = f"Of {plural(len(judged), 'node')} that were judged none is slow in any row"
    if judged["distance"].notna().any():
        behind = math.ceil(1000 * judged["distance"].max()) / 10  # %, rounded up
        text += f"; a node that is {behind} % behind in every row would have been found"
    return f"{text}."


def alike(frames: CampaignFrames) -> list[tuple[str, list[Line]]]:
    """Return (reasons in words, nodes) for each group of slow nodes with the same subsystem, table and reasons.

    The table is empty unless the links of the nodes are slow. The group of the slowest node comes first.
    """
    nodes = lines_of_slow_nodes(frames).sort_values("behind", ascending=False, kind="stable")
    groups: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
    for node in schema.lines(nodes):
        groups[node.subsystem, node.table, " ".join(json.loads(node.reasons or "[]"))].append(node)
    return [(reason, lines) for (_, _, reason), lines in groups.items()]


def slow_sentence(nodes: Sequence[Line]) -> str:
    """Return the sentence on nodes that are slow in one subsystem, or whose links are slow in one table."""
    first = nodes[0]
    names = counted(dict.fromkeys(node.name for node in nodes))
    low = min(node.behind_low for node in nodes)
    high = max(node.behind_high for node in nodes)
    if first.table:
        quantity = BY_NAME[first.table].quantity.lower()
        return f"Slow: {names}, {quantity} of links {low:.1%} to {high:.1%} behind others."
    resource = SUBSYSTEMS[first.subsystem].named
    if len(nodes) > 1:
        return f"Slow: {names}, {resource} {low:.1%} to {high:.1%} behind their class."
    return (
        f"Slow: {names}, {resource} {first.behind:.1%} behind its class"
        f" ({low:.1%} to {high:.1%}, in {first.rows} of {plural(first.judged, 'row')})."
    )


def slow_gpus(frames: CampaignFrames) -> Iterator[str]:
    """Yield a sentence for each GPU that is slower than the other GPUs of its node."""
    # Such a warning has the name of the GPU as ``subject``, and as ``amount`` the share by which it
    # is slower.
    node_of = frames.rows.drop_duplicates("point").set_index("point")["node"]
    warnings = frames.warnings[frames.warnings["code"].eq("slow-gpu")]
    of_nodes = warnings.assign(node=warnings["point"].map(node_of))
    gpus = of_nodes.groupby(["node", "subject"], as_index=False)["amount"].agg(["max", "size"])
    ordered = gpus.sort_values(["node", "subject"], key=lambda names: names.map(natural))
    for gpu in schema.lines(ordered):
        yield (
            f"{gpu.subject} of {gpu.node} is up to {gpu.max:.1%} slower than the other GPUs of the"
            f" node, in {plural(gpu.size, 'row')}."
        )


def unjudged(frames: CampaignFrames) -> str:
    """Return a sentence on the nodes without a verdict; empty if every node has one."""
    # ``any`` stands for any node of a class: it is no node that could be judged.
    is_unjudged = frames.nodes["judged"].eq(0) & frames.nodes["node"].ne("any")
    names = sorted(frames.nodes.loc[is_unjudged, "node"], key=natural)
    if not names:
        return ""
    return f"Not judged: {counted(names)}."


# -- the slow rows


def slow_table(frames: CampaignFrames) -> dict[str, Any]:
    """Return the table of slow rows, the slowest node first; empty for a campaign of one node.

    The keys are:

    - ``headings``: headings of the columns.
    - ``lines``: cells of each line.
    - ``breaks``: numbers of the lines at which another node or resource begins.
    - ``remark``: a sentence on the rows that are left out; empty if all rows are shown.
    """
    if len(frames.nodes) < 2:
        return {}
    lines = [line_of(row) for row in slow_rows(frames)]
    remark = ""
    if len(lines) > MOST_LINES:
        remark = f"The first {MOST_LINES} of {len(lines)} slow rows; tables/nodes.csv has all."
    kept = lines[:MOST_LINES]
    breaks = []
    for place in range(1, len(kept)):
        if kept[place][:2] != kept[place - 1][:2]:  # node and resource, see ``HEADINGS``
            breaks.append(place)
    return {"headings": HEADINGS, "lines": kept, "breaks": breaks, "remark": remark}


def slow_rows(frames: CampaignFrames) -> Iterator[Line]:
    """Return the slow rows by node, the slowest node first, and the slowest row of each node first.

    Rows of pairs of nodes are left out.
    """
    nodes = lines_of_slow_nodes(frames)
    nodes = nodes[nodes["table"].eq("")].reset_index(drop=True)
    # The slowest node is first in ``frames.fleet``: the number of a node's line is its place.
    order = nodes.assign(node=nodes["name"], order=nodes.index)[["node", "subsystem", "order"]]
    slow = frames.rows[frames.rows["is_slow"]].merge(order, on=["node", "subsystem"])
    in_order = slow.sort_values(["order", "behind"], ascending=[True, False], kind="stable")
    return schema.lines(in_order)


def line_of(row: Line) -> list[str]:
    """Return the texts of a slow row, in the order of ``HEADINGS``."""
    # The table with the unit in which the value is readable.
    table = Labels.of(row).table.fitted([row.value])
    labels = Labels(table)
    # A row is behind its class by its median, also where a layout prints means (``value``). Compute
    # the median of the class from it: the factor is the node's median divided by that of its class.
    factor = 1 - row.behind
    if BY_NAME[row.table].lower_is_better:
        factor = 1 + row.behind
    return [
        row.node,
        SUBSYSTEMS[row.subsystem].title,
        labels.point(row, variant=True),
        labels.quantity(row.value),
        labels.quantity(row.median / factor),
        percent(row.behind),
        f"{percent(row.behind_low)} to {percent(row.behind_high)}",
    ]
