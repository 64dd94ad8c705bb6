"""The model of a table: columns of values, and how CSV files, pages and papers show them.

``usual_tables`` and ``layout_tables`` make the columns and the ``ShownTable``. ``csv`` returns the values of
columns as a frame, ``ShownTable.page`` the cells for the templates of PDF and HTML. Warnings become remarks:
a few words in a line, sentences below the table, and the chapter Remarks. ``Points`` has the rows behind a
table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd

from peakmark.catalogue import KERNELS
from peakmark.formatting import capitalised, listed, significant, typeset
from peakmark.messages import ORDER, Trust, merge_keys, message
from peakmark.rows import schema
from peakmark.rows.labels import MANY
from peakmark.rows.schema import DISTURBANCES, NOT_PLANNED, CampaignFrames
from peakmark.tools.tables import Table

NOT_MEASURED = "not measured"
"""Text in the column of peakmark's kernel if the kernel measured nothing."""
UNPRINTED_VARIANTS = ("psync", "plain", "pool", "block", "")
"""Variants that are not printed, because they are the default or in the table's title."""
_BREAK = re.compile(
    r"(Theoretical|Standard|Average|Benchmark(?= Run)) | (?=\(|Measured |[Ee]fficiency|bench)"
)
"""Places where a heading is broken, which makes its column narrower."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        values: value of each line: a text, or a number in the unit of the heading.
        heading: heading in a CSV file, which leaves out a column without one.
        label: heading on a page, which leaves out a column without one.
        group: heading on a page over all neighbouring columns of the same group.
        form: function that returns the text of a value on a page.
        cells: texts on a page, if a text depends on more than the value.
        kind: text, number or remark.
        once: sentence that replaces the column on a page if all lines have the same text.
        on_paper: whether the PDF has room for the column; HTML has all columns.
    """

    values: pd.Series
    heading: str = ""
    label: str = ""
    group: str = ""
    form: Callable[[Any], str] = significant
    cells: pd.Series | None = None
    kind: str = "number"
    once: str = ""
    on_paper: bool = True

    @property
    def texts(self) -> list[str]:
        """Return the column's texts as a page shows them."""
        cells = self.cells
        if cells is None:
            cells = texts(self.values, self.form)
        return list(cells)

    @property
    def whole_label(self) -> str:
        """Return the column's heading on a page, after the heading of its group."""
        return ", ".join(filter(None, (self.group, self.label)))


def texts(values: pd.Series, form: Callable[[Any], str] = significant) -> pd.Series:
    """Return values as texts; an unknown value becomes an empty text."""
    return values.map(form, na_action="ignore").astype(object).fillna("")


def stepped(values: pd.Series, steps: pd.Series, gap: str = "") -> pd.Series:
    """Return numbers as texts without digits below their resolution; ``gap`` stands for no number."""
    cells = []
    for value, step in zip(values, steps.fillna(0.0), strict=True):
        cells.append(significant(value, step=step))
    return pd.Series(cells, values.index, dtype=object).where(values.notna(), gap)


def csv(columns: Iterable[Column]) -> pd.DataFrame:
    """Return the content of a CSV file: values with full precision under their headings.

    A column without ``heading`` is left out: only pages show it.
    """
    return pd.DataFrame({each.heading: each.values for each in columns if each.heading})


@dataclass(frozen=True, eq=False)
class ShownTable:
    """A table as a page shows it.

    Attributes:
        table: table whose rows are shown.
        name: name of the shown table's file.
        title: its title.
        columns: columns of the page in their order, remarks last.
        lines: rows of peakmark's kernel at the points that are shown, by point. The column ``line`` is
            the number of the line that shows the point.
        below: sentences about the whole table, such as why a column is empty.
        reading: how to read the table; may be empty.
        general: sentences that hold for other tables too; a report prints them once.
        is_of_layout: whether it is a table of a layout.
    """

    table: Table
    name: str
    title: str
    columns: tuple[Column, ...]
    lines: pd.DataFrame
    below: tuple[str, ...]
    reading: str
    general: tuple[str, ...]
    is_of_layout: bool = False

    @property
    def full_title(self) -> str:
        """Return the title with the resource before it: ``Disk: throughput``."""
        return replace(self.table, title=self.title).full_title

    @property
    def body(self) -> list[tuple[str, ...]]:
        """Return the cells, line by line."""
        return list(zip(*[column.texts for column in self.columns], strict=True))

    @property
    def marks(self) -> list[str]:
        """Return the least trust in the values of peakmark's kernel in each line; empty for *ok*."""
        # A line of many nodes, or of a layout with several columns of values, has several rows.
        ranks = self.lines["trust"].map({"no": 0, "care": 1}).fillna(2)  # 2: ok, or no value
        least = ranks.groupby(self.lines["line"], sort=False).min()
        return least.map({0: "no", 1: "care", 2: ""}).tolist()

    @property
    def breaks(self) -> list[int]:
        """Return the numbers of the lines where the node, the workload or the variant changes.

        These lines have a thin rule above them. If each line differs from the one before, there are no rules.
        """
        first = self.lines[["line", "node", "workload", "variant"]].drop_duplicates("line")
        places = list(zip(first["node"], first["workload"], first["variant"], strict=True))
        found = [place for place in range(1, len(places)) if places[place] != places[place - 1]]
        return found if len(found) < len(places) - 1 else []

    def page(self, *, on_paper: bool = False) -> dict[str, Any]:
        """Return the table for the templates of PDF and HTML, with numbers aligned at their decimal marks.

        Args:
            on_paper: whether to leave out the columns for which paper has no room.
        """
        columns = [each for each in self.columns if each.on_paper or not on_paper]
        cells = map(aligned, columns)
        return {
            "name": self.name,
            "title": f"{self.full_title}.",
            "reading": self.reading,
            "columns": [{"kind": each.kind, "label": each.whole_label} for each in columns],
            "head": head(columns),
            "subhead": [each.label for each in columns if each.group],
            "breaks": self.breaks,
            "body": list(zip(*cells, strict=True)),
            "marks": self.marks,
            "remarks": list(self.below),
            "general": list(self.general),
        }


def show(
    frames: CampaignFrames,
    table: Table,
    columns: Iterable[Column],
    lines: pd.DataFrame,
    *,
    instruments: Iterable[str] = (),
    below: Sequence[str] = (),
    reading: str = "",
    general: Sequence[str] = (),
    name: str = "",
    title: str = "",
    is_of_layout: bool = False,
) -> ShownTable:
    """Return a table as a page shows it, with the remarks on the lines in the last column.

    A column that is empty in all lines is left out. A column with ``once`` and the same text in all
    lines becomes a sentence below the table. A remark that all lines have becomes one too; its
    numbers may differ.

    Args:
        frames: the campaign.
        table: table whose rows are shown, with printed unit and names of programs.
        columns: columns; those without ``label`` are left out.
        lines: see ``ShownTable``.
        instruments: programs whose remarks are printed; by default all of the table.
        below, reading, general: see ``ShownTable``; full stops are added.
        name, title: see ``ShownTable``; by default those of ``table``.
        is_of_layout: see ``ShownTable``.
    """
    kept, once = [], []
    for column in columns:
        if not column.label:
            continue
        cells = column.texts
        if column.once and len(cells) > 1 and len(set(cells)) == 1:
            # Leave out the sentence on a variant that is the default, or that the title of the
            # table names.
            if cells[0] not in UNPRINTED_VARIANTS:
                once.append(column.once.format(cells[0]))
        elif any(cells) or not cells:  # a table without lines keeps its columns
            kept.append(column)
    # Add the column of remarks. A remark that all lines have becomes a sentence.
    of_all, of_lines = remarks_on_lines(frames, table, lines, instruments)
    if of_all:
        once.append(f"Every line: {'; '.join(of_all)}.")
    cells = ["; ".join(texts_of_line) for texts_of_line in of_lines]
    if any(cells):
        kept.append(Column(pd.Series(cells), label="Remark", form=str, kind="remark"))
    return ShownTable(
        table=table,
        name=name or table.name,
        title=title or table.title,
        columns=tuple(kept),
        lines=lines,
        below=(*once, *map(sentence, below)),
        # ``reading`` describes how peakmark measures, so it does not fit numbers that others printed.
        reading=sentence(reading) if reading and not frames.printed_in else "",
        general=tuple(map(sentence, general)),
        is_of_layout=is_of_layout,
    )


def sentence(text: str) -> str:
    """Return a sentence as it is printed, with its full stop."""
    return typeset(f"{text.rstrip('.')}.")


def head(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return the first line of headings: groups, and columns without a group, which span both lines."""
    # Headings have two lines if there is any group: the groups, and the columns below them.
    height = 1 + any(column.group for column in columns)
    cells: list[dict[str, Any]] = []
    for group, members in groupby(columns, key=attrgetter("group")):
        if group:
            cells.append({"title": group, "span": len(list(members)), "rows": 1, "kind": "number"})
            continue
        for column in members:
            title = _BREAK.sub(broken, column.label)
            cells.append({"title": title, "span": 1, "rows": height, "kind": column.kind})
    return cells


def broken(place: re.Match[str]) -> str:
    """Return the replacement of a match of ``_BREAK``: the matched word, if any, and a line break."""
    return f"{place[1] or ''}\n"


def aligned(column: Column) -> list[Any]:
    """Return the cells of a column. A number has an invisible padding that aligns the decimal marks.

    The padding fills a number up to the largest number of decimals: ``.00`` after 12, ``0`` after 1.2.
    """
    cells = column.texts
    if column.kind != "number":
        return cells
    lengths = []
    for text in cells:
        whole, _, _ = text.partition(".")
        lengths.append(len(text) - len(whole))
    most = max(lengths, default=0)
    padding = ".".ljust(most, "0")[:most]
    found: list[Any] = []
    for text, length in zip(cells, lengths, strict=True):
        if text == NOT_MEASURED:
            found.append(text)
        else:
            found.append({"text": text, "pad": padding[length:] if text else ""})
    return found


# -- remarks on lines

OF_ALL = -1
"""Value of ``line`` for a remark that all lines have, instead of the number of one line."""
OF_ROW = re.compile(r" in \d+ of \d+ repetitions| on [^,]+, where the server ran,")
"""Pattern of what a message says of the repetitions or the server of one row."""
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?")
"""Pattern of a number in a text. A digit of a name such as *iperf3* is no number."""
NEVER_MOOT = ("disagreement", "otherwise", "udp-loss")
"""Codes of warnings that tables show even on a value that must not be used."""
TRUSTS = [str(trust) for trust in ORDER]
"""Degrees of trust, the least first."""


def remarks_on_lines(
    frames: CampaignFrames, table: Table, lines: pd.DataFrame, instruments: Iterable[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the remarks that all lines of a table have, and the other remarks on each line, the gravest first.

    A remark on a reference that peakmark's kernel has too is returned once, without a program. Remarks
    that differ only in numbers are one remark with the largest amount.

    Args:
        frames: the campaign.
        table: the table, which gives the programs' names.
        lines: points of the table, by ``point``, with the number of the ``line`` that shows each; see ``show``.
        instruments: programs that have a column; by default all of the table.
    """
    # Find the warnings on the points of the table, in the order of the lines (``place``).
    programs = {program.instrument: f"{program.heading} " for program in table.series}
    places = lines[["line"]].assign(place=range(len(lines)))
    notes = frames.warnings.join(places, on="point", how="inner")
    notes = worth_reading(notes.sort_values("place", kind="stable"))
    notes = notes[notes["about"].isin(["", *(instruments or programs)])]
    numbers = lines["line"].unique()
    if notes.empty:
        return [], [[] for _ in numbers]
    notes = merged_over_lines(notes, len(numbers))
    # A reference does not repeat what peakmark's kernel has too, and a line not what all lines have, unless the remark is
    # on one value of the reference that must not be used: its own amount, or a number that others printed.
    is_reference = notes["about"].isin(programs) & notes["about"].ne(table.own.instrument)
    what = pd.MultiIndex.from_frame(notes[["line", "short", "trust"]])
    of_all = notes.loc[notes["line"].eq(OF_ALL), "short"]
    is_no = notes["trust"].eq(Trust.NO)
    is_of_value = is_reference & is_no & (notes["amount"].ne(0) | bool(frames.printed_in))
    is_known = is_reference & what.isin(what[~is_reference])
    is_known |= notes["line"].ne(OF_ALL) & notes["short"].isin(of_all)
    is_known &= ~is_of_value
    # A remark names the program that it is about, if this is a reference. A value of a report's own program that is
    # called wrong is named too: the references in the same line may be right.
    is_named = is_reference | (is_no & bool(frames.printed_in))
    names = notes["about"].map(programs).where(is_named, "").fillna("")
    # The verdict in a line is that of peakmark's kernel.
    verdict = notes["trust"].map({str(Trust.NO): "no: "}).mask(is_reference).fillna("")
    notes["remark"] = (verdict + names + notes["short"]).map(typeset)
    # Remarks on peakmark's kernel come before those on references, the gravest first.
    notes = notes.assign(rank=notes["trust"].map(TRUSTS.index), later=is_reference)
    in_order = notes[~is_known].sort_values(["later", "rank"], kind="stable")
    remarks = in_order.groupby("line")["remark"].agg(list)
    return remarks.get(OF_ALL, []), [remarks.get(line, []) for line in numbers]


def merged_over_lines(notes: pd.DataFrame, count: int) -> pd.DataFrame:
    """Merge remarks that differ only in numbers.

    Remarks that all lines have become one for the table, all others one for each line.

    The ``line`` of a remark that all lines have becomes ``OF_ALL``; ``count`` is the number of lines.
    """
    family = ["code", "words", "about", "trust"]
    notes = notes.assign(words=notes["short"].str.replace(NUMBER, "", regex=True))
    lines_with = notes.groupby(family)["line"].transform("nunique")
    is_of_all = lines_with.eq(count) & (count > 1)
    lines = notes["line"].mask(is_of_all, OF_ALL)
    return merge(notes.assign(line=lines), ["line", *family], "short")


def worth_reading(notes: pd.DataFrame) -> pd.DataFrame:
    """Return the warnings and notes that tables show.

    They have short words (column ``short``). A disturbance of too few runs to change a value is
    left out. If a value must not be used, only the warnings that say so are shown, and those in ``NEVER_MOOT``. Beside
    such a value of peakmark's kernel, no disturbance of a reference is shown either.
    """
    is_reason = notes["trust"].eq(Trust.NO)
    point, reasons = notes["point"], notes[is_reason]
    # A warning about no program is on the values of all programs at its point.
    is_moot = point.isin(reasons.loc[reasons["about"].eq(""), "point"])
    of_kernels = reasons.loc[reasons["about"].isin(KERNELS.values()), "point"]
    is_moot |= point.isin(of_kernels) & notes["code"].isin(DISTURBANCES)
    value = pd.MultiIndex.from_frame(notes[["point", "about"]])
    is_moot |= value.isin(value[is_reason])
    is_moot &= ~notes["code"].isin(NEVER_MOOT)
    is_moot |= notes["code"].isin(DISTURBANCES) & notes["trust"].eq(Trust.OK)
    return notes[(is_reason | ~is_moot) & notes["short"].ne("")]


def merge(notes: pd.DataFrame, family: list[str], column: str) -> pd.DataFrame:
    """Return from each family the note with the largest amount. Its text has *up to* if others have less.

    A family is a set of notes that differ only in numbers. An amount is negative where a smaller number is worse.
    The text of such a note does not change, because *up to* would be wrong.

    Args:
        notes: lines of ``warnings``; ``amount`` says how bad each is.
        family: columns whose values are equal in notes that differ only in numbers.
        column: column of the text, in which *up to* is written before the first number.
    """
    groups = notes.groupby(family, sort=False)
    largest = groups["amount"].transform("max")
    is_range = largest.gt(0) & groups["amount"].transform("min").lt(largest)
    is_range &= groups[column].transform("nunique").gt(1)
    is_range &= ~notes[column].str.contains("up to ", case=False, regex=False)
    with_range = notes[column].str.replace(NUMBER, r"up to \g<0>", n=1, regex=True)
    texts = notes.assign(
        place=groups.ngroup(), **{column: notes[column].mask(is_range, with_range)}
    )
    first = texts[notes["amount"].eq(largest)].drop_duplicates("place")
    return first.sort_values("place", kind="stable")


# -- the chapter Remarks


def explain(frames: CampaignFrames, shown: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the remarks of a campaign, each as a list [short words, numbers of rows, sentences].

    The sentences say what happened and what to do. The gravest remarks come first, then the most frequent.

    Args:
        frames: the campaign, see ``layout_tables.for_print``.
        shown: name of a table -> instruments that have a column in the table.
    """
    points = frames.rows.drop_duplicates("point")
    notes = worth_reading(frames.warnings).merge(points[["point", "table"]], on="point")
    is_shown = pd.Series(False, notes.index)
    for table, instruments in shown.items():
        is_shown |= notes["table"].eq(table) & notes["about"].isin(["", *instruments])
    # The notes on printed values stand below their tables.
    notes = notes[is_shown & notes["code"].ne("note")]
    # Who reads numbers that others printed cannot measure again, nor find out why programs differ.
    if frames.printed_in:
        notes = notes.assign(remedy="", subject="")
    # A point counts once for peakmark's kernel and the whole row (``own``), and once for each reference, where ``own`` is
    # NaN, which is not counted.
    is_own = notes["about"].isin(["", *KERNELS.values()])
    value = notes["point"] + " " + notes["about"].mask(is_own, "")
    # Of cases that differ in numbers alone, explain the one with the largest amount.
    notes = notes.assign(
        value=value,
        own=value.where(is_own),
        words=(notes["short"] + notes["remedy"]).str.replace(NUMBER, "", regex=True),
        rank=notes["trust"].map(TRUSTS.index),
    )
    family = ["code", "words", "subject"]
    groups = notes.groupby(family, sort=False)
    remedies = notes["remedy"].radd(": ").mask(notes["remedy"].eq(""), "")
    sentences = notes["text"] + remedies
    # A family is as grave as its gravest note. A sentence on several rows leaves out how often it happened in one, and
    # on which server.
    rows = groups["value"].transform("nunique")
    notes = notes.assign(
        sentence=sentences.mask(rows.gt(1), sentences.str.replace(OF_ROW, "", regex=True)),
        rows=rows,
        own=groups["own"].transform("nunique"),
        rank=groups["rank"].transform("min"),
    )
    # The short words and the sentence each get their own *up to*.
    short, text = merge(notes, family, "short")["short"], merge(notes, family, "sentence")
    in_order = text.assign(short=short).sort_values(
        ["rank", "rows"], ascending=[True, False], kind="stable"
    )
    lines = []
    for line in schema.lines(in_order):
        sentence = typeset(f"{capitalised(line.sentence)}.")
        counts = [str(line.own)] if line.own else []
        if line.own < line.rows:
            counts.append(f"{line.rows - line.own} of references")
        lines.append([typeset(line.short), ", ".join(counts), sentence])
    return lines


# -- sentences below a table


def empty_columns(
    frames: CampaignFrames, table: Table, rows: pd.DataFrame, instruments: Collection[str]
) -> list[str]:
    """Return a sentence for each reference of ``instruments`` that measured nothing, with the reason.

    References of which the plan has no cell are left out.
    """
    measured = set(rows.loc[rows["n"].gt(0), "instrument"])
    reasons = []
    for program in table.references:
        if program.instrument in set(instruments) - measured:
            why = frames.campaign["empty"].get(program.instrument, NOT_PLANNED)
            if why != NOT_PLANNED:
                reasons.append(f"{program.heading} has no values in this chapter: {why}")
    return reasons


def sentences_on_gaps(
    frames: CampaignFrames,
    table: Table,
    rows: pd.DataFrame,
    instruments: Collection[str],
    *,
    with_limit: bool = True,
) -> list[str]:
    """Return sentences below a table: how many repetitions were measured again, why columns and limits are missing.

    Args:
        frames: the campaign.
        table: table with the printed names of programs.
        rows: rows of all programs at the points of the table.
        instruments: programs that have a column in the table.
        with_limit: whether the table has columns of limits.
    """
    found = []
    # One repetition may fill several rows, and be measured again several times.
    runs = frames.runs[frames.runs["point"].isin(rows["point"]) & frames.runs["attempt"].gt(0)]
    again = runs.loc[runs["instrument"].isin(instruments), "record"].nunique()
    if again:
        found.append(message("measured-again", count=again).text)
    if len(rows):
        found += empty_columns(frames, table, rows, instruments)
    own = rows[rows["is_own"]]
    reasons = merge_keys(own["limit_reason"])
    if with_limit and reasons:
        where = " in the empty cells" if own["limit"].notna().any() else ""
        reason = "the formulas in the HTML report give the reasons"
        if len(reasons) == 1:
            reason = reasons[0]
        found.append(f"Theoretical {table.quantity} is unknown{where}: {reason}")
    return found


# -- the points of a table: the rows of peakmark's kernel, and the values of all programs

NUMBERS = [
    "value",
    "low",
    "high",
    "mean",
    "median",
    "sd",
    "resolution",
    "limit",
    "efficiency",
    "share",
]
"""Columns of ``rows`` that tables show of each program."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


class Points(NamedTuple):
    """The points of a table.

    Attributes:
        own: rows of peakmark's kernel, by point. The column ``line`` is the number of the table line that
            shows the point.
        rows: rows of all programs at these points.
        programs: instrument -> its rows that have a value, by point, with the columns ``NUMBERS``.
    """

    own: pd.DataFrame
    rows: pd.DataFrame
    programs: Mapping[str, pd.DataFrame]

    def of(self, instrument: str, name: str) -> pd.Series:
        """Return one of ``NUMBERS`` of a program by point; it is NaN at points without a value."""
        if instrument not in self.programs:
            return pd.Series(float("nan"), self.own.index)
        return self.programs[instrument][name].reindex(self.own.index)


def points_of(rows: pd.DataFrame) -> Points:
    """Return the points of rows, with a line for each point."""
    own = rows[rows["is_own"]].set_index("point", drop=False)
    # Select columns before rows: ``rows`` has about 80 columns.
    numbers = rows[["point", "instrument", *NUMBERS]][rows["n"].gt(0)].set_index("point")
    programs = {str(name): values for name, values in numbers.groupby("instrument")}
    return Points(own.assign(line=range(len(own))), rows, programs)


def rows_of(frames: CampaignFrames, table: Table) -> pd.DataFrame:
    """Return the rows of a table."""
    return frames.rows[frames.rows["table"].eq(table.name)]


def is_many(frames: CampaignFrames) -> bool:
    """Return whether tables on paper have no room for a line for each node."""
    return len(frames.nodes) > MANY


def place_label(own: pd.DataFrame) -> str:
    """Return the heading of the column of nodes; empty if one node measured all points."""
    if own["clients"].ne(own["servers"]).any():
        return "Client → server"
    return "Node" if own["node"].nunique() > 1 else ""


def places_of(own: pd.DataFrame) -> pd.Series:
    """Return where each point was measured, see ``place``."""
    places = map(place, own["clients"], own["servers"], own["node"])
    return pd.Series([*places], own.index, dtype=object)


def place(clients: str, servers: str, node: str) -> str:
    """Return where a point was measured: ``node1``, ``client → server`` or ``3 pairs``.

    Args:
        clients: client of each run, with semicolons.
        servers: server of each run, likewise. Where it is the client, one node measured alone.
        node: name of the node.
    """
    hosts = zip(clients.split("; "), servers.split("; "), strict=True)
    pairs = {(client, server) for client, server in hosts if client != server}
    if len(pairs) > 1:
        return f"{len(pairs)} pairs"
    return " → ".join(pairs.pop()) if pairs else node


def noun_of(own: pd.DataFrame) -> str:
    """Return the noun for the nodes of rows: ``nodes``, ``pairs``, or both."""
    is_pair = own["node"].str.contains("+", regex=False)  # the name of a pair is client+server
    return listed(sorted(is_pair.map({True: "pairs", False: "nodes"}).unique()))
