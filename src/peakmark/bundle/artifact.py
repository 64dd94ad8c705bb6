"""The appendix on a campaign that SC and ACM ask for, and the files of its fastest run of HPL."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from peakmark import __version__
from peakmark import files as filesystem
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.bundle.bundle import raw_outputs
from peakmark.catalogue import SUBSYSTEMS
from peakmark.report import appendix, document
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import latex

FOLDER = "artifact"
HPL_FILES = {
    "hpccoutf.txt": "HPL.out",
    "stdout": "HPL.out",
    "hpccinf.txt": "HPL.dat",
    "HPL.dat": "HPL.dat",
}
"""Raw output of a record of HPL -> its name for readers of HPL; ``hpcc`` prints nothing."""
PINNED = ROOT / "envs" / "requirements.txt"


def write(campaign: Path) -> Path:
    """Write ``artifact/`` of a campaign: ``appendix.tex``, and ``HPL.out``, ``HPL.dat`` and ``HPL.run``
    where HPL was measured. The analysis is made anew, as the appendix says how long it takes.

    Returns:
        The appendix.

    Raises:
        PeakmarkError: there is another's file, or the folder cannot be written.
        RecordError: an output of HPL is missing or was changed.
    """
    began = time.monotonic()
    analysis = Analysis.of(campaign)
    data = document.write(analysis)
    seconds = time.monotonic() - began
    folder = filesystem.made_folder(campaign, FOLDER)
    files = dict(_hpl(analysis.results))
    text = latex.template("artifact.tex.j2").render(
        data,
        version=__version__,
        rows=list(_expected(analysis)),
        seconds=seconds,
        pinned=hashlib.sha256(PINNED.read_bytes()).hexdigest(),
        hpl=sorted(files),
    )
    files["appendix.tex"] = text.encode()
    for name, content in files.items():
        filesystem.write_document(folder / name, content, campaign)
    return folder / "appendix.tex"


def _expected(analysis: Analysis) -> Iterator[Sequence[str]]:
    """Of each row of an own kernel: table, label, median, ends and level of its interval, unit,
    repetitions.
    """
    for row in (row for rows in analysis.rows.values() for row in rows):
        if row.own is None:
            continue
        labels, summary = LabelFormatter.of(row), row.own.summary
        values = (summary.median, summary.low, summary.high)
        numbers = [labels.number(value, row.own.step) for value in values]
        table = f"{SUBSYSTEMS[row.table.subsystem].title}: {row.table.title.lower()}"
        level = f"{100 * summary.level:.0f} %" if summary.n > 1 else ""
        label = appendix.row_label(labels, row)
        yield table, label, *numbers, level, labels.unit, str(summary.n)


def _hpl(results: Results) -> Iterator[tuple[str, bytes]]:
    """Name and content of the files of the fastest run of HPL, if there is one."""
    runs = [each for each in results.records if each.ok and each.cell.instrument == "hpl"]
    if not runs:
        return
    best = max(runs, key=lambda each: float(each.data["measurements"][0]["value"]))
    for name, content in raw_outputs(results, best):
        shown = HPL_FILES.get(name.partition("/")[2].partition(".")[2])
        if shown:
            yield shown, content
    context: dict[str, Any] = best.data["context"]
    lines = [f"# {context['host']}, begun {context['started']}, {context['seconds']:.1f} s"]
    lines += [appendix.shell_line(command) for command in context["commands"]]
    yield "HPL.run", "".join(f"{line}\n" for line in lines).encode()
