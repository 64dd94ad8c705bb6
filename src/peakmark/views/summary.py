"""Page one as text: for the terminal, and as Markdown to paste into a message or an issue."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peakmark.messages import message
from peakmark.rows.schema import CampaignFrames
from peakmark.views.score_card import Trust

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
    """Return a text for ``rich`` without control characters; ``rich`` reads no markup in it."""
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
