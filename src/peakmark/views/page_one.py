"""Page one: the machine, the score card, what limits the machine, and what to know before using numbers.

``build`` returns one JSON value that the terminal, Markdown, ``summary.json``, PDF and HTML show.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peakmark.catalogue import SUBSYSTEMS
from peakmark.errors import Sentence
from peakmark.formatting import capitalised, date, duration, plural, typeset
from peakmark.messages import Message, Severity, message, words
from peakmark.rows import schema
from peakmark.rows.names import DISTURBANCES
from peakmark.rows.schema import CampaignFrames
from peakmark.views import score_card
from peakmark.views.report import appendix
from peakmark.views.score_card import Line, Trust

MOST = 3
"""Largest number of causes on page one: more cannot be read in a minute."""
CAUSES = ("power-limited", "hot", "throttled", "cpu-quota", "io-limit", "shaped", "below-nominal")
"""Codes of warnings that say why a row stays below its limit."""


def build(frames: CampaignFrames) -> dict[str, Any]:
    """Return page one, as words and numbers without markup.

    Returns:
        A mapping with these keys:

        - ``title``: title of the campaign.
        - ``box``: name and text of each line on the machine.
        - ``card``: lines of the score card, see ``score_card.CardLine``.
        - ``dots``: what each dot of the card stands for: ``runs`` or ``nodes``.
        - ``causes``: sentences on what limits the machine.
    """
    card = score_card.build(frames)
    return {
        "title": frames.campaign["name"],
        "box": [*appendix.box(frames), ["Measured", measured_when(frames)]],
        "card": [asdict(line) for line in card],
        "dots": "nodes" if any("node" in line.place for line in card) else "runs",
        "causes": list(causes(frames))[:MOST],
    }


def measured_when(frames: CampaignFrames) -> str:
    """Return when a campaign was measured, how long it took, and how often each row was measured."""
    times = frames.campaign["times"]
    if not times["records"]:
        return "nothing measured yet"
    first = datetime.fromisoformat(times["first"]).astimezone(UTC)
    own = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    runs = plural(int(own["n"].median()), "run") if len(own) else "no run"
    took = duration(times["elapsed"])
    return f"{date(first)} from {first:%H:%M} UTC, in {took}; {runs} of each row"


# -- what limits it


def causes(frames: CampaignFrames) -> Iterator[str]:
    """Yield sentences on what limits the machine, the most important first."""
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    for text in dict.fromkeys(text for text in measured["limit_finding"] if text):
        yield typeset(f"{capitalised(text)}.")
    yield from causes_in_warnings(frames, measured)


def causes_in_warnings(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each warning in ``CAUSES`` that rows have, with the number of these rows."""
    warnings = frames.warnings
    named = warnings[warnings["code"].isin(CAUSES) & warnings["point"].isin(measured["point"])]
    rows = Counter(named.drop_duplicates(["point", "code"])["code"])
    for code, count in rows.most_common():
        line = next(schema.lines(named[named["code"].eq(code)]))
        yield typeset(f"In {count} of {len(measured)} rows {line.text}.")


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
        page: see ``page_one.build``.
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
    if any(line["reference_share"] is not None for line in page["card"]):
        console.print(Text("◊ the best reference program", style="dim"))
    for heading, lines in paragraphs(page):
        console.print()
        console.print(Text(heading, style="bold"))
        for line in lines:
            # Do not wrap commands: a wrapped command cannot be pasted.
            console.print(shown(line), soft_wrap=line.startswith("peakmark"))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(lines)


def pairs_table(pairs: list[list[str]]) -> Table:
    """Return a grid of names and texts."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    for name, text in pairs:
        grid.add_row(shown(name), shown(text))
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
        # Without the space, the line cannot break before the sign.
        trust.append_text(shown(line["reason"].replace("\u00a0%", "%")))
        table.add_row(
            shown(line["title"]), shown(line["text"]), line["share_text"], bar(line), trust
        )
    return table


def shown(text: str) -> Text:
    """Return a text in which ``rich`` reads no markup."""
    return Text(text)


def bar(line: Mapping[str, Any]) -> str:
    """Return the share of the limit as a bar, with a mark at the reference's share.

    A value without a limit has no bar: any other bar would be read as a share of the limit.
    """
    if line["share"] is None:
        return ""
    filled = round(BAR * min(line["share"], 1.0))
    cells = list("█" * filled + "·" * (BAR - filled))
    if line["reference_share"] is not None:
        place = round(BAR * min(line["reference_share"], 1.0))
        cells[max(0, place - 1)] = "◊"
    return "".join(cells)


def paragraphs(page: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and lines of each part below the card, without empty parts."""
    if page["causes"]:
        yield "What limits it", list(page["causes"])


def markdown(page: Mapping[str, Any]) -> str:
    """Return page one as Markdown."""
    lines = [f"# {page['title']}", ""]
    lines += [f"- {name}: {text}" for name, text in page["box"]]
    lines += ["", "| | measured | of limit | reference | trust |", "|---|---:|---:|---|---|"]
    for line in page["card"]:
        trust = f"{line['trust']}: {line['reason']}".removesuffix(": ")
        title = f"{line['title']}, {line['place']}"
        cells = [title, line["text"], line["share_text"], line["reference_text"], trust]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    if page["causes"]:
        lines += ["", "**What limits it**", "", *page["causes"]]
    return "\n".join([*lines, ""])


def results_of(frames: CampaignFrames, folder: Path) -> dict[str, Any]:
    """Return what ``summary.txt.j2`` prints below the card.

    The keys are:

    - ``is_complete``: whether no cell is missing.
    - ``documents``: name of each existing document -> its path.
    - ``again``: a sentence on repetitions that were disturbed and measured again.
    - ``impossible``: reason -> cells that this machine cannot measure.
    """
    documents = []
    for name, place in DOCUMENTS.items():
        if (folder / place).exists():
            documents.append((name, folder / place))
    runs = frames.runs
    again = int(runs.loc[runs["disturbed"].ne(""), "cell"].nunique())
    return {
        "is_complete": not frames.campaign["missing"],
        "documents": documents,
        "again": message("measured-again", count=again).text if again else "",
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
    scale = frames.campaign["config"].get("scale")
    caveats = [
        *wrong_cores(frames),
        *doubtful_rows(frames, measured),
        *disturbed_rows(frames, measured),
        *parts_of_nodes(frames),
    ]
    if isinstance(scale, int | float) and scale < 1:
        caveats.append(message("scaled", scale=scale))
    for reason in frames.campaign.get("unplanned", {}).values():
        caveats.append(message("unplanned", reason=reason))
    if len(measured) < len(own):
        caveats.append(message("holes", rows=len(own) - len(measured), of=len(own)))
    return caveats


def wrong_cores(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a caveat for each core that computed wrong results more than once."""
    wrong = frames.warnings[frames.warnings["code"].eq("wrong-core")]
    for core, count in Counter(wrong["subject"]).items():
        if count > 1:
            yield message("wrong-core", Severity.WRONG, case="again", core=core, count=count)


def doubtful_rows(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[Message]:
    """Yield a caveat with the number of wrong rows, and one with the number of other rows with warnings."""
    wrong = set(measured.loc[measured["severity"].eq(Severity.WRONG), "point"])
    warnings = warnings_on(frames, measured)
    warned = set(warnings.loc[warnings["severity"].ne(Severity.NOTE), "point"]) - wrong
    for severity, points in ((Severity.WRONG, wrong), (Severity.UNSURE, warned)):
        if points:
            yield message("doubtful", case=str(severity), rows=len(points), of=len(measured))


def disturbed_rows(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[Message]:
    """Yield a caveat that lists the disturbances of rows, each with its number of rows.

    A disturbance that makes no row unsure is left out. The numbers are those of the chapter Remarks, so
    they include rows whose other runs confirm the value.
    """
    warnings = warnings_on(frames, measured)
    counts = warnings.groupby("code")["point"].nunique()
    doubtful = set(warnings.loc[warnings["severity"].ne(Severity.NOTE), "code"])
    parts = []
    for code in DISTURBANCES:
        if code in doubtful:
            parts.append(words(f"in-short {code}", rows=int(counts[code])))
    if parts:
        yield message("disturbed-rows", parts=tuple(parts), of=len(measured))


def warnings_on(frames: CampaignFrames, measured: pd.DataFrame) -> pd.DataFrame:
    """Return the warnings and notes on the values of peakmark's kernels, also those of the campaign."""
    instruments = measured.set_index("point")["instrument"]
    warnings = frames.warnings
    own = warnings["point"].map(instruments)
    is_on_own = warnings["about"].eq("") | warnings["about"].eq(own)
    return warnings[is_on_own & own.notna()]


def parts_of_nodes(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a caveat if the score card shows only a part of the node, or narrow vector instructions.

    Only CPU and memory can have one. A share of the limit of four cores says nothing about a node with
    128 cores.
    """
    for subsystem, part in SUBSYSTEMS.items():
        if not part.pinned:
            continue
        row = score_card.first_row(frames, subsystem)
        if row is None:
            continue
        used, cores = cores_used(frames.runs, row)
        if used < cores:
            yield message("part-of-node", resource=part.title, used=used, cores=cores)
        for note in score_card.notes_of(frames, row):
            if note.code == "narrower":
                advice = Sentence(note.text, note.remedy)
                yield replace(message("remark", remark=str(advice)), code=note.code)


def cores_used(runs: pd.DataFrame, row: Line) -> tuple[int, int]:
    """Return the largest number of cores that a row's threads had, and the node's; 0 if unknown."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    known = runs[is_of_row & runs["kept"]].dropna(subset=["placed_cores", "allowed_cores"])
    pairs = zip(known["placed_cores"], known["node_cores"].fillna(0), strict=True)
    used, cores = max(pairs, default=(0, 0))
    return int(used), int(cores)
