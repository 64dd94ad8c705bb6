"""Write findings: sentences on what the rows of a table show.

Sentences on causes and comparisons rest on undisturbed rows, or say how many of their rows are disturbed.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from peakmark.catalogue import TOGETHER
from peakmark.formatting import node_or_link, percent, plural
from peakmark.messages import message
from peakmark.rows import comparisons, placements, schema
from peakmark.rows.fleet import DELTA, typical_rows
from peakmark.rows.labels import Labels
from peakmark.rows.point_limits import ABOVE
from peakmark.tools.tables import BY_NAME, TABLES

NO_PAIRS = pd.DataFrame(columns=comparisons.CHOICES)
FEW = 3
"""Workloads with at most this many rows get no sentence on their best and worst configuration."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


def find(frames: schema.CampaignFrames) -> pd.DataFrame:
    """Return the frame ``findings`` of a campaign.

    Args:
        frames: frames of the campaign; all but ``findings`` are used.
    """
    frames = replace(frames, rows=add_disturbances(frames.rows, frames.warnings))
    rows_of_tables = {
        name: typical_rows(rows) for name, rows in frames.rows.groupby("table", sort=False)
    }
    compared = compare(rows_of_tables)
    lines: list[dict[str, Any]] = []
    for usual in TABLES:
        if usual.name not in rows_of_tables:
            continue
        rows = rows_of_tables[usual.name]
        table = usual.fitted(rows["value"].dropna())
        labels = Labels(table)
        usable = rows[schema.is_right(rows)]
        found = [
            *extremes(labels, rows),
            *comparisons.sentences(table, compared.get(table.name, NO_PAIRS)),
            *limit_shares(labels, usable[usable["disturbances"].eq("")]),
            *link_sentences(frames, labels),
        ]
        # A finding on a link names no points.
        lines += [{"table": table.name, "points": "[]", **line} for line in found]
    for note in placements.describe(frames):
        lines.append({"topic": "Placements", "text": note.full_sentence})
    return schema.typed("findings", pd.DataFrame(lines))


def compare(rows_of_tables: dict[Any, pd.DataFrame]) -> dict[Any, pd.DataFrame]:
    """Return table -> its judged pairs. The probability of a false difference is that of all tables together."""
    found = []
    for name, rows in rows_of_tables.items():
        calm = rows[schema.is_right(rows) & rows["disturbances"].eq("")]
        if name in BY_NAME and calm["is_own"].any():
            for pairs in comparisons.pairs_of_table(calm, Labels(BY_NAME[name])):
                found.append(pairs.assign(table=name))
    if not found:
        return {}
    return dict(list(comparisons.judged(pd.concat(found, ignore_index=True)).groupby("table")))


def add_disturbances(rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``disturbances``: codes of the disturbances that may have changed a row's value."""
    codes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for warning in schema.lines(warnings[schema.is_disturbance(warnings)]):
        codes[warning.point, warning.about].append(warning.code)
    texts = []
    for point, instrument in rows[["point", "instrument"]].itertuples(index=False):
        texts.append(" ".join([*codes[point, ""], *codes[point, instrument]]))
    return rows.assign(disturbances=texts)


# -- single rows


def extremes(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the best and worst configuration of each workload and working set.

    It leaves out wrong and disturbed rows, and gives their number.
    """
    measured = rows[rows["is_own"] & rows["n"].gt(0)]
    is_sound = schema.is_right(measured) & measured["disturbances"].eq("")
    lines = list(schema.lines(measured))
    sound: dict[str, list[Line]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for row, is_sound_row in zip(lines, is_sound, strict=True):
        name = labels.line(row, lines, block=False)
        if is_sound_row:
            sound[name].append(row)
        else:
            left_out[name] += 1
    for name, members in sound.items():
        if len(members) > FEW:
            yield best_and_worst(labels, name, members, left_out[name])


def best_and_worst(
    labels: Labels, name: str, rows: Sequence[Line], left_out: int
) -> dict[str, Any]:
    """Return the line of ``findings`` on the best and worst of the rows with one name.

    Args:
        labels: labels of the table.
        name: workload and working set of the rows.
        rows: the rows that are compared.
        left_out: number of wrong and disturbed rows with this name.
    """
    ordered = sorted(rows, key=lambda row: row.median)
    worst, best = ordered[0], ordered[-1]
    if labels.table.lower_is_better:
        worst, best = best, worst
    best_place, worst_place = labels.place(best, ordered), labels.place(worst, ordered)
    text = (
        f"{name}: best {labels.quantity(best.median)} ({best_place}),"
        f" worst {labels.quantity(worst.median)} ({worst_place})"
    )
    if left_out:
        text += f"; {plural(left_out, 'wrong or disturbed row')} left out"
    return {
        "topic": "Best and worst",
        "better": best_place,
        "worse": worst_place,
        "points": json.dumps([best.point, worst.point], ensure_ascii=False),
        "text": f"{text}.",
    }


def limit_shares(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each program and cache level: lowest and highest share of the limit."""
    is_judged = rows["is_own"] | rows["is_comparable"]
    possible = rows[is_judged & rows["efficiency"].le(ABOVE)]
    for program in labels.table.series:
        of_program = possible[possible["instrument"].eq(program.instrument)]
        for level, members in of_program.groupby("cache_level", sort=False):
            ordered = list(schema.lines(members.sort_values("efficiency", kind="stable")))
            low, high = ordered[0], ordered[-1]
            prefix = f"In {level!s}, " if level else ""
            reached = f"{percent(low.efficiency)} % of the limit"
            if len(ordered) > 1:
                reached = (
                    f"{percent(low.efficiency)} ({labels.point(low, variant=True)}) to"
                    f" {percent(high.efficiency)} % of the limit ({labels.point(high, variant=True)})"
                )
            yield {
                "topic": "Limit",
                "better": program.heading,
                "factor_low": low.efficiency,
                "factor_high": high.efficiency,
                "points": json.dumps([row.point for row in ordered], ensure_ascii=False),
                "text": f"{prefix}{program.heading} reaches {reached}.",
            }


# -- links


def on_disturbed(rows: pd.DataFrame) -> str:
    """Return a sentence on the disturbed rows behind another sentence; empty if there is none."""
    count = int(rows["disturbances"].ne("").sum())
    if not count:
        return ""
    return f" Disturbed rows behind it: {count} of {len(rows)}."


def link_sentences(frames: schema.CampaignFrames, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on each slow node and pair of nodes.

    The sentence gives the numbers of the point at which it is furthest behind. If nothing is
    slow, one sentence says so.
    """
    name = labels.table.name
    rows = frames.rows[
        frames.rows["table"].eq(name) & schema.is_pair(frames.rows) & frames.rows["is_own"]
    ]
    measured = rows[rows["n"].gt(0) & rows["variant"].ne(TOGETHER)]
    if measured.empty:
        return
    points = measured["place"]
    line_at = dict(zip(points, schema.lines(measured), strict=True))
    slow = frames.fleet[frames.fleet["table"].eq(name)]
    ordered = slow.sort_values("behind", ascending=False, kind="stable")
    worst = ordered.drop_duplicates(["kind", "name"])
    rows_of_part = slow.groupby(["kind", "name"]).size()
    for part in schema.lines(worst):
        found = message(
            "slow-link",
            case=part.kind,
            name=node_or_link(part.name),
            behind=part.behind,
            low=part.behind_low,
            high=part.behind_high,
            pairs=part.pairs,
            row=labels.point(line_at[part.point], node=False),
            rows=int(rows_of_part[part.kind, part.name]),
            of=points.nunique(),
        )
        of_place = measured[points.eq(part.point)]
        text = f"{found.full_sentence}{on_disturbed(of_place)}"
        yield {"topic": "Links", "text": text}
    if worst.empty:
        pairs = measured[points.eq(points.iloc[0])]["node"]
        nodes = set("+".join(pairs).split("+"))
        found = message("no-slow-link", nodes=len(nodes), links=len(pairs), beyond=DELTA)
        text = f"{found.full_sentence}{on_disturbed(measured)}"
        yield {"topic": "Links", "text": text}
