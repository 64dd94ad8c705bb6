"""Page one: the verdict, the machine, the score card, what limits the machine, and what to know before using numbers.

The score card has a line for each headline number of a campaign, with a verdict on whether to trust it. The
row of a headline is chosen by workload, cache level, largest block and number of threads, never by its value
or its warnings. ``build`` returns one JSON value that the terminal, Markdown, ``summary.json``, PDF and HTML show.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peakmark import statistics
from peakmark.catalogue import HEADLINES, SUBSYSTEMS, Headline
from peakmark.errors import Sentence
from peakmark.formatting import (
    capitalised,
    date,
    duration,
    percent,
    plural,
    quantity,
    size,
    typeset,
    value_range,
)
from peakmark.messages import OF_ANOTHER, ORDER, Message, Trust, message, words
from peakmark.rows import schema
from peakmark.rows.labels import Labels, choose, rows_of_headline
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME
from peakmark.views import appendix
from peakmark.views.fleet_report import judge_promises

DIGITS = 3
"""Significant digits of the numbers on the card: repetitions differ in the third digit."""

UNITS = {
    "cpu": "OP/s",
    "memory_throughput": "B/s",
    "disk_throughput": "B/s",
    "network_throughput": "bit/s",
    "gpu": "OP/s",
    "gpu_throughput": "B/s",
    "gpu_link_throughput": "B/s",
}
"""Table of rates -> unit of its values on the card."""

RATED, WITHOUT_LIMIT, NOT_THIS_DEVICE = range(3)
"""Groups of the card's lines in their order, see ``CardLine.group``."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


@dataclass(frozen=True)
class CardLine:
    """A line of the card. Values are in the SI unit of the row's table.

    Attributes:
        title: what was measured, such as ``Disk, 4 KiB random reads``.
        place: threads, processes or streams, such as ``2 threads``; for several nodes their number.
        point: name of the row's point.
        subsystem: subsystem of the row.
        value: value of the row; for several nodes the median of ``runs``; None if nothing was measured.
        runs: values of the runs; for several nodes the value of each node.
        text: the value with its unit.
        range_text: the lowest and the highest of ``runs``; empty for a single run.
        group: ``RATED`` if a share of the limit is known, ``NOT_THIS_DEVICE`` if a reader may not use the
            value, otherwise ``WITHOUT_LIMIT``.
        share: share of the limit that the value reaches; None without a limit.
        share_text: the share in percent; empty without a limit.
        run_shares: share of the limit that each of ``runs`` reaches at its own clock; empty without a limit.
        reference_share: share of the limit that the best reference reaches at the same point.
        reference_text: name of the reference with its share of the limit, or with its value.
        trust: whether a reader may use the value.
        reason: why a reader may not use it, in at most six words, and how the CPUs of a row of memory were placed.
    """

    title: str
    place: str
    point: str
    subsystem: str
    value: float | None
    runs: tuple[float, ...]
    text: str
    range_text: str
    group: int
    share: float | None
    share_text: str
    run_shares: tuple[float, ...]
    reference_share: float | None
    reference_text: str
    trust: Trust
    reason: str


def card_lines(frames: CampaignFrames) -> list[CardLine]:
    """Return the card's lines for all headlines that the campaign planned to measure, in their groups.

    A line is about one class of nodes: the largest of which the headline has rows. A solution of
    HPL that takes less than a minute has no line.
    """
    # Only the headlines of HPL name an instrument.
    is_small = frames.warnings["code"].eq("small-solve")
    small = set(frames.warnings.loc[is_small, "point"])
    lines = []
    for headline, rows in rows_of_headlines(frames):
        largest_class = rows["node_class"].min()  # the classes are named A, B, ... by falling size
        of_largest_class = rows[rows["node_class"].eq(largest_class)]
        if headline.instrument and small.issuperset(rows["point"]):
            continue
        lines.append(line_of(frames, headline, list(schema.lines(of_largest_class))))
    return sorted(lines, key=attrgetter("group"))


# -- the rows of a headline


def rows_of_headlines(frames: CampaignFrames) -> Iterator[tuple[Headline, pd.DataFrame]]:
    """Yield each headline that the campaign planned to measure, with the headline's row on each node.

    A table of rates without any headline of ``HEADLINES`` gets a headline for its first workload.
    """
    planned = {}
    for headline in HEADLINES:
        rows = rows_of_headline(frames.rows, headline)
        if not rows.empty:
            planned[headline] = rows
    covered = {headline.table for headline in planned}
    for name in UNITS:  # the tables of rates
        if name not in covered and frames.rows["table"].eq(name).any():
            headline = headline_of(frames, name)
            planned[headline] = rows_of_headline(frames.rows, headline)
    # Of all rows of a headline, choose one for each node, such as the largest block with the most
    # threads.
    for headline, rows in planned.items():
        chosen = choose(rows, headline, frames.nodes)
        if not chosen.empty:
            yield headline, chosen


def headline_of(frames: CampaignFrames, table: str) -> Headline:
    """Return a headline for the first workload of a table: ``Memory, sequential reads``."""
    rows = frames.rows[frames.rows["table"].eq(table) & frames.rows["is_own"]]
    workload = str(rows["workload"].iloc[0])
    what = words(f"workload {workload}")
    title = f"{SUBSYSTEMS[BY_NAME[table].subsystem].title}, {what}"
    return Headline(title, table, workload, UNITS[table])


def first_row(frames: CampaignFrames, subsystem: str) -> Line | None:
    """Return the row of a subsystem's first headline that was measured; None if none was.

    For several nodes, return the row of the node whose value is nearest to the median of all nodes.
    """
    for _, rows in rows_of_headlines(frames):
        measured = rows[rows["n"].gt(0) & rows["is_own"] & rows["subsystem"].eq(subsystem)]
        if not measured.empty:
            return middle_of(list(schema.lines(measured)))
    return None


# -- a line


def line_of(frames: CampaignFrames, headline: Headline, rows: Sequence[Line]) -> CardLine:
    """Return the line of a headline from its row, or from the rows of several nodes.

    The value of several nodes is their median, without a reference. The limit is that of the node nearest to
    the median.
    """
    measured = [row for row in rows if row.n]
    row = middle_of(measured) if measured else rows[0]
    # The runs are the repetitions of one node, or one value of each of several nodes.
    if len(measured) > 1:
        runs = tuple(float(each.value) for each in measured)
        value = statistics.median(runs)
    else:
        runs = values_of(frames.runs, row, "value")
        value = row.value
    shares: tuple[float, ...] = ()
    share = row.efficiency
    if share is not None:
        if len(measured) > 1:
            # The limits of nodes differ by their clocks.
            shares = tuple(each.efficiency for each in measured if each.efficiency is not None)
            share = statistics.median(shares)
        else:
            shares = values_of(frames.runs, row, "share")
    trust, reason = judge(frames, row, measured)
    # Each of several nodes has another reference beside its value, and one of what was not measured says no more.
    has_reference = len(measured) < 2 and trust != Trust.NO
    reference = best_reference(frames.rows, row) if has_reference else None
    # The placement of the CPUs makes memory faster or slower by a factor.
    if len(measured) == 1 and row.subsystem == "memory":
        placed = [note.short for note in notes_of(frames, row) if note.code == "placement"]
        reason = "; ".join(dict.fromkeys(filter(None, [reason, *placed])))
    # A row that several nodes measured together has their number as its variant.
    nodes = BY_NAME[row.table].variant_label(row.variant)
    title = headline.title.format(block=size(row.block_bytes), nodes=nodes)
    # Others' programs, and peakmark's kernel with narrow instructions, may compute otherwise.
    if row.printed_in or "narrower" in row.warnings:
        title = title.removesuffix(" multiply-add")
    if row.printed_in:
        # Only of peakmark's kernels it is known where their data lie.
        title = title.replace("DRAM", "Memory")
    elif '"stores": "libc"' in row.settings:
        title = title.replace("copy", "memcpy")
    return CardLine(
        title=title,
        place=place_of(row, measured),
        point=row.point,
        subsystem=row.subsystem,
        value=value,
        runs=runs,
        text=amount(value, headline.unit),
        range_text=range_of(runs, headline.unit),
        group=group_of(share, trust),
        share=share,
        share_text="" if share is None else typeset(f"{percent(share)}%"),
        run_shares=shares,
        reference_share=reference.efficiency if reference else None,
        reference_text=reference_text(reference, headline.unit),
        trust=trust,
        reason=reason,
    )


def group_of(share: float | None, trust: Trust) -> int:
    """Return the group of a line: see ``CardLine.group``."""
    if trust == Trust.NO:
        return NOT_THIS_DEVICE
    return WITHOUT_LIMIT if share is None else RATED


def range_of(runs: Sequence[float], unit: str) -> str:
    """Return the lowest and the highest run, such as ``262 to 264 GFLOP/s``; empty for a single run."""
    if len(runs) < 2:
        return ""
    low = amount(min(runs), unit)
    high = amount(max(runs), unit)
    if low == high:
        return high
    # The lower value has no unit if that of the higher one is the same.
    scale = high.split()[1]
    return f"{low.removesuffix(scale).rstrip()} to {high}"


def middle_of(rows: Sequence[Line]) -> Line:
    """Return the row whose value is nearest to the median of all rows."""
    median = statistics.median([row.value for row in rows])
    return min(rows, key=lambda row: abs(row.value - median))


def values_of(runs: pd.DataFrame, row: Line, column: str) -> tuple[float, ...]:
    """Return a column of the runs of a row in the order of its repetitions."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    kept = runs[is_of_row & runs["kept"]].sort_values("repetition", kind="stable")
    return tuple(kept[column].tolist())


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit, such as ``270 GFLOP/s``; a dash without a value."""
    if value is None:
        return "–"
    return typeset(quantity(value, unit, DIGITS))


def place_of(row: Line, measured: Sequence[Line]) -> str:
    """Return the number of threads and, for several nodes, of nodes: ``8 threads, 16 nodes``."""
    # The number behind a word such as ``cores`` is 0 until a node has measured the row.
    words = Labels.of(row).many(row.concurrency) if row.concurrency else row.concurrency_word
    if len(measured) < 2:
        return str(words)
    noun = "pair" if "+" in row.node else "node"
    return f"{words}, {plural(len(measured), noun)}"


def best_reference(rows: pd.DataFrame, row: Line) -> Line | None:
    """Return the best reference of a point that may be compared with peakmark's kernel and is not wrong."""
    if not row.is_own:
        return None
    others = rows[rows["point"].eq(row.point) & rows["is_comparable"] & rows["wrong_codes"].eq("")]
    is_time = BY_NAME[row.table].lower_is_better
    ordered = others.sort_values("value", ascending=is_time, kind="stable")
    return next(schema.lines(ordered), None)


def reference_text(reference: Line | None, unit: str) -> str:
    """Return a reference with its share of the limit, or with its value if no limit is known."""
    if reference is None:
        return ""
    value = amount(reference.value, unit)
    if reference.efficiency is not None:
        value = typeset(f"{percent(reference.efficiency)}%")
    care = ", care" if reference.trust == Trust.CARE else ""
    return f"{reference.program} {value}{care}"


# -- whether to trust it


def judge(frames: CampaignFrames, row: Line, measured: Sequence[Line]) -> tuple[Trust, str]:
    """Return whether a reader may use the value of a row, and the reason in a few words; empty without one.

    ``measured`` has the row of each node that has a value. The least trust among the nodes counts. The
    reason is the first warning of a node, with the largest amount, and says how many nodes have this trust. If
    that is *no* on fewer than half of the nodes, the result is *care*. If all nodes have *ok*, the reason says how
    many are slow.
    """
    if not row.n:
        return Trust.NO, "not measured"
    for trust in (Trust.NO, Trust.CARE):
        doubtful = [each for each in measured if each.trust == trust]
        if doubtful:
            gravest = min([notes_of(frames, each)[0] for each in doubtful], key=gravity)
            reason = typeset(gravest.short)
            if len(doubtful) < len(measured):
                reason += f" on {len(doubtful)} of {len(measured)}"
            is_minority = 2 * len(doubtful) < len(measured)
            return Trust.CARE if is_minority else trust, reason
    slow = sum(bool(each.is_slow) for each in measured)
    if slow:
        return Trust.OK, f"{slow} of {plural(len(measured), 'node')} slow"
    return Trust.OK, ""


def notes_of(frames: CampaignFrames, row: Line) -> list[Line]:
    """Return the warnings on the value of a row, the gravest first."""
    warnings = frames.warnings
    is_of_row = warnings["point"].eq(row.point) & warnings["about"].isin(["", row.instrument])
    return sorted(schema.lines(warnings[is_of_row]), key=gravity)


def gravity(note: Line) -> tuple[float, ...]:
    """Return a sort key of warnings, lowest for the gravest.

    Warnings of least trust come first. Of these, those that say that something else was measured come first, then the
    disturbances, then all others. Within a rank, the largest amount comes first.
    """
    causes = [*OF_ANOTHER, *schema.DISTURBANCES]
    rank = causes.index(note.code) if note.code in causes else len(causes)
    return ORDER.index(note.trust), rank, -note.amount


# -- page one

MOST_CAUSES = 3
"""Largest number of causes on page one: more cannot be read in a minute."""


def build(frames: CampaignFrames) -> dict[str, Any]:
    """Return page one, as words and numbers without markup.

    Returns:
        A mapping with these keys:

        - ``title``: title of the campaign.
        - ``machine``: the processor, with its cores.
        - ``verdict``: what the machine reaches, see ``verdict``.
        - ``box``: name and text of each line on the machine.
        - ``card``: lines of the score card, see ``CardLine``.
        - ``legend``: what the bars of the card show.
        - ``causes``: sentences on what limits the machine.
    """
    card = card_lines(frames)
    box = [*appendix.box(frames), ["Measured", measured_when(frames)]]
    if frames.campaign["promises"]:
        box.append(["Promises", judge_promises(frames)[1]])
    return {
        "title": frames.campaign["name"],
        "machine": dict(box).get("Processor", "Unknown processor"),
        "verdict": verdict(card),
        "box": box,
        "card": [asdict(line) for line in card],
        "legend": f"{words('card-legend')}.",
        "causes": list(causes(frames))[:MOST_CAUSES],
    }


def verdict(card: Sequence[CardLine]) -> str:
    """Return one line: the shares of the limits that the parts of a machine reach, and why others have none.

    A part is the first word of the titles of its lines, such as L3, DRAM or Disk; each line of the CPU
    and of the network is a part. A line without a share is named in full if its part has one.

    Args:
        card: lines in the order of their groups.
    """
    # Part -> its lines. A line without a share has its title as key if its part has a share.
    lines_of: dict[str, list[CardLine]] = defaultdict(list)
    for line in card:
        title = line.title.replace(",", "")
        part = title if line.subsystem in ("cpu", "network") else title.split()[0]
        is_alone = line.group != RATED and part in lines_of and lines_of[part][0].group == RATED
        lines_of[title if is_alone else part].append(line)
    rated, careful, unrated = [], [], []
    for name, lines in lines_of.items():
        shares = [line.share for line in lines if line.share is not None]
        if lines[0].group == RATED:
            # The lowest and the highest share; only one of them if they are equal.
            rated.append(f"{name} {value_range(percent(min(shares)), percent(max(shares)))}%")
        else:
            reasons = dict.fromkeys(
                "no limit known" if line.group == WITHOUT_LIMIT else line.reason for line in lines
            )
            unrated.append(f"{name} ({', '.join(reasons)})")
        # The part is named if all its lines need care, otherwise the lines that do.
        doubtful = [line.title.replace(",", "") for line in lines if line.trust == Trust.CARE]
        careful += [name] if len(doubtful) == len(lines) else doubtful
    parts = []
    if rated:
        parts.append(f"{', '.join(rated)} of the limit")
    if careful:
        parts.append(f"use with care: {', '.join(careful)}")
    if unrated:
        parts.append(f"not rated: {', '.join(unrated)}")
    return typeset(capitalised("; ".join(parts)))


def measured_when(frames: CampaignFrames) -> str:
    """Return when a campaign was measured, how long it took, and how often each row was measured."""
    times = frames.campaign["times"]
    if not times["records"]:
        return "nothing measured yet"
    first = datetime.fromisoformat(times["first"]).astimezone(UTC)
    own = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    runs = "no run"
    if len(own):
        fewest = "" if own["n"].nunique() == 1 else f"{own['n'].min()} to "
        runs = fewest + plural(int(own["n"].max()), "run")
    if frames.printed_in:
        return f"by others: numbers printed in the {frames.printed_in}"
    took = duration(times["elapsed"])
    hosts = frames.runs.loc[frames.runs["kept"], "host"].nunique()
    if hosts > 1:
        took += f" on {plural(hosts, 'node')}"
    return f"{date(first)} from {first:%H:%M} UTC, in {took}; each value of peakmark from {runs}"


# -- what limits it


def causes(frames: CampaignFrames) -> Iterator[str]:
    """Yield sentences on what limits the machine, in the order of the rows."""
    measured = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    for text in dict.fromkeys(measured["limit_finding"]):
        if text:
            yield typeset(f"{capitalised(text)}.")


# -- as text

WIDTH = 80
"""Width of the card in characters: the default width of a terminal."""
BAR = 10
"""Width in characters of a bar that reaches the limit."""
DOCUMENTS = {"report": "report.pdf", "page": "report.html", "tables": "tables"}
"""Name of a result in the summary -> path in the campaign's folder."""
COLOURS = {Trust.OK: "green", Trust.CARE: "yellow", Trust.NO: "red"}
"""Trust -> colour of the word for it."""


def terminal(page: Mapping[str, Any], *, is_coloured: bool = False) -> str:
    """Return page one for a terminal of 80 columns.

    Args:
        page: see ``build``.
        is_coloured: whether to use the colours of ANSI terminals.
    """
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=WIDTH,
        force_terminal=is_coloured,
        color_system="standard" if is_coloured else None,
        no_color=not is_coloured,
        highlight=False,
    )
    console.print(pairs_table(page["box"]))
    console.print()
    console.print(card_table(page["card"]))
    if page["causes"]:
        console.print()
        console.print(Text("What limits it", style="bold"))
        for cause in page["causes"]:
            console.print(Text(cause))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(lines)


def pairs_table(pairs: list[list[str]]) -> Table:
    """Return a grid of names and texts.

    They are of the type ``Text``: in a plain string, ``rich`` would take brackets for markup.
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    for name, text in pairs:
        grid.add_row(Text(name), Text(text))
    return grid


def card_table(card: list[Mapping[str, Any]]) -> Table:
    """Return the lines of the score card: what, value, share of the limit, bar and trust."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("of limit", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("trust")
    for line in card:
        trust = Text(f"{line['trust']} ", style=COLOURS[line["trust"]])
        # Rich breaks a line at a no-break space too: leave it out, to keep the sign with its
        # number.
        trust.append(line["reason"].replace("\u00a0%", "%"))
        table.add_row(Text(line["title"]), Text(line["text"]), line["share_text"], bar(line), trust)
    return table


def bar(line: Mapping[str, Any]) -> str:
    """Return the share of the limit as a bar.

    A value without a limit has no bar: any other bar would be read as a share of the limit.
    """
    if line["share"] is None:
        return ""
    filled = round(BAR * min(line["share"], 1.0))
    return "".ljust(filled, "█").ljust(BAR, "·")


def markdown(page: Mapping[str, Any]) -> str:
    """Return page one as Markdown."""
    lines = [f"# {page['title']}", "", f"{page['machine']}: {page['verdict']}.", ""]
    lines += [f"- {name}: {text}" for name, text in page["box"]]
    lines += ["", "| | measured | lowest to highest | of limit | reference | trust |"]
    lines.append("|---|---:|---|---:|---|---|")
    for line in page["card"]:
        trust = f"{line['trust']}: {line['reason']}".removesuffix(": ")
        title = f"{line['title']}, {line['place']}"
        values = [line["text"], line["range_text"], line["share_text"]]
        cells = [title, *values, line["reference_text"], trust]
        # A | within a cell is escaped by a backslash, chr(92): an expression of an f-string may hold none.
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    if page["causes"]:
        lines += ["", "**What limits it**", "", *page["causes"]]
    return "\n".join([*lines, ""])


def results_of(frames: CampaignFrames, folder: Path) -> dict[str, Any]:
    """Return what ``summary.txt.j2`` prints below the card.

    The keys are:

    - ``is_complete``: whether no cell is missing.
    - ``documents``: (name, path) of each document that exists.
    - ``impossible``: reason -> cells that this machine cannot measure.
    """
    documents = []
    for name, place in DOCUMENTS.items():
        if (folder / place).exists():
            documents.append((name, folder / place))
    return {
        "is_complete": not frames.campaign["missing"],
        "documents": documents,
        "impossible": impossible(frames),
    }


def impossible(frames: CampaignFrames) -> dict[str, list[str]]:
    """Return reason -> cells that this machine cannot measure; the reason of most cells comes first."""
    runs: pd.DataFrame = frames.runs[frames.runs["status"].eq("unavailable")]
    reasons = {}
    for reason, cells in runs.drop_duplicates("cell").groupby("reason", sort=False)["cell"]:
        reasons[str(reason)] = cells.tolist()
    return dict(sorted(reasons.items(), key=lambda entry: -len(entry[1])))


# -- what to know before


def build_caveats(frames: CampaignFrames) -> list[Message]:
    """Return the caveats of a campaign, the most important first.

    Together they have about a hundred words at most. They do not repeat the score card's remarks, nor
    problems that its next steps solve.
    """
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    scale = frames.campaign["config"].get("scale", 1)
    caveats = [
        *faulty_parts(frames),
        *doubtful_rows(measured),
        *disturbed_rows(frames, measured),
        *parts_of_nodes(frames),
    ]
    of_campaign = frames.findings["table"].eq("")
    for text in frames.findings.loc[of_campaign, "text"]:
        caveats.append(message("remark", remark=text.removesuffix(".")))
    if scale < 1:
        caveats.append(message("scaled", scale=scale))
    for reason in frames.campaign.get("unplanned", {}).values():
        caveats.append(message("unplanned", reason=reason))
    if len(measured) < len(own):
        caveats.append(message("holes", rows=len(own) - len(measured), of=len(own)))
    return caveats


def faulty_parts(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a caveat for each core that computed wrong results more than once, each GPU with memory errors, and veth."""
    warnings = frames.warnings
    code, is_named = warnings["code"], warnings["subject"].ne("")
    # A wrong solution of HPL has the same code, but no core: it is about no subject.
    cores = warnings.loc[code.eq("wrong-result") & is_named, "subject"]
    for core, count in cores.value_counts().items():
        if count > 1:
            yield message("wrong-result", Trust.NO, case="core-again", core=core, count=count)
    # Only errors that a GPU could not correct are about a subject, the GPU.
    is_faulty = code.eq("hardware-errors") & is_named
    is_veth = code.eq("loopback") & warnings["trust"].eq(Trust.CARE)
    notes = warnings[is_faulty | is_veth].drop_duplicates(["code", "subject"])
    for note in schema.lines(notes):
        yield message("remark", remark=str(Sentence(note.text, note.remedy)))


def doubtful_rows(measured: pd.DataFrame) -> Iterator[Message]:
    """Yield a caveat with the number of rows not to use, and one with the number of rows to use with care."""
    for trust in (Trust.NO, Trust.CARE):
        rows = int(measured["trust"].eq(trust).sum())
        if rows:
            yield message("doubtful", case=str(trust), rows=rows, of=len(measured))


def disturbed_rows(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[Message]:
    """Yield a caveat with the number of rows whose values other activity may have changed.

    Only warnings that lower the trust count (``is_disturbance``). Rows whose undisturbed runs
    confirm the value count as ``more`` if a disturbed run counts.
    """
    is_changed = schema.is_disturbed(measured, frames.warnings)
    rows = int(is_changed.sum())
    if rows:
        counted = frames.runs[frames.runs["kept"] & frames.runs["causes"].ne("")]
        of_kernels = counted.loc[counted["instrument"].isin(measured["instrument"]), "point"]
        more = int((measured["point"].isin(of_kernels) & ~is_changed).sum())
        yield message("disturbed-rows", rows=rows, of=len(measured), more=more)


def parts_of_nodes(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a caveat if a row of the score card used a part of the node, or narrow vector instructions.

    Only rows of CPU and memory can have such a caveat. A share of the limit of four cores says nothing
    about a node with 128 cores.
    """
    for subsystem, part in SUBSYSTEMS.items():
        if not part.pinned:  # neither CPU nor memory
            continue
        row = first_row(frames, subsystem)
        if row is None:
            continue
        used, cores = cores_used(frames.runs, row)
        if used < cores:
            yield message("part-of-node", resource=part.title, used=used, cores=cores)
        for note in notes_of(frames, row):
            if note.code == "narrower":
                advice = Sentence(note.text, note.remedy)
                # Keep the code of the note, which tells this caveat from other remarks.
                yield replace(message("remark", remark=str(advice)), code=note.code)


def cores_used(runs: pd.DataFrame, row: Line) -> tuple[int, int]:
    """Return the largest number of cores that a row's threads had, and the number of the node's cores.

    Both are 0 if they are unknown.
    """
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    # A run states the cores that the job was given together with those of the node, which may be
    # unknown.
    known = runs[is_of_row & runs["kept"]].dropna(subset=["placed_cores", "allowed_cores"])
    pairs = zip(known["placed_cores"], known["node_cores"].fillna(0), strict=True)
    used, cores = max(pairs, default=(0, 0))
    return int(used), int(cores)
