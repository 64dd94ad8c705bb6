"""Write findings: sentences on what the rows of a table show, in the words of the report's layout.

Sentences on causes and comparisons rest on undisturbed rows. No sentence uses a row that is wrong.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from peakmark.catalogue import SHAPES, TOGETHER
from peakmark.config.layouts import Layout
from peakmark.formatting import capitalised, listed, node_or_link, percent, plural, value_range
from peakmark.messages import message
from peakmark.rows import comparisons, placements, schema
from peakmark.rows.comparisons import INNER, times, words_for
from peakmark.rows.fleet import DELTA
from peakmark.rows.labels import MANY, Labels, labels_of, rows_of_typical_node, table_of
from peakmark.rows.schema import Line
from peakmark.tools.tables import BY_NAME, Table

NO_PAIRS = pd.DataFrame(columns=["of_workload", *comparisons.CHOICES])
"""Frame without pairs, with the columns that ``comparisons.sentences`` reads."""
FEW_ROWS = 3
"""Workloads with at most this many rows have no sentence on how far their values differ."""
Tables = dict[str, tuple[Labels, pd.DataFrame]]
"""Name of a table -> (labels, rows with the columns of ``comparisons.add_words``)."""
WAYS = {"R": "Reading", "W": "Writing", "RW": "Copying"}
"""Workload without its last letter, which is the order of access -> the name of both orders together."""


def find(frames: schema.CampaignFrames, layout: Layout | None = None) -> pd.DataFrame:
    """Return the frame ``findings`` of a campaign.

    Args:
        frames: frames of the campaign; all but ``findings`` are used.
        layout: layout of the report, whose words the sentences use.
    """
    is_disturbed = schema.is_disturbed(frames.rows, frames.warnings)
    frames = replace(frames, rows=frames.rows.assign(is_disturbed=is_disturbed))
    tables = labelled_tables(frames.rows, layout)
    compared = compare(tables, layout)
    lines: list[dict[str, Any]] = []
    for name, (labels, rows) in tables.items():
        found = [
            *extremes(labels, rows),
            *comparisons.sentences(labels.table, compared.get(name, NO_PAIRS)),
            *block_dependence(rows),
            *shares(labels.table, rows),
        ]
        # With many nodes, these sentences are about one of them.
        nodes = rows["node"].unique()
        is_one = len(nodes) == 1 and nodes[0] != "any"
        where = f"On {node_or_link(nodes[0])}: " if is_one else ""
        for line in found:
            points = json.dumps([*line["points"]], ensure_ascii=False)
            lines.append({"table": name, **line, "points": points, "text": where + line["text"]})
        for line in link_sentences(frames, labels):
            lines.append({"table": name, **line, "points": "[]"})
    for note in placements.describe(frames):
        lines.append({"topic": "Placements", "text": note.full_sentence})
    return schema.typed("findings", pd.DataFrame(lines))


def labelled_tables(rows: pd.DataFrame, layout: Layout | None) -> Tables:
    """Return for each table the labels, and the rows that the sentences are about."""
    tables = {}
    for name, every in rows.groupby("table", sort=False):
        table, shown = BY_NAME[str(name)], every
        # With many nodes, the sentences are about a typical one.
        if shown["node"].nunique() > MANY:
            shown = rows_of_typical_node(shown)
        # A layout may show only some of the programs.
        if layout and layout.programs_of(table):
            shown = shown[shown["is_own"] | shown["instrument"].isin(layout.programs_of(table))]
        labels = labels_of(layout, table_of(layout, table, shown))
        shown = comparisons.add_words(shown, labels)
        # Of numbers that others printed, nobody knows which level of the memory held the data.
        if shown["printed_in"].max():
            shown = shown.assign(working_set="", cache_level="")
        tables[table.name] = labels, shown
    return tables


def is_calm(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of a table that are neither wrong nor disturbed.

    If some rows measure a level of the memory, rows that measure parts of two levels do not count.
    """
    found = schema.is_right(rows) & ~rows["is_disturbed"]
    has_level = rows["cache_level"].ne("")
    return found & has_level if has_level.any() else found


def compare(tables: Tables, layout: Layout | None) -> dict[Any, pd.DataFrame]:
    """Return name of a table -> its pairs, as ``comparisons.judged`` returns them.

    All tables are judged at once, so that the correction for the number of tests covers all of them. A table
    without pairs has no entry.

    Args:
        tables: labels and rows of all tables.
        layout: layout of the report, which may ask for further comparisons.
    """
    found = []
    for name, (labels, rows) in tables.items():
        compared = layout.pairs_of(labels.table) if layout else ()
        measured = rows.assign(is_calm=is_calm(rows))[rows["n"].gt(0)]
        for pairs in comparisons.pairs_of_table(measured, labels, compared):
            found.append(pairs.assign(table=name))
    if not found:
        return {}
    pairs = comparisons.judged(pd.concat(found, ignore_index=True))
    # A report may print one number without its spread: then no repetitions were compared.
    is_printed = pairs["printed_in"].ne("") & pairs["n"].eq(1)
    pairs = pairs.assign(certainty=pairs["certainty"].mask(is_printed, comparisons.PRINTED))
    return dict(list(pairs.groupby("table")))


# -- best and worst


def extremes(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the best and worst configuration of each workload and working set.

    Another sentence compares both orders of reading, writing or copying. Rows of the workloads in
    ``SHAPES`` are no configurations to choose from, and left out.
    """
    measured = rows[rows["is_own"] & rows["n"].gt(0) & ~rows["workload"].isin(SHAPES)]
    lines = list(schema.lines(measured.assign(is_right=schema.is_right(measured))))
    # Name of a workload and working set -> its rows; name with both orders of access -> their rows.
    groups: dict[str, list[Line]] = defaultdict(list)
    ways: dict[str, list[Line]] = defaultdict(list)
    for row in lines:
        name = labels.line(row, lines)
        groups[name].append(row)
        # The last letter is the order of access: RS reads in sequence, RR at random.
        way = WAYS.get(row.workload[:-1])
        if way:
            ways[name.replace(labels.workload(row), way, 1)].append(row)
    # Both orders are compared only if both were measured.
    for name, members in ways.items():
        if len({row.workload for row in members}) > 1:
            groups[name] = members
    for name, members in groups.items():
        if len({row.value for row in members if row.is_right}) > 1:
            yield best_and_worst(labels, capitalised(name), members)


def best_and_worst(labels: Labels, name: str, rows: Sequence[Line]) -> dict[str, Any]:
    """Return the line of ``findings`` on the best and worst of the rows of one workload and working set.

    Args:
        labels: labels of the table.
        name: workload and working set of the rows.
        rows: the rows that are compared, with ``is_right``. Wrong rows are counted, not named.
    """
    ordered = sorted((row for row in rows if row.is_right), key=lambda row: row.value)
    worst, best = ordered[0], ordered[-1]
    if labels.table.lower_is_better:
        worst, best = best, worst
    places = []
    for row in (best, worst):
        place = [labels.place(row, rows), placements.distance_of(row.band)]
        if row.is_disturbed:
            place.append("disturbed")
        places.append(", ".join(filter(None, place)))
    text = f"{name}: best {labels.quantity(best.value)} ({places[0]}), worst {labels.quantity(worst.value)} ({places[1]})"
    if len(ordered) < len(rows):
        text += f"; {plural(len(rows) - len(ordered), 'wrong row')} left out"
    return {
        "topic": "Best and worst",
        "better": places[0],
        "worse": places[1],
        "points": [best.point, worst.point],
        "text": f"{text}.",
    }


# -- ranges by workload


def shares(table: Table, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield sentences on how near each program comes to the limit, and peakmark's kernel to a reference.

    With references, another sentence states by how much the values of each program vary.
    """
    # ``ratio`` is the kernel's value over the reference's. For times, the speed is its reciprocal.
    speed = rows["ratio"].mask(rows["unit"].eq("s"), 1 / rows["ratio"])
    is_judged = rows["is_own"] | rows["is_comparable"]
    # The level of the cache. The words for DRAM say which stores wrote.
    working_set = rows["working_set"]
    has_words = rows["cache_level"].eq("") | working_set.str.startswith("in DRAM")
    place = ("in " + rows["cache_level"]).mask(has_words, working_set)
    if rows["node"].nunique() > 1:
        place = ("on " + rows["node"].map(node_or_link) + " " + place).str.rstrip()
    judged = rows.assign(speed=speed, is_calm=is_judged & is_calm(rows), place=place)
    own = table.own
    calm = judged[judged["is_calm"]]
    own_points = calm.loc[calm["is_own"], "point"]
    has_references = calm["instrument"].nunique() > 1
    for program in table.series:
        of_program = judged[judged["instrument"].eq(program.instrument)]
        for where, every in of_program.groupby("place", sort=False):
            members = every[every["is_calm"]]
            start = f"{capitalised(str(where))}, " if where else ""
            name = f"{start}{program.heading}"
            rated = members.dropna(subset="efficiency")
            yield from reached(name, rated, every, "efficiency", "the limit")
            if program != own:
                beside_own = members[members["point"].isin(own_points)]
                of = f"{program.heading}'s speed"
                yield from reached(start + own.heading, beside_own, every, "speed", of)
            if has_references:
                yield from variation(name, every[schema.is_right(every)])


def reached(
    start: str, rows: pd.DataFrame, every: pd.DataFrame, column: str, of: str
) -> Iterator[dict[str, Any]]:
    """Yield a sentence with the lowest and highest share of something that each workload reaches.

    Args:
        start: beginning of the sentence, with the program.
        rows: rows of one program.
        every: all rows of the program; if ``rows`` has only some of a workload, their points are named.
        column: column with the shares.
        of: what the shares are of, such as ``the limit``.
    """
    texts: list[str] = []
    for workload, members in rows.groupby("of_workload", sort=False):
        of_workload = every[every["of_workload"].eq(workload)]
        points = words_for(members, of_workload, INNER["Workloads"])
        low, high = members[column].agg(["min", "max"])
        # Only the first text says what the shares are of.
        of_what = "" if texts else f" of {of}"
        share = value_range(percent(low), percent(high))
        texts.append(f"{share} %{of_what} for {workload}{points}")
    if texts:
        yield {
            "topic": "Limit",
            "points": rows["point"],
            "text": f"{start} reaches {listed(texts)}.",
        }


def variation(start: str, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence on how far the values of each workload with more than ``FEW_ROWS`` rows differ.

    Args:
        start: beginning of the sentence, with the program.
        rows: rows of one program.
    """
    texts = []
    for workload, values in rows.groupby("of_workload", sort=False)["value"]:
        factor = values.max() / values.min()
        if len(values) > FEW_ROWS:
            texts.append(f"a factor of {factor:.3g} for {workload}")
    if texts:
        text = f"{start} has values that differ by up to {listed(texts)}.{on_disturbed(rows)}"
        yield {"topic": "Best and worst", "points": rows["point"], "text": text}


def block_dependence(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the workload that depends most on the block size; none if no workload clearly does.

    Rows that differ in their block size alone have a factor: the highest of their values divided by
    the lowest. A workload clearly depends most if each of its factors is above all factors of other
    workloads. A wrong or disturbed row, or one of a placement of the CPUs, may hide such a factor:
    then there is no sentence.
    """
    own = rows[rows["is_own"]].dropna(subset="block_bytes")
    if not (is_calm(own) & own["band"].isna()).all():
        return
    same = ["of_workload", "node", "variant", "concurrency"]
    values = own.groupby(same, dropna=False)["value"]
    has_several = values.size().gt(1)
    factors = (values.max() / values.min())[has_several]
    of_workloads = factors.groupby("of_workload").agg(["min", "max"])
    ranked = of_workloads.sort_values("min", ascending=False)
    others = ranked["max"].iloc[1:].max()
    if len(ranked) > 1 and ranked["min"].iloc[0] > others:
        most, range_of_most = str(ranked.index[0]), ranked.iloc[0]
        highest = f"its highest value is {times(range_of_most)} its lowest"
        text = f"{most} depends most on the block size: {highest}."
        yield {
            "topic": "Block size",
            "points": own.loc[own["of_workload"].eq(most), "point"],
            "text": text,
        }


# -- links


def on_disturbed(rows: pd.DataFrame) -> str:
    """Return a sentence that says how many of some rows are disturbed; empty if none is.

    It follows a sentence that rests on these rows.
    """
    count = int(rows["is_disturbed"].sum())
    if not count:
        return ""
    return f" Disturbed rows behind it: {count} of {len(rows)}."


def link_sentences(frames: schema.CampaignFrames, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on each slow node and pair of nodes; none for a table without pairs of nodes.

    The sentence gives the numbers of the point at which the node or pair is furthest behind. If nothing is
    slow, one sentence says so.
    """
    name = labels.table.name
    rows = frames.rows[
        frames.rows["table"].eq(name) & schema.is_pair(frames.rows) & frames.rows["is_own"]
    ]
    measured = rows[rows["n"].gt(0) & rows["variant"].ne(TOGETHER)]
    if measured.empty:
        return
    slow = frames.fleet[frames.fleet["table"].eq(name)]
    if slow.empty:
        yield no_slow_link(measured)
    # Here a point is a place: pairs of nodes share it if workload, variant, block and concurrency are equal.
    points = measured["place"]
    line_at = dict(zip(points, schema.lines(measured), strict=True))
    ordered = slow.sort_values("behind", ascending=False, kind="stable")
    # The point at which each node or pair is furthest behind.
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
            row=labels.point(line_at[part.point]),
            rows=int(rows_of_part[part.kind, part.name]),
            of=points.nunique(),
        )
        of_place = measured[points.eq(part.point)]
        text = f"{found.full_sentence}{on_disturbed(of_place)}"
        yield {"topic": "Links", "text": text}


def no_slow_link(measured: pd.DataFrame) -> dict[str, Any]:
    """Return the sentence that no node and no pair of nodes is slow, for the rows of pairs that were measured."""
    # The pairs of the first place stand for all: their names are ``client+server``.
    places = measured["place"]
    pairs = measured[places.eq(places.iloc[0])]["node"]
    nodes = set("+".join(pairs).split("+"))
    found = message("no-slow-link", nodes=len(nodes), links=len(pairs), beyond=DELTA)
    return {"topic": "Links", "text": f"{found.full_sentence}{on_disturbed(measured)}"}
