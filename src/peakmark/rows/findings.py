"""Write findings: sentences on what the rows of a table show.

Sentences on causes and comparisons rest on undisturbed rows, or say how many of their rows are disturbed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from peakmark.catalogue import TOGETHER
from peakmark.formatting import capitalised, counted, listed, node_or_link, percent, plural
from peakmark.messages import message
from peakmark.rows import schema
from peakmark.rows.differences import CHOICES, TESTED, judged, pairs_of_table, speeds_of_rows
from peakmark.rows.fleet import DELTA, MANY, typical_rows
from peakmark.rows.labels import Labels
from peakmark.tools.tables import BY_NAME, TABLES, Table

TWICE = 2.0
"""Smallest factor that sentences state as a multiple, such as *2.1 times*, instead of a percentage."""
FEW = 3
"""Workloads with at most this many rows get no sentence on their best and worst configuration."""
MOST = 1.05
"""Share of the limit above which a row is wrong."""
NAMED = 8
"""Largest number of slow nodes that a sentence names."""

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
    compared = compare(rows_of_tables, frames.runs)
    lines: list[dict[str, Any]] = []
    for usual in TABLES:
        if usual.name not in rows_of_tables:
            continue
        rows = rows_of_tables[usual.name]
        table = usual.fitted(rows["value"].dropna())
        labels = Labels(table)
        usable = rows[is_usable(rows)]
        found = [
            *extremes(labels, rows),
            *comparisons(table, compared.get(table.name, pd.DataFrame())),
            *limit_shares(labels, usable[usable["disturbances"].eq("")]),
            *machine_sentences(usable[usable["is_own"]]),
            *node_sentences(frames.rows[frames.rows["table"].eq(table.name)], labels),
            *link_sentences(frames, labels),
        ]
        lines += [{"table": table.name, **line} for line in found]
    return schema.typed("findings", pd.DataFrame(lines))


def compare(rows_of_tables: dict[Any, pd.DataFrame], runs: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    """Return table -> its judged pairs. All tables share the probability of a false difference."""
    speeds = speeds_of_rows(runs)
    frames = []
    for name, rows in rows_of_tables.items():
        calm = rows[is_usable(rows) & rows["disturbances"].eq("")]
        if name in BY_NAME and calm["is_own"].any():
            frames.append(pairs_of_table(calm, speeds, Labels(BY_NAME[name])).assign(table=name))
    pairs = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if pairs.empty:
        return {}
    return dict(list(judged(pairs).groupby("table", sort=False)))


def add_disturbances(rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``disturbances``: codes of what may have changed the value of each row."""
    codes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for warning in schema.lines(warnings[schema.is_disturbance(warnings)]):
        codes[warning.point, warning.about].append(warning.code)
    texts = []
    for point, instrument in rows[["point", "instrument"]].itertuples(index=False):
        texts.append(" ".join([*codes[point, ""], *codes[point, instrument]]))
    return rows.assign(disturbances=texts)


def is_usable(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows that may be compared with others: they have values, and none is wrong.

    A row above a limit from the site file is usable, because the limit itself may be wrong.
    """
    is_tolerated = rows["limit_origin"].eq("site") & rows["wrong_codes"].eq("above-limit")
    return rows["n"].gt(0) & (rows["wrong_codes"].eq("") | is_tolerated)


# -- comparisons


def comparisons(table: Table, pairs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each comparison and result; groups with the same result share a sentence.

    Args:
        table: table of the pairs.
        pairs: pairs of the table, as ``differences.judged`` returns them.
    """
    if pairs.empty:
        return
    clear = pairs.dropna(subset="direction")
    for _, same in clear.groupby([*CHOICES, "direction", "certainty"], sort=False):
        yield sentence(table, same)


def sentence(table: Table, pairs: pd.DataFrame) -> dict[str, Any]:
    """Return the line of ``findings`` for pairs with the same choices, direction and certainty."""
    pair = pairs.iloc[0]
    better, worse, factors = pair["first"], pair["second"], pairs["factor"]
    if pair["direction"] < 0:
        better, worse, factors = worse, better, 1 / factors
    where = covered_points(pairs)
    # The report's method says that other differences hold in every repetition.
    if pair["n"] < TESTED:
        where += f", {pair['certainty']}"
    if pair["direction"] == 0:
        text = f"{better} and {worse} are level{where}"
    elif table.lower_is_better:
        text = f"{worse} {longer(worse, factors)} {better}{where}"
    elif pair["topic"] == "Reference" and pair["direction"] < 0:
        # Keep peakmark's kernel as the subject of the sentence.
        text = f"{worse} is {percents(1 - 1 / factors)} slower than {better}{where}"
    else:
        text = f"{better} {faster(better, factors)} {worse}{where}"
    if pair["working_set"]:
        text = f"{pair['working_set']}, {text}"
    return {
        "topic": pair["topic"],
        "better": better,
        "worse": worse,
        "factor_low": factors.min(),
        "factor_high": factors.max(),
        "certainty": pair["certainty"],
        "points": json.dumps([*pairs["point"]], ensure_ascii=False),
        "text": f"{capitalised(text)}.",
    }


def covered_points(pairs: pd.DataFrame) -> str:
    """Return the part of a sentence that says at which points it holds.

    Examples are `` at all 7 points``, `` at 64 KiB and 1 MiB`` and `` at 2 of 7 points``.
    """
    total = pairs["total"].iloc[0]
    if len(pairs) == total:
        return {1: "", 2: " at both points"}.get(total, f" at all {total} points")
    names = pairs["shared"].unique().tolist()
    if all(names):
        preposition = "for" if pairs["topic"].iloc[0] != "Workloads" else "at"
        return f" {preposition} {listed(names)}"
    return f" at {len(pairs)} of {total} points"


def faster(subject: str, factors: pd.Series) -> str:
    """Return ``is 12 to 31 % faster than``, ``are 2.1 times as fast as``."""
    verb = "are" if is_plural(subject) else "is"
    if factors.max() < TWICE:
        return f"{verb} {percents(factors - 1)} faster than"
    return f"{verb} {times(factors)} as fast as"


def longer(subject: str, factors: pd.Series) -> str:
    """Return ``takes 12 to 31 % longer than``, ``take 2.1 times as long as``."""
    verb = "take" if is_plural(subject) else "takes"
    if factors.max() < TWICE:
        return f"{verb} {percents(factors - 1)} longer than"
    return f"{verb} {times(factors)} as long as"


def is_plural(subject: str) -> bool:
    """Return whether the name of a choice is plural, such as ``2 threads``."""
    return subject[:1].isdigit() and subject.endswith("s")


def percents(shares: pd.Series) -> str:
    """Return ``12 %`` or ``12 to 31 %``."""
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{value_range(low, high)} %"


def times(factors: pd.Series) -> str:
    """Return ``2.1 times`` or ``2.1 to 3.4 times``."""
    low, high = f"{min(factors):.2g}", f"{max(factors):.2g}"
    if max(factors) >= 100:
        low, high = f"{min(factors):.0f}", f"{max(factors):.0f}"
    return f"{value_range(low, high)} times"


def value_range(low: str, high: str) -> str:
    """Return ``12 to 31``, or one number if both are equal."""
    return low if low == high else f"{low} to {high}"


# -- single rows


def extremes(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the best and worst configuration of each workload and working set.

    It leaves out wrong and disturbed rows, and gives their number.
    """
    measured = rows[rows["is_own"] & rows["n"].gt(0)]
    lines = list(schema.lines(measured))
    names = pd.Series(
        [labels.line(row, lines, block=False) for row in lines], index=measured.index, dtype="str"
    )
    is_sound = is_usable(measured) & measured["disturbances"].eq("")
    left_out = names[~is_sound].value_counts()
    for name, group in measured[is_sound].groupby(names[is_sound], sort=False):
        if len(group) <= FEW:
            continue
        ordered = list(schema.lines(group.sort_values("median", kind="stable")))
        worst, best = ordered[0], ordered[-1]
        if labels.table.lower_is_better:
            worst, best = best, worst
        text = (
            f"{name}: best {labels.quantity(best.median)} ({labels.place(best, ordered)}),"
            f" worst {labels.quantity(worst.median)} ({labels.place(worst, ordered)})"
        )
        if name in left_out:
            text += f"; {plural(int(left_out[name]), 'wrong or disturbed row')} left out"
        yield {
            "topic": "Best and worst",
            "better": labels.place(best, ordered),
            "worse": labels.place(worst, ordered),
            "points": json.dumps([best.point, worst.point], ensure_ascii=False),
            "text": f"{text}.",
        }


def limit_shares(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each program and cache level: lowest and highest share of the limit."""
    is_judged = rows["is_own"] | rows["is_comparable"]
    possible = rows[is_judged & rows["efficiency"].le(MOST)]
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


def machine_sentences(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each reason why the machine's limit is lower than its CPU would allow."""
    for text in rows.loc[rows["limit_finding"].ne(""), "limit_finding"].unique():
        yield {"topic": "Machine", "points": "[]", "text": f"{capitalised(text)}."}


# -- nodes and links


def node_sentences(rows: pd.DataFrame, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the spread over the nodes of a table, and one on the slow nodes.

    A table with at most ``fleet.MANY`` nodes has neither, as the table shows them one by one.
    """
    single = rows[schema.is_usable(rows) & ~schema.is_pair(rows)]
    if single["node"].nunique() <= MANY:
        return
    calm = single[single["disturbances"].eq("")]
    values = calm.groupby(["node_class", "place"], sort=False)["value"]
    spread = (values.max() - values.min()) / values.median()
    spread = spread[values.size() > 1].sort_values(kind="stable")
    if len(spread):
        lines = {(row.node_class, row.place): row for row in schema.lines(single)}
        narrowest, widest = lines[spread.index[0]], lines[spread.index[-1]]
        text = f"The nodes spread by {percents(spread.iloc[:1])} in {label_of(narrowest, labels)}"
        if len(spread) > 1:
            text += f" to {percents(spread.iloc[-1:])} in {label_of(widest, labels)}"
        yield {"topic": "Nodes", "points": "[]", "text": f"{text}."}
    slow = single[single["is_slow"]]
    if slow.empty:
        return
    of_nodes = slow.groupby("node")["behind"].agg(["size", "max"])
    worst = of_nodes.sort_values("max", ascending=False, kind="stable")
    names = []
    for node, of_node in worst.iterrows():
        rows_of = plural(int(of_node["size"]), "row")
        names.append(f"{node} ({rows_of}, up to {100 * of_node['max']:.0f} %)")
    text = f"Slower than their class: {counted(names, NAMED)}.{on_disturbed(slow)}"
    yield {"topic": "Apart", "points": "[]", "text": text}


def on_disturbed(rows: pd.DataFrame) -> str:
    """Return a sentence on the disturbed rows behind another sentence; empty if there is none."""
    count = int(rows["disturbances"].ne("").sum())
    if not count:
        return ""
    return f" Disturbed rows behind it: {count} of {len(rows)}."


def label_of(row: Line, labels: Labels) -> str:
    """Return the label of a row's point with the variant and without the node."""
    return labels.point(row, variant=True, node=False)


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
        yield {"topic": "Links", "points": "[]", "text": text}
    if worst.empty:
        pairs = measured[points.eq(points.iloc[0])]["node"]
        nodes = set("+".join(pairs).split("+"))
        found = message("no-slow-link", nodes=len(nodes), links=len(pairs), beyond=DELTA)
        text = f"{found.full_sentence}{on_disturbed(measured)}"
        yield {"topic": "Links", "points": "[]", "text": text}
