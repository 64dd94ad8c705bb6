"""What the report says, as one JSON value for the Typst template: words and texts, no markup,
nothing computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from peakmark.analysis import caveats, fleet, fleet_text, verdict
from peakmark.analysis.row import Row
from peakmark.analysis.rows import layout_of
from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.config import inputs
from peakmark.formatting import date, listed, plural, typeset
from peakmark.report import (
    artifact,
    chapters,
    machine_text,
    many,
    method_text,
    pictures,
    provenance,
    runs_text,
)
from peakmark.report.sections import Sections
from peakmark.storage.results import Results

Rows = Mapping[str, Sequence[Row]]


def build(
    results: Results,
    rows: Rows,
    widths: pictures.Widths,
    logo: str | None,
    partial: bool,
    page: bool = False,
) -> dict[str, Any]:
    """The whole report. ``widths``: see ``pictures``; ``logo`` is a file name. page: for the page,
    which is no longer for it: of many nodes each row has a line, beside the lines of points, and
    each note says what to do about it, even where one above said so.
    """
    mark = results.mark
    judged = verdict.verdicts(rows, mark)
    several = len(fleet.nodes(rows)) > 1
    lines = [_verdict(entry, several, mark) for entry in judged]
    return {
        "meta": _meta(results, rows, logo, partial),
        "chapters": chapters.build(results),
        "verdicts": [list(line.values()) for line in lines],
        "slow": fleet_text.slow(rows, mark),
        "caveats": [
            *(typeset(sentence, mark) for sentence in caveats.build(rows, judged, results.config)),
            *_other_layout(results, rows),
        ],
        "verdict_head": list(lines[0]),
        "overview": pictures.of_page_one(widths, several, judged),
        "machine": many.alike(machine_text.nodes(results, mark)),
        "method": method_text.build(results, rows, mark),
        "sections": Sections(results, rows, widths, page).build(),
        "runs": runs_text.elsewhere() if fleet.is_many(rows) else runs_text.runs(rows, mark),
        "problems": runs_text.problems(results),
        "artifact": artifact.build(results, mark, page),
        "provenance": provenance.build(results),
    }


def _other_layout(results: Results, rows: Rows) -> list[str]:
    """That many nodes have tables of their own, where a layout is configured."""
    layout = layout_of(results)
    if layout is None or not fleet.is_many(rows):
        return []
    return [
        f"Of so many nodes the tables here have a line for each point; those of the layout {layout.name}, with a line for "
        f"each node, are in tables/{layout.name}."
    ]


def newest(results: Results) -> datetime:
    """When the newest record was begun, to the second: the report's date. The epoch where there is
    no record.
    """
    stored = (*results.records, *results.attempts)
    times = [
        datetime.fromisoformat(str(record.data["context"]["started"])).astimezone(UTC)
        for record in stored
    ]
    return max(times, default=datetime.fromtimestamp(0, UTC)).replace(microsecond=0)


def _meta(results: Results, rows: Rows, logo: str | None, partial: bool) -> dict[str, Any]:
    config = results.report_config
    resources = [SUBSYSTEMS[subsystem].resource for subsystem in verdict.planned(rows)]
    named = listed(resources)
    missing = len(results.missing)
    begun = bool(results.records or results.attempts)
    many = len(results.facts) > 1
    return {
        "title": str(config.get("title") or "Performance report"),
        "author": inputs.author_line(config),
        "authors": [author.name for author in inputs.authors(config)],
        "course": str(config.get("course") or ""),
        "logo": logo,
        "date": date(
            newest(results), str(config.get("date_language") or config.get("language") or "en")
        )
        if begun
        else "nothing measured yet",
        "campaign": results.name,
        "lead": f"This report tells how close {machine_text.short(results)} {'come' if many else 'comes'} to the limits of {'their' if many else 'its'} {named}. "
        f"{'Each resource' if len(resources) > 1 else f'The {named}'} is measured by an own kernel and, beside it, by the "
        "tools that the field uses.",
        "partial": partial and missing > 0,
        "partial_text": f"{missing} of {plural(len(results.cells), 'planned cell')} {'has' if missing == 1 else 'have'} no record yet; "
        f"{'its row says' if missing == 1 else 'their rows say'} “not measured”.",
    }


def _verdict(entry: verdict.Verdict, several: bool, mark: str) -> dict[str, list[str]]:
    """A line of page one: heading -> what stands there, and small below it; of ``several`` nodes
    their median and the slowest.
    """
    measured = [entry.measured, f"({entry.spread})" if entry.spread else ""]
    if several:
        shares = {
            "Median of the nodes\n(lowest to highest)": measured,
            "Share of the\nlimit": [
                entry.share or entry.limit,
                f"of {entry.limit}" if entry.share else "",
            ],
            "Slowest node": [entry.slowest, entry.behind],
            "Beside a reference": [entry.reference, ""],
        }
    else:
        shares = {
            "Measured (lowest to highest)": measured,
            "Limit": [entry.limit, ""],
            "Share": [entry.share, entry.clocks],
            "Beside a reference": [entry.reference.replace("n = ", "n\u00a0=\u00a0"), ""],
        }
    confidence = [entry.confidence, typeset(entry.why, mark)]
    return {"Resource": [entry.title, entry.what], **shares, "Confidence, and why": confidence}
