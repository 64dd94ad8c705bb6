"""The report as one HTML file that needs nothing else: the same texts as the PDF, with tables to
sort and to filter.

Everything that comes from a campaign is escaped, and a content security policy forbids the page to
load or to run anything that is not in it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from peakmark import documents
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.rows import layout_of
from peakmark.config.inputs import check_logo
from peakmark.report import document, pictures, prose
from peakmark.report.report import must_be_complete
from peakmark.resources import ROOT
from peakmark.tables import webtables

PARTS = ROOT / "reports" / "html"
PIECES = ("page.html", "report.css", "report.js")
_KINDS = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}

_PROBLEMS = "Cells without a result, and repeated cells"
_SHORT = {_PROBLEMS: "Failures"}

Data = Mapping[str, Any]


def build(
    campaign: Path | Analysis,
    partial: bool = False,
    target: Path | None = None,
    owner: Path | None = None,
) -> Path:
    """Write the page from a campaign's records and figures, by default as its ``report.html``; the
    path is returned. ``owner``: folder of the campaign whose it is, where the one given only
    stands for it.

    Errors: PeakmarkError when cells are missing and ``partial`` is not set, or a figure is missing;
    ConfigError for the logo.
    """
    judged = Analysis.of(campaign)
    results, rows = judged.results, judged.rows
    must_be_complete(results, partial, "html")
    figures = dict.fromkeys(pictures.names(rows, layout_of(results)), 100)
    data = document.build(
        results,
        rows,
        figures,
        str(results.report_config.get("logo") or "") or None,
        partial,
        page=True,
    )
    target = target or results.directory / "report.html"
    text = page(data, results.directory, results.mark)
    documents.write(target, text.encode(), owner or results.directory)
    return target


def page(data: Data, folder: Path, mark: str = ".") -> str:
    """The whole page. ``folder`` holds the figures that ``data`` names, ``mark`` is the decimal
    mark of its numbers.
    """
    meta, own = data["meta"], data["chapters"]
    frame, style, script = ((PARTS / name).read_text(encoding="utf-8") for name in PIECES)
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    kernels = [("How each kernel measures", prose.blocks(own["kernels"]))] if own["kernels"] else []
    chapters = [
        *_written(own["before"]),
        *((section["title"], _section(section, folder, mark)) for section in data["sections"]),
        *_written(own["behind"]),
        ("Machine", _machine(data["machine"])),
        ("Method", _method(data["method"])),
        *kernels,
        ("Every run", _runs(data["runs"], mark)),
        (_PROBLEMS, _problems(data["problems"])),
        ("Artifact description", _artifact(data["artifact"])),
        ("Provenance", _provenance(data["provenance"])),
    ]
    links = [
        ("Summary", "summary"),
        *((_SHORT.get(title, title), _anchor(title)) for title, _ in chapters),
    ]
    return Template(frame).substitute(
        policy=escape(policy),
        style=style,
        script=script,
        title=escape(meta["title"]),
        under="  ·  ".join(
            escape(str(meta[key])) for key in ("author", "course", "date") if meta[key]
        ),
        logo=f'<img src="{_embedded(Path(meta["logo"]))}" alt="Logo">' if meta["logo"] else "",
        links="".join(
            f'<li><a href="#{anchor}">{escape(title)}</a></li>' for title, anchor in links
        ),
        summary=_summary(data, folder),
        chapters="".join(
            f'<section aria-labelledby="{_anchor(title)}"><h2 id="{_anchor(title)}">{escape(title)}</h2>{content}</section>'
            for title, content in chapters
        ),
    )


def _written(chapters: Iterable[Data]) -> list[tuple[str, str]]:
    """The author's chapters; one written in Typst stands in the PDF alone."""
    elsewhere = "<p>This chapter is written in Typst; it stands in the PDF.</p>"
    return [
        (chapter["title"], elsewhere if chapter["file"] else prose.blocks(chapter["blocks"]))
        for chapter in chapters
    ]


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _anchor(title: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in title.lower())


def _summary(data: Data, folder: Path) -> str:
    meta, overview, caveats = data["meta"], data["overview"], data["caveats"]
    partial = f"<strong>Partial report.</strong> {escape(meta['partial_text'])}"
    lines = [
        [
            (": " if place in (0, len(line) - 1) else " ").join(filter(None, cell))
            for place, cell in enumerate(line)
        ]
        for line in data["verdicts"]
    ]
    above = "How close each resource comes to its limit, by the row that speaks for it"
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in caveats)
    return "".join(
        (
            '<section aria-label="Summary" id="summary">',
            f'<p class="partial">{partial}</p>' if meta["partial"] else "",
            _paragraphs([meta["lead"]]),
            webtables.plain(data["verdict_head"], lines, above),
            _paragraphs(data["slow"]),
            _figure(overview, "Overview", folder) if overview else "",
            f"<p><strong>Before you use these numbers</strong></p><ul>{items}</ul>"
            if caveats
            else "",
            "</section>",
        )
    )


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _figure(figure: Data, title: str, folder: Path) -> str:
    path = folder / figure["file"]
    width, height = (round(points * 4 / 3) for points in pictures.extent(path))  # in CSS pixels
    return (
        f'<figure><img class="drawing" src="{_embedded(path)}" width="{width}" height="{height}"'
        f' alt="{escape(figure["alt"])}" data-title="{escape(title)}" loading="lazy">'
        f"<figcaption>{escape(figure['caption'])}</figcaption></figure>"
    )


def _embedded(path: Path) -> str:
    check_logo(str(path))
    kind = _KINDS[path.suffix.lower()]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _machine(nodes: Sequence[Data]) -> str:
    if not nodes:
        return "<p>No facts of the machine were recorded with this campaign.</p>"
    return "".join(
        (f"<h3>{escape(node['name'])}</h3>" if len(nodes) > 1 else "")
        + "".join(
            f"<h3>{escape(group['title'])}</h3>{webtables.facts(group['items'])}"
            for group in node["groups"]
        )
        for node in nodes
    )


def _method(method: Data) -> str:
    text = "".join(
        f"<h3>{escape(part['title'])}</h3>{_paragraphs(part['paragraphs'])}"
        for part in method["parts"]
    )
    return (
        f"{text}<h3>What one operation is</h3>{webtables.plain(['Resource', 'Workloads', 'What is counted'], method['workloads'])}"
        f"<h3>Programs</h3>{webtables.plain(['Program', 'Version', 'Path, or why it is missing'], method['programs'])}"
    )


def _section(section: Data, folder: Path, mark: str) -> str:
    return "".join(_part(part, folder, mark) for part in section["parts"])


def _part(part: Data, folder: Path, mark: str) -> str:
    title = f"<h3>{escape(part['title'])}</h3>"
    if part["table"] is None:
        return f"{title}<p>{escape(part['empty'])}</p>"
    figures = "".join(_figure(figure, part["title"], folder) for figure in part["figures"])
    table = f"{webtables.grid(part['table'], mark)}{figures}{webtables.notes(part['table'])}"
    return f"{title}{table}{_findings(part['findings'])}{_formulas(part['formulas'])}"


def _findings(findings: Sequence[Data]) -> str:
    by_topic: dict[str, list[str]] = {}
    for finding in findings:
        by_topic.setdefault(finding["topic"], []).append(finding["text"])
    items = "".join(
        f"<dt>{escape(topic)}</dt><dd>{_paragraphs(texts)}</dd>"
        for topic, texts in by_topic.items()
    )
    return f'<h4>What the numbers say</h4><dl class="findings">{items}</dl>' if items else ""


def _formulas(formulas: Data) -> str:
    if not formulas["lines"]:
        return ""
    headings = ["Rows", "Formula with its numbers, or why there is none", "Kind", "Source"]
    lines = [[it["rows"], it["formula"], it["kind"], it["source"]] for it in formulas["lines"]]
    sources = "".join(f'<p class="remarks">{escape(source)}</p>' for source in formulas["sources"])
    return f"<h4>Where the theoretical values come from</h4>{webtables.plain(headings, lines)}{sources}"


def _runs(runs: Data, mark: str) -> str:
    lines = [
        [group["program"], *line, group["unit"]]
        for group in runs["groups"]
        for line in group["lines"]
    ]
    lengths = [len(group["lines"]) for group in runs["groups"]]
    table = {
        "name": "runs",
        "title": "Every repetition.",
        "reading": "",
        "columns": [{"kind": "text"} for _ in runs["columns"]],
        "head": [
            {"title": title, "span": 1, "rows": 1, "kind": "text"} for title in runs["columns"]
        ],
        "subhead": [],
        "breaks": {sum(lengths[:number]) for number in range(1, len(lengths))},
        "body": lines,
        "remarks": [],
        "notes": [],
    }
    return f"<p>{escape(runs['text'])}</p>{webtables.grid(table, mark)}"


def _problems(problems: Data) -> str:
    table = (
        webtables.plain(["Cell", "What happened", "Reason"], problems["lines"])
        if problems["lines"]
        else ""
    )
    return f"<p>{escape(problems['text'])}</p>{table}"


def _artifact(artifact: Data) -> str:
    steps = "".join(
        f"<li>{escape(text)}<pre>{escape(command)}</pre></li>"
        for text, command in artifact["steps"]
    )
    return (
        f"<h3>Hardware</h3>{webtables.facts(artifact['hardware'])}<h3>Software</h3>{webtables.facts(artifact['software'])}"
        f"<h3>How to reproduce</h3><ol>{steps}</ol><h3>Expected results</h3><p>{webtables.rich(artifact['expected'])}</p>"
        f"<h3>Time and space</h3>{webtables.facts(artifact['time'])}"
    )


def _provenance(provenance: Data) -> str:
    commands = "\n".join(escape(line) for line in provenance["commands"])
    sums = "\n".join(
        f"{escape(digest)}  {escape(path)}" for path, digest in provenance["checksums"]
    )
    listed = f"<details><summary>The list</summary><pre>{sums}</pre></details>" if sums else ""
    return (
        f"{webtables.facts(provenance['facts'])}<h3>Commands</h3><p>One per program and workload; the records hold them all.</p>"
        f"<pre>{commands}</pre><h3>Configuration</h3><pre>{escape(provenance['config'])}</pre>"
        f"<h3>Checksums</h3><p>{escape(provenance['checksums_text'])}</p>{listed}"
    )
