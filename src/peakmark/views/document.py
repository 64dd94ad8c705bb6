"""The content of the report as one JSON value for the templates, without markup.

``build`` lists the parts of the report in their order. Chapters that an author writes in Markdown become
trees of plain values, so that the author's markup reaches neither PDF nor HTML.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from peakmark.catalogue import CHAPTERS, KERNELS, SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.errors import ConfigError, tell
from peakmark.formatting import date, plural, typeset
from peakmark.resources import ROOT, of_user
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import TABLES
from peakmark.views import appendix, fleet_report, layout_tables, score_card, sections
from peakmark.views.table import explain, is_many

HEADINGS = {
    "caveats": "Before you use these numbers",
    "fleet": "Slow nodes",
    "remarks": "Remarks",
    "method": "Method",
    "machine": "Machine",
    "kernels": "How each kernel measures",
    "problems": "Failures",
    "artifact": "Reproduction",
    "outputs": "Commands and outputs of the reference tools",
}
"""Key of a part -> heading of its chapter. Headings that only PDF or HTML has are in its template."""
PACKED = "text"
"""Folder of the author's chapters in a bundle."""


def build(frames: CampaignFrames, packed: Path | None = None) -> dict[str, Any]:
    """Return key -> content of each part of the report.

    ``rendering.collect`` adds the key ``figures`` with the sizes of the figures.

    Args:
        frames: the campaign.
        packed: folder of the author's chapters in a bundle. If it exists, it replaces the folder of
            ``report.text``.
    """
    layout = layout_tables.layout_of(frames)
    arranged = layout_tables.for_print(frames, layout)
    of_resources = sections.build(arranged, layout)
    page_one = score_card.build(arranged)
    return {
        "headings": HEADINGS,
        "meta": describe(frames, page_one["machine"]),
        "page_one": page_one,
        "slow": fleet_report.slow_paragraphs(frames),
        "overview": sections.overview(arranged),
        "caveats": build_caveats(arranged),
        "fleet": fleet_report.slow_table(frames),
        "sections": of_resources,
        "remarks": list_remarks(arranged, layout),
        "method": appendix.describe_method(arranged, layout),
        "machine": appendix.machines(frames),
        "problems": appendix.list_problems(frames),
        "artifact": appendix.describe_reproduction(frames),
        "outputs": appendix.list_outputs(frames, layout),
        "provenance": appendix.describe_provenance(frames),
        "chapters": build_chapters(frames, of_resources, packed),
    }


def describe(frames: CampaignFrames, machine: str) -> dict[str, Any]:
    """Return the top of page one, and facts of the campaign that the templates need.

    A campaign without a title in its configuration has the name of its ``machine``.
    """
    campaign = frames.campaign
    report = campaign["config"].get("report") or {}
    # Without records, the newest time is that of the epoch, 0.
    newest = datetime.fromisoformat(campaign["times"]["newest"])
    if newest.timestamp():
        day = date(newest)
    else:
        # Records without a time hold numbers that others published.
        day = "" if campaign["times"]["records"] else "nothing measured yet"
    authors = authors_of(report)
    return {
        "title": str(report.get("title") or machine),
        "author": author_line(authors),
        "authors": [author["name"] for author in authors],
        "course": ", ".join(str(report[key]) for key in ("course", "team") if report.get(key)),
        "date": day,
        "campaign": campaign["name"],
        "partial": bool(campaign["missing"]),
        "newest": newest.isoformat(),
        "partial_text": appendix.TEXT["partial"].format(
            missing=campaign["missing"], cells=plural(campaign["cells"], "planned cell")
        ),
        "has_layout": layout_tables.layout_of(frames) is not None,
    }


def authors_of(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return text and affiliation of each author in ``authors``, or of the single ``author``.

    ``authors`` and ``author`` are keys of the section ``report``. The text is the name, with id and email where
    they are given. The list is empty if no author is named.
    """
    named = report.get("authors") or []
    if not named and report.get("author"):
        named = [{"name": report["author"]}]
    authors = []
    for author in named:
        given = [author["name"], author.get("id"), author.get("email")]
        text = ", ".join(each for each in given if each)
        authors.append({"name": text, "affiliation": author.get("affiliation") or ""})
    return authors


def author_line(authors: list[dict[str, str]]) -> str:
    """Return the authors as text: ``Jane Doe, John Roe (IIT), Max Muster (TU Wien)``.

    The affiliation of neighbouring authors is printed once, after the last of them.
    """
    # With an id, an author has a comma already.
    comma = "; " if any("," in author["name"] for author in authors) else ", "
    parts = []
    for affiliation, members in groupby(authors, key=itemgetter("affiliation")):
        names = comma.join(author["name"] for author in members)
        if affiliation:
            names += f" ({affiliation})"
        parts.append(names)
    return comma.join(parts)


def list_remarks(frames: CampaignFrames, layout: Layout | None) -> list[list[str]]:
    """Return the remarks that tables show: short words, number of rows, and full sentence of each."""
    # Table -> programs that have a column: all of the table, or those of the layout.
    shown = {}
    for table in TABLES:
        instruments = {program.instrument for program in table.series}
        if layout is not None and layout.programs_of(table):
            instruments = layout.programs_of(table)
        shown[table.name] = instruments
    return explain(frames, shown)


def build_caveats(frames: CampaignFrames) -> list[str]:
    """Return the caveats of page one."""
    texts = [typeset(caveat.full_sentence) for caveat in score_card.build_caveats(frames)]
    # For many nodes, the tables of a layout are written as files, but not printed in the report.
    layout = layout_tables.layout_of(frames)
    if layout and is_many(frames):
        texts.append(appendix.TEXT["layout_of_nodes"].format(name=layout.name))
    return texts


# -- the author's chapters

Node = dict[str, Any]

BEFORE = ("introduction", "design")
"""Chapters before the results; all other chapters come after the results."""
KERNELS_TEXT = ROOT / "docs" / "kernels.md"
SHARED = "What they share"
"""Heading of the section on all kernels in ``KERNELS_TEXT``."""
NO_HEADING = 9
"""Level of a block that is not a heading: deeper than every heading."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
GROUPING = ("root", "inline", "thead", "tbody")
"""Types of nodes that only group others."""


def build_chapters(
    frames: CampaignFrames, of_resources: Sequence[Mapping[str, Any]], packed: Path | None = None
) -> dict[str, Any]:
    """Return the author's chapters; if there are any, also the chapter on the kernels.

    A draft (``report.draft``) has a hint in the place of each chapter that is still empty.

    Args:
        frames: the campaign.
        of_resources: the chapters of the resources.
        packed: as for ``build``.

    Returns:
        A mapping with these keys:

        - ``before``, ``behind``: chapters before and after the results, with ``title`` and ``blocks``.
        - ``subsystems``: title of a resource's chapter -> title of a table -> the author's blocks
          below this table. Blocks below all tables have the title "".
        - ``kernels``: blocks of the chapter on the kernels.

    Raises:
        ConfigError: a chapter cannot be read, or contains an image.
    """
    report = frames.campaign["config"].get("report") or {}
    written, has_text = {}, False
    for key, path in texts_of(report, packed).items():
        chapter = read_chapter(key, path)
        if chapter["blocks"]:
            has_text = True
        elif report.get("draft"):
            chapter["blocks"] = prompt(path)
        if chapter["blocks"]:
            written[key] = chapter
    before, behind = [], []
    for key, chapter in written.items():
        if key in BEFORE:
            before.append(chapter)
        elif key not in SUBSYSTEMS:
            behind.append(chapter)
    # ``instruments`` also has the references: the chapter describes only peakmark's kernels among
    # them.
    of_kernels = []
    if has_text:
        of_kernels = kernels(set(frames.campaign["instruments"]) & set(KERNELS.values()))
    return {
        "before": before,
        "subsystems": in_sections(written, of_resources),
        "behind": behind,
        "kernels": of_kernels,
    }


def texts_of(report: Mapping[str, Any], packed: Path | None = None) -> dict[str, Path]:
    """Return chapter -> its file in the folder that ``report.text`` names, in the order of the report.

    The folder ``packed`` of a bundle counts first. Print a hint if neither is on this machine.
    """
    name = report.get("text")
    if not isinstance(name, str):
        return {}
    folder = of_user(name)
    if packed is not None and packed.is_dir():
        folder = packed
    if not folder.is_dir():
        tell(f"report.text names {name!r}, which is no folder here: its chapters are left out")
        return {}
    paths = {key: folder / f"{key}.md" for key in CHAPTERS}
    return {key: path for key, path in paths.items() if path.is_file()}


def read_chapter(key: str, path: Path) -> dict[str, Any]:
    """Return title and blocks of a chapter.

    A heading of level 1 at the beginning of the file is the title, except in a chapter on a
    resource: there it stays a block, below the title of the resource.

    Raises:
        ConfigError: the file cannot be read, or holds an image.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not readable as UTF-8 text ({error})") from error
    blocks = parse_markdown(text, str(path))
    title = key.capitalize()
    is_titled = bool(blocks) and blocks[0]["kind"] == "heading" and blocks[0]["level"] == 1
    if is_titled and key not in SUBSYSTEMS:
        title = plain_text(blocks.pop(0)["parts"]) or title
    return {"title": title, "blocks": blocks}


def prompt(path: Path) -> list[Node]:
    """Return a hint on what to write in an empty chapter: the first comment in its file.

    If the file has no comment, return no blocks.
    """
    comment = _COMMENT.search(path.read_text(encoding="utf-8"))
    if comment is None:
        return []
    what = " ".join(comment[0].removeprefix("<!--").removesuffix("-->").split())
    return parse_markdown(f"*To be written in {path.name}:* {what}", str(path))


def in_sections(
    written: Mapping[str, Mapping[str, Any]], of_resources: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the author's blocks on each resource by the table above them: ``subsystems`` of ``build_chapters``."""
    # Title of a resource's chapter -> key of the author's chapter on it.
    keys = {resource.title: key for key, resource in SUBSYSTEMS.items()}
    placed = {}
    for section in of_resources:
        chapter = written.get(keys[section["title"]])
        if chapter is None:
            continue
        tables = {part["title"] for part in section["parts"]}
        below: dict[str, list[Node]] = {"": []}
        table = ""
        for block in chapter["blocks"]:
            # A heading with the title of a table is left out: what follows is placed below this table.
            if block["kind"] == "heading" and block["level"] <= 2:
                title = plain_text(block["parts"])
                table = title if title in tables else ""
                if table:
                    continue
            below.setdefault(table, []).append(block)
        placed[section["title"]] = below
    return placed


def kernels(names: Collection[str]) -> list[Node]:
    """Return the sections of docs/kernels.md on the given kernels, and the section on all kernels."""
    blocks = parse_markdown(KERNELS_TEXT.read_text(encoding="utf-8"), str(KERNELS_TEXT))
    # Each heading begins a section, of which all blocks are taken or none.
    kept, is_taken = [], False
    for block in blocks:
        if block["kind"] == "heading":
            is_taken = plain_text(block["parts"]) in (SHARED, *names)
        if is_taken:
            kept.append(block)
    return kept


# -- Markdown


def parse_markdown(text: str, name: str) -> list[Node]:
    """Return the blocks of a Markdown text, without comments and without headings of empty sections.

    Args:
        text: Markdown.
        name: name of the text in errors.

    Raises:
        ConfigError: the text shows an image.
    """
    tree = SyntaxTreeNode(_PARSER.parse(_COMMENT.sub("", text)))
    return without_empty_sections(list(nodes_of(tree, name)))


def without_empty_sections(blocks: Sequence[Node]) -> list[Node]:
    """Return all blocks but the headings of empty sections.

    A section is empty if the next block is a heading of the same or a higher rank, or if none follows.
    """
    kept: list[Node] = []
    # Walk from the last block to the first. A heading is kept if its level is smaller than that of the block after
    # it. After the last block comes nothing, as if a heading of level 0 followed.
    level_behind = 0
    for block in reversed(blocks):
        if block["kind"] != "heading":
            level_behind = NO_HEADING
        elif block["level"] < level_behind:
            level_behind = block["level"]
        else:
            continue
        kept.append(block)
    return kept[::-1]


def nodes_of(node: SyntaxTreeNode, name: str) -> Iterator[Node]:
    """Yield a node as plain values; a node that only groups others is replaced by its children."""
    if node.type == "image":
        raise ConfigError(
            f"{name} shows an image, {node.attrs['src']!r}: a text of a report is words and tables; "
            "leave the image out"
        )
    parts: list[Node] = []
    for child in node.children:
        parts += nodes_of(child, name)
    if node.type in GROUPING:
        yield from parts
        return
    yield {
        "kind": node.type,
        "level": int(node.tag[1:]) if node.type == "heading" else 0,  # the tag is such as h2
        "text": node.content,
        "to": str(node.attrs.get("href", "")) if node.type == "link" else "",
        "parts": parts,
    }


def plain_text(nodes: Sequence[Node]) -> str:
    """Return the text of nodes as one string, without the marks of emphasis and the targets of links."""
    return "".join(word.get("text", "") + plain_text(word.get("parts", ())) for word in nodes)
