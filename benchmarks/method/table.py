"""What is printed and written: like against like, then the faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks import results
from benchmarks.method.same import Count
from benchmarks.method.verdicts import Outcome

LARGEST = 0.05
APART = "one after the other"
"""Name of the comparisons in which the machine itself may have changed between the two sides."""


def same(counts: Mapping[str, Count]) -> str:
    """A Markdown table of false differences."""
    rows = []
    for name, one in counts.items():
        low, high = one.interval
        shares = [f"{one.share:.1%}", f"{low:.1%} to {high:.1%}"] if one.judged else ["", ""]
        rows.append([name, str(one.judged), str(one.claimed), *shares])
    headings = ["like against like", "comparisons", "false differences", "share", "95 % interval"]
    return results.markdown(headings, rows)


def faults(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table of faults."""
    rows = []
    for one in outcomes:
        name = f"{one.fault}, in a {one.guest}" if one.guest else one.fault
        if not one.possible or one.ratio is None:
            why = "FAILED" if one.possible else "not possible here"
            rows.append([name, f"{why}: {one.note}", "", "", "", ""])
            continue
        named = ("yes" if one.named else "NO") + (" (also without it)" if one.alarm else "")
        found = "yes" if one.found else "NO"
        rows.append([name, one.row, f"{one.ratio:.3f}", one.verdict, found, named])
    headings = ["fault", "row", "with / without", "verdict", "found", "named"]
    return results.markdown(headings, rows)


def missed(counts: Mapping[str, Count], outcomes: Sequence[Outcome]) -> list[str]:
    """What the method got wrong, in a sentence each."""
    wrong = []
    for one in outcomes:
        if one.possible and not (one.found and one.named):
            why = "found but not named" if one.found else "not found" if one.ratio else one.note
            wrong.append(f"{one.fault}: {why}")
    for name, count in counts.items():
        if count.judged and count.interval[0] > LARGEST and APART not in name:
            wrong.append(f"{name}: {count.share:.1%} false differences, allowed are {LARGEST:.0%}")
    return wrong


def to_csv(
    counts: Mapping[str, Count], outcomes: Sequence[Outcome], machine: Mapping[str, Any]
) -> str:
    """One line per kind of comparison and per fault, each with the machine's facts."""
    lines: list[dict[str, Any]] = []
    for name, one in counts.items():
        low, high = one.interval
        line = {"kind": "same", "name": name, "judged": one.judged, "claimed": one.claimed}
        lines.append({**line, "share": one.share, "low": low, "high": high})
    for outcome in outcomes:
        values = asdict(outcome)
        lines.append({"kind": "fault", "name": values.pop("fault"), **values})
    return results.to_csv({**line, **machine} for line in lines)
