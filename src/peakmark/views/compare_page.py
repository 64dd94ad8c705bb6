"""The page of ``peakmark compare --html``: campaigns against the first one, with the verdicts of the text.

What differs comes first, then what is level, then what could not be judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from peakmark.formatting import date, listed, plural
from peakmark.output import plain
from peakmark.tools.tables import BY_NAME
from peakmark.views import compare, html_page
from peakmark.views.compare import CLAIMS, DRIFTS, CampaignComparison
from peakmark.views.datasets import Dataset, describe

DIFFERS, LEVEL, UNJUDGED = "What differs", "No difference shown", "Not judged"
"""Headings of the groups of rows, in their order."""
COLOURS = {
    "better": "trust-ok",
    "worse": "trust-no",
    "better or drift": "trust-care",
    "worse or drift": "trust-care",
}
"""Verdict -> class of its text and its bar. Other verdicts have no class."""
WIDTH = 200
"""Width of a bar's picture, in units of the picture; the speed of A is in the middle."""
LEAST, MOST = 1.1, 4.0
"""Smallest and largest factor between the speeds at the ends of the bars."""
TEXTS = 4
"""Largest number of values of a fact in one campaign that are listed."""


def render(comparisons: Sequence[CampaignComparison]) -> bytes:
    """Return the page.

    Args:
        comparisons: at least one. All have the same campaign A.
    """
    return html_page.render("compare.html.j2", build(comparisons))


def build(comparisons: Sequence[CampaignComparison]) -> dict[str, Any]:
    """Return the content of the page. The arguments are those of ``render``."""
    first = comparisons[0]
    reach = reach_of(comparisons)
    groups: dict[str, list[Any]] = {DIFFERS: [], LEVEL: [], UNJUDGED: []}
    for pairs in rows_of(comparisons):
        line = line_of(pairs, first.rules.tolerance, reach)
        groups[group_of(pairs)].append(line)
    before = plain(first.before.name)
    names = [plain(found.after.name) for found in comparisons]
    return {
        "title": listed([before, *names]),
        "before": before,
        "names": names,
        "headings": [f"{before} (A)", *(f"{name} (B)" for name in names)],
        "summaries": [found.sentences for found in comparisons],
        "campaigns": campaign_lines(comparisons),
        "facts": fact_lines(comparisons),
        "hint": compare.HINT,
        "notes": [found.remarks for found in comparisons],
        "percent": f"{first.percent:g}",
        "tolerance": f"{100 * first.rules.tolerance:g}",
        "ends": [f"{100 * math.expm1(end):+.0f} %" for end in (-reach, reach)],
        "width": WIDTH,
        "groups": groups,
    }


# -- the campaigns


def campaign_lines(comparisons: Sequence[CampaignComparison]) -> list[list[str]]:
    """Return a line for each property of the campaigns, with a text for each campaign."""
    sides = [comparisons[0].before, *(found.after for found in comparisons)]
    return [
        ["Measured", *(measured_when(side) for side in sides)],
        ["Rows", *(str(len(side.rows)) for side in sides)],
        ["Nodes", *(", ".join(side.nodes) for side in sides)],
    ]


def measured_when(side: Dataset) -> str:
    """Return when a campaign began."""
    if not side.starts:
        return "not known"
    began = datetime.fromtimestamp(side.starts[0], UTC)
    return f"{date(began)}, {began:%H:%M} UTC"


def fact_lines(comparisons: Sequence[CampaignComparison]) -> list[list[str]]:
    """Return a line for each fact that differs: title, text in each campaign, rows without a verdict."""
    titles: dict[str, None] = {}
    for found in comparisons:
        titles |= dict.fromkeys(found.facts)
    sides = [comparisons[0].before, *(found.after for found in comparisons)]
    lines = []
    for title in titles:
        texts = [side.machine.get(title, "") for side in sides]
        if len(set(texts)) == 1:
            texts = [texts_in_rows(side, title) for side in sides]
        stopped = []
        for found in comparisons:
            count = stopped_by(found, title)
            if count:
                of_campaign = f" of {found.after.name}" if len(comparisons) > 1 else ""
                stopped.append(f"{plural(count, 'row')}{of_campaign}")
        lines.append([title or "equality of the nodes", *texts, ", ".join(stopped)])
    return lines


def texts_in_rows(side: Dataset, title: str) -> str:
    """Return the different texts that a fact has in the rows of a campaign."""
    if not title:
        return ", ".join(sorted(set(side.rows["unequal_nodes"]) - {""}))
    known = dict.fromkeys(facts[title] for facts in side.rows["facts"] if title in facts)
    texts = list(known)
    if len(texts) > TEXTS:
        texts[TEXTS:] = [f"{len(texts) - TEXTS} more"]
    return ", ".join(texts)


def stopped_by(found: CampaignComparison, title: str) -> int:
    """Return the number of rows that have no verdict because a fact differs."""
    if title in found.rules.changed:
        return 0
    not_alike = found.pairs.loc[~found.pairs["is_alike"], "differ"]
    return sum(title in differ for differ in not_alike)


# -- the rows


def rows_of(comparisons: Sequence[CampaignComparison]) -> list[list[Any]]:
    """Return the rows with their pair in each comparison, the largest change first.

    The pair is None if a comparison lacks the row.
    """
    found: dict[int, list[Any]] = {}
    for number, comparison in enumerate(comparisons):
        for pair in comparison.pairs.itertuples():
            row: Any = pair
            found.setdefault(row.row_a, [None] * len(comparisons))[number] = row
    return sorted(found.values(), key=largest_change, reverse=True)


def largest_change(pairs: Sequence[Any]) -> float:
    """Return the largest change of a row; 0 if none is known."""
    changes = [abs(pair.change) for pair in pairs if pair is not None]
    return max((change for change in changes if not math.isnan(change)), default=0.0)


def group_of(pairs: Sequence[Any]) -> str:
    """Return the heading of the group to which a row belongs."""
    verdicts = {pair.verdict for pair in pairs if pair is not None}
    if verdicts & {*CLAIMS, *DRIFTS}:
        return DIFFERS
    return UNJUDGED if verdicts <= {*compare.UNJUDGED} else LEVEL


def line_of(pairs: Sequence[Any], tolerance: float, reach: float) -> dict[str, Any]:
    """Return what the page shows of a row.

    Args:
        pairs: the row in each comparison, see ``rows_of``.
        tolerance: relative difference that gets no verdict.
        reach: see ``reach_of``.
    """
    known = [pair for pair in pairs if pair is not None]
    first = known[0]
    return {
        "name": describe(first),
        "value": compare.in_units(first.value_a, BY_NAME[first.table].unit),
        "doubt": first.severity_a,
        "others": [other_of(pair, tolerance, reach) for pair in pairs],
    }


def other_of(pair: Any, tolerance: float, reach: float) -> dict[str, Any] | None:
    """Return what the page shows of B in one comparison; None if the row is not compared there.

    Args:
        pair: the row in both campaigns; None if the comparison does not have it.
        tolerance: relative difference that gets no verdict.
        reach: logarithm of the factor at the ends of the bars.
    """
    if pair is None:
        return None
    table = BY_NAME[pair.table]
    speed = math.log(compare.speed_of(table, math.exp(pair.change)))
    shown = {
        "value": compare.in_units(pair.value_b, table.unit),
        "doubt": pair.severity_b,
        "speed": speed,
        "change": compare.change_of(pair),
        "interval": compare.interval_of(pair),
        "runs": f"n {pair.n_a}, {pair.n_b}",
        "verdict": pair.verdict,
        "colour": COLOURS.get(pair.verdict, "quiet"),
        "bar": None,
    }
    if not math.isnan(pair.p):
        ends = [speed - pair.half, speed + pair.half]
        band = math.log1p(tolerance)
        shown["bar"] = {
            "change": position(speed, reach),
            "low": position(ends[0], reach),
            "high": position(ends[1], reach),
            "band": [position(-band, reach), position(band, reach)],
        }
    return shown


def reach_of(comparisons: Sequence[CampaignComparison]) -> float:
    """Return the logarithm of the factor at the ends of the bars, from the largest end of an interval."""
    reach = math.log(LEAST)
    for found in comparisons:
        judged = found.pairs[found.pairs["p"].notna()]
        if len(judged):
            reach = max(reach, float((judged["change"].abs() + judged["half"]).max()))
    return min(reach, math.log(MOST))


def position(speed: float, reach: float) -> float:
    """Return the place of a speed in a bar's picture, from the logarithm of its ratio to A's.

    A speed beyond the ends is at the end.
    """
    share = max(-1.0, min(1.0, speed / reach))
    return round(WIDTH / 2 * (1 + share), 1)
