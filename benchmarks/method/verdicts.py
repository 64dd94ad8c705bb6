"""Was a fault found, and was it named: by ``peakmark compare`` and by the notes below the rows, as
users see them.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import guest
from benchmarks.kernels import namespaces
from benchmarks.method.faults import FAULTS, Fault
from benchmarks.method.sides import Bench, Surroundings
from peakmark import statistics
from peakmark.analysis import analysis, compare, datasets
from peakmark.analysis.compare import Comparison
from peakmark.errors import PeakmarkError
from peakmark.messages import Unavailable
from peakmark.storage.results import Results

GUEST_LIMIT_S = 300.0


@dataclass(frozen=True)
class Outcome:
    """What became of one fault. before, after, ratio: the row that differs most, in SI units.

    found  the comparison calls a row different     named  a warning of a row says
           what it is
    alarm  the same words stood without the fault    note   the note, or why the fault could not be
           put in
    guest  the user-mode kernel in which both sides were measured; empty: this machine
    """

    fault: str
    row: str = ""
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    verdict: str = ""
    found: bool = False
    named: bool = False
    alarm: bool = False
    note: str = ""
    possible: bool = True
    guest: str = ""


def judge_here_or_in_a_guest(bench: Bench, fault: Fault, number: int, repetitions: int) -> Outcome:
    """As ``judge``; both sides in a kernel of our own where this machine's cannot put the fault in,
    or we may not.
    """
    here = judge(bench, fault, number, repetitions)
    if here.possible or not fault.modules:
        return here
    folder = bench.work / f"guest-{number}"
    folder.mkdir()
    argument = {
        "fault": fault.name,
        "number": number,
        "repetitions": repetitions,
        "kernels": str(bench.kernels.resolve()),
        "facts": dict(bench.facts),
    }
    try:
        found: Mapping[str, Any] = guest.call(
            folder, f"{__name__}:judge_in_a_guest", argument, limit_s=GUEST_LIMIT_S, modules=fault.modules,
            shown=[bench.kernels],
        )  # fmt: skip
    except guest.GuestError as error:
        return replace(here, note=f"{here.note}; {error}")
    return Outcome(**found)


def judge_in_a_guest(argument: Mapping[str, Any]) -> dict[str, Any]:
    """The same, called in the guest: an Outcome as JSON."""
    fault = next(one for one in FAULTS if one.name == argument["fault"])
    facts = {**argument["facts"], "host": platform.node()}
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(Path(argument["kernels"]), Path(work), facts)
        outcome = judge(bench, fault, argument["number"], argument["repetitions"])
    return asdict(replace(outcome, guest=f"user-mode kernel {platform.release()}"))


def judge(bench: Bench, fault: Fault, number: int, repetitions: int) -> Outcome:
    """Measure without and with the fault, and compare."""
    try:
        with ExitStack() as stack:
            plain = Surroundings()
            if fault.between_namespaces:
                plain = Surroundings(namespaces=stack.enter_context(namespaces.joined()))
            before, cells = bench.campaign(f"fault/{number}/without", fault.grids, repetitions)
            bench.measure([(before, cell) for cell in cells], plain)
            after, cells = bench.campaign(f"fault/{number}/with", fault.grids, repetitions)
            around = stack.enter_context(fault.put(bench, plain, _median(before)))
            bench.measure([(after, cell) for cell in cells], around)
    except Unavailable as error:
        return Outcome(fault.name, note=str(error), possible=False)
    except PeakmarkError as error:
        return Outcome(fault.name, note=str(error))
    return _outcome(fault, before, after)


def _median(campaign: Path) -> float:
    """Of the own kernel's rates in the only table of rates that there is."""
    found = datasets.read(str(campaign)).entries
    return next(
        statistics.median(entry.values) for point, entry in found.items() if point.instrument in ("cpubench", "diskbench",
                                                                                            "netbench")
    )  # fmt: skip


def _outcome(fault: Fault, before: Path, after: Path) -> Outcome:
    compared, _, _ = compare.compare(datasets.read(str(before)), datasets.read(str(after)))
    most: Comparison = max(compared, key=lambda one: max(one.ratio, 1 / one.ratio))
    said = next((text for text in _warnings(after) if fault.words in text), "")
    return Outcome(
        fault.name,
        datasets.describe(most.point),
        statistics.median(most.before),
        statistics.median(most.after),
        most.ratio,
        most.verdict,
        found=most.verdict in (*compare.CLAIMS, *compare.DRIFTS),
        named=bool(said),
        alarm=any(fault.words in text for text in _warnings(before)),
        note=said,
    )


def _warnings(campaign: Path) -> list[str]:
    """What the rows of a campaign are marked with, doubts and findings."""
    tables = analysis.build_rows(Results.read(campaign)).values()
    return [
        text
        for found in tables
        for row in found
        for text in row.said(note for note in row.remarks if note.is_warning or note.is_named)
    ]
