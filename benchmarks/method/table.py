"""What is printed and written: like against like, then the faults."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.method.same import Count
from benchmarks.method.verdicts import Outcome

LARGEST = 0.05
APART = "one after the other"
"""Name of the comparisons in which the machine itself may have changed between the two sides."""


def same(counts: Mapping[str, Count]) -> str:
    """A Markdown table of false differences."""
    lines = [
        "| like against like | comparisons | false differences | share | 95 % interval |",
        "|---|---|---|---|---|",
    ]
    for name, one in counts.items():
        share = f"{one.share:.1%} | {_interval(one)}" if one.judged else "none there | "
        lines.append(f"| {name} | {one.judged} | {one.claimed} | {share} |")
    return "\n".join(lines)


def _interval(one: Count) -> str:
    low, high = one.interval
    return f"{low:.1%} to {high:.1%}"


def faults(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table of faults."""
    lines = [
        "| fault | row | with / without | verdict | found | named |",
        "|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        name = f"{one.fault}, in a {one.guest}" if one.guest else one.fault
        if not one.possible or one.ratio is None:
            lines.append(
                f"| {name} | {'not possible here' if not one.possible else 'FAILED'}: {one.note} | | | | |"
            )
            continue
        named = ("yes" if one.named else "NO") + (" (also without it)" if one.alarm else "")
        lines.append(
            f"| {name} | {one.row} | {one.ratio:.3f} | {one.verdict} | {'yes' if one.found else 'NO'} | {named} |"
        )
    return "\n".join(lines)


def missed(counts: Mapping[str, Count], outcomes: Sequence[Outcome]) -> list[str]:
    """What the method got wrong, in a sentence each."""
    wrong = [
        f"{one.fault}: {'found but not named' if one.found else 'not found' if one.ratio else one.note}"
        for one in outcomes
        if one.possible and not (one.found and one.named)
    ]
    return wrong + [
        f"{name}: {one.share:.1%} false differences, more than {LARGEST:.0%} and more than chance explains"
        for name, one in counts.items()
        if one.judged and one.interval[0] > LARGEST and APART not in name
    ]


def to_csv(
    counts: Mapping[str, Count], outcomes: Sequence[Outcome], machine: Mapping[str, Any]
) -> str:
    """One line per kind of comparison and per fault, each with the machine's facts."""
    lines: list[dict[str, Any]] = [
        {"kind": "same", "name": name, "judged": one.judged, "claimed": one.claimed, "share": one.share,
         "low": one.interval[0], "high": one.interval[1]}
        for name, one in counts.items()
    ]  # fmt: skip
    lines += [{"kind": "fault", "name": one.fault, **asdict(one)} for one in outcomes]
    for line in lines:
        line.pop("fault", None)
        line.update(machine)
    names = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
