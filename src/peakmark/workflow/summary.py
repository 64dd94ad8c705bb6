"""The last words of a run: where report and tables are, the five most telling numbers with their
doubts, which cells are not possible, how to go on.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from peakmark.analysis import analysis, verdict
from peakmark.resources import program
from peakmark.storage.results import Results
from peakmark.workflow import status

_FILES = (("report", "report.pdf"), ("page", "report.html"), ("tables", "tables"))


def describe(directory: Path) -> str:
    """The last words about the campaign in ``directory``, with commands that can be pasted.

    Errors: RecordError when there is no campaign.
    """
    results = Results.read(directory)
    lines = [
        "",
        *(f"{name:<7} {directory / file}" for name, file in _FILES if (directory / file).exists()),
        "",
    ]
    for number in verdict.telling_numbers(analysis.build_rows(results)):
        lines.append(f"  {number.label:<52} {number.value} ({number.comparison})")
        more = (
            f" (and {len(number.specific_warnings) - 1} more, see the report)"
            if number.specific_warnings[1:]
            else ""
        )
        lines += [f"    {number.confidence}: {text}{more}" for text in number.specific_warnings[:1]]
    lines += status.impossible((record.cell, record.data) for record in results.records)
    bundle = f"{program('peakmark')} bundle {shlex.quote(str(directory))}"
    lines += [
        "",
        f"to measure what is missing    {status.command(results)}",
        f"to keep all of it in one file {bundle}",
    ]
    return "\n".join(lines)
