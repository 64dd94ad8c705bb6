"""Remarks from warnings: a few words in the line of a table, and the sentences below the table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import pandas as pd

from peakmark.formatting import capitalised, typeset
from peakmark.messages import ORDER, merge_keys, message
from peakmark.rows.names import NOT_PLANNED
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Table

MOST = 3
"""Usual largest number of remarks in a line: the last part counts the others."""
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?")
"""Number in a text; not a digit of a name, such as that of *iperf3*."""
SEVERITIES = [str(severity) for severity in ORDER]
"""Severities, the worst first."""


class Explanation(NamedTuple):
    """A warning as the report explains it once.

    Attributes:
        short: text of the remark in rows; empty if no row shows the warning.
        points: points with the warning.
        text: what happened and what to do.
    """

    short: str
    points: Sequence[str]
    text: str


def on_lines(
    frames: CampaignFrames, table: Table, lines: pd.DataFrame, instruments: Iterable[str]
) -> list[list[str]]:
    """Return the remarks on each line of a table, the most severe first.

    A remark on a reference that peakmark's kernel has too is returned once, without a program. Remarks
    that differ only in numbers are one remark with the largest amount.

    Args:
        frames: the campaign.
        table: the table, which gives the programs' names.
        lines: see ``table.show``.
        instruments: programs that have a column; by default all of the table.
    """
    programs = {program.instrument: f"{program.heading} " for program in table.series}
    places = lines[["line"]].assign(place=range(len(lines)))
    notes = frames.warnings.join(places, on="point", how="inner")
    notes = notes.sort_values("place", kind="stable")
    # A note that is printed once for the campaign is shown only if it is a warning.
    is_on_value = notes["severity"].ne("note") | notes["scope"].ne("campaign")
    is_shown = is_on_value & notes["about"].isin(["", *(instruments or programs)])
    notes = notes[is_shown & notes["short"].ne("")]
    if notes.empty:
        return [[] for _ in lines["line"].unique()]
    notes = notes.assign(words=notes["short"].str.replace(NUMBER, "", regex=True))
    family = ["line", "code", "case", "words", "about", "severity"]
    notes = merge(notes, family, "short").rename(columns={"short": "remark"})
    # A remark on a reference names it, unless peakmark's kernel has the same remark.
    wrong = notes["severity"].map({"wrong": "wrong: "}).fillna("")
    named = wrong + notes["about"].map(programs).fillna("") + notes["remark"]
    notes["remark"] = wrong + notes["remark"]
    is_reference = notes["about"].isin(programs) & notes["about"].ne(table.own.instrument)
    keys = pd.MultiIndex.from_frame(notes[["line", "remark"]])
    is_named = is_reference & ~keys.isin(keys[~is_reference])
    # The most severe remarks come first.
    notes["remark"] = notes["remark"].mask(is_named, named).map(typeset)
    notes["rank"] = notes["severity"].map(SEVERITIES.index)
    notes = notes.sort_values("rank", kind="stable").drop_duplicates(["line", "remark"])
    of_lines = notes.groupby("line")["remark"].agg(list)
    return [of_lines.get(line, []) for line in lines["line"].unique()]


def merge(notes: pd.DataFrame, family: list[str], column: str) -> pd.DataFrame:
    """Return of each family the note with the largest amount, with *up to* in its text if others have less.

    Args:
        notes: lines of ``warnings``.
        family: columns whose values are equal in notes that differ only in numbers.
        column: column of the text.
    """
    groups = notes.groupby(family, sort=False)
    largest = groups["amount"].transform("max")
    # An amount below zero is of a number that is smaller in a worse case.
    is_range = largest.gt(0) & groups["amount"].transform("min").lt(largest)
    is_range &= groups[column].transform("nunique").gt(1)
    is_range &= ~notes[column].str.contains("up to ", case=False, regex=False)
    with_range = notes[column].str.replace(NUMBER, r"up to \g<0>", n=1, regex=True)
    texts = notes.assign(
        place=groups.ngroup(), **{column: notes[column].mask(is_range, with_range)}
    )
    first = texts[notes["amount"].eq(largest)].drop_duplicates("place")
    return first.sort_values("place", kind="stable")


def common(on_lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the remarks that all lines have; empty for a single line."""
    if len(on_lines) < 2:
        return []
    everywhere = set(on_lines[0]).intersection(*on_lines)
    return [text for text in on_lines[0] if text in everywhere]


def cell(texts: Sequence[str]) -> str:
    """Return the remarks of a line as one text: ``spread 17 %; host memory``."""
    if len(texts) <= MOST:
        return "; ".join(texts)
    rest = len(texts) - MOST + 1
    return "; ".join([*texts[: MOST - 1], f"{rest} more remarks"])


# -- the chapter Remarks


def explain(frames: CampaignFrames, shown: Mapping[str, Collection[str]]) -> list[Explanation]:
    """Return the remarks of a campaign in full: the most severe first, then the most frequent.

    Args:
        frames: the campaign, see ``layouts.for_print``.
        shown: table -> programs that have a column in the table.
    """
    measured = frames.rows[frames.rows["n"].gt(0)].drop_duplicates("point")
    notes = frames.warnings.merge(measured[["point", "table"]], on="point")
    is_shown = pd.Series(False, notes.index)
    for table, instruments in shown.items():
        is_shown |= notes["table"].eq(table) & notes["about"].isin(["", *instruments])
    notes = notes[is_shown]
    remedies = notes["remedy"].radd(": ").mask(notes["remedy"].eq(""), "")
    sentences = (notes["text"] + remedies).map(capitalised)
    notes = notes.assign(
        sentence=sentences,
        words=sentences.str.replace(NUMBER, "", regex=True),
        rank=notes["severity"].map(SEVERITIES.index),
    )
    found = []
    for _, family in notes.groupby(["code", "case", "subject"], sort=False):
        # Variants give the same advice: explain only the most severe one, with the largest amount.
        order = family.sort_values(["rank", "amount"], ascending=[True, False], kind="stable")
        first = order.iloc[0]
        alike = family[family["words"].eq(first["words"])]
        points = list(dict.fromkeys(family["point"]))
        short = typeset(merge(family, ["code"], "short")["short"].iloc[0])
        text = typeset(f"{merge(alike, ['code'], 'sentence')['sentence'].iloc[0]}.")
        found.append((first["rank"], -len(points), Explanation(short, points, text)))
    ordered = sorted(found, key=itemgetter(0, 1))
    return [explanation for *_, explanation in ordered]


# -- sentences below a table


def empty_columns(
    frames: CampaignFrames, table: Table, rows: pd.DataFrame, instruments: Collection[str]
) -> list[str]:
    """Return the reasons why columns of ``instruments`` are empty, except those that were not planned."""
    measured = set(rows.loc[rows["n"].gt(0), "instrument"])
    reasons = []
    for program in table.series:
        if program.instrument in set(instruments) - measured:
            why = frames.campaign["empty"][program.instrument]
            if why != NOT_PLANNED:
                reasons.append(f"No columns of {program.heading}: {why}")
    return reasons


def gaps(
    frames: CampaignFrames,
    table: Table,
    rows: pd.DataFrame,
    instruments: Collection[str],
    *,
    with_limit: bool = True,
) -> list[str]:
    """Return the number of repetitions measured again, and why columns are empty and limits missing.

    Args:
        frames: the campaign.
        table: table with the printed names of programs.
        rows: rows of all programs at the points of the table.
        instruments: programs that have a column in the table.
        with_limit: whether the table has columns of limits.
    """
    found = []
    is_counted = rows["instrument"].isin(instruments) & rows["n"].gt(0)
    again = int(rows.loc[is_counted, "measured_again"].sum())
    if again:
        found.append(message("measured-again", count=again).text)
    if len(rows):
        found += empty_columns(frames, table, rows, instruments)
    own = rows[rows["is_own"]]
    reasons = merge_keys(own["limit_reason"])
    if with_limit and reasons:
        where = " in the empty cells" if own["limit"].notna().any() else ""
        reason = "the HTML report lists the reasons with the formulas"
        if len(reasons) == 1:
            reason = reasons[0]
        found.append(f"Theoretical {table.quantity} is unknown{where}: {reason}")
    return found
