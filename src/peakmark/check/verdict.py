"""Decide whether this node is as good as its class was.

A row is good if one of its tries reaches the bound of the class. It is slow if none of ``TRIES`` tries does
and nothing disturbed them. Everything else cannot be told.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from peakmark.check import expected
from peakmark.check.expected import ClassRow, NodeFacts, Recipe
from peakmark.check.tries import Try, find_kernel, measure
from peakmark.equipment import Equipment
from peakmark.errors import ExitCode, Unavailable
from peakmark.formatting import plural, quantity
from peakmark.machine.host import Host

TRIES = 3
"""Most tries of a row. A short disturbance does not last for all of them."""
LEAST_TRY_S, MOST_TRY_S = 0.1, 1.0
"""Shortest and longest time, in seconds, that a try measures."""
RESERVED_S = 0.3
"""Seconds of a check for reading the campaign and the node."""
USED = 0.9
"""Share of the time of a check for which tries are planned. The rest absorbs delays."""
LATE_S = 0.2
"""Seconds by which a running kernel may exceed the time of the check before it is killed."""


class Verdict(NamedTuple):
    """Outcome of a check.

    Attributes:
        code: exit code.
        text: one line that gives the reason.
    """

    code: ExitCode
    text: str


@dataclass
class CheckedRow:
    """A row with its tries on this node.

    Attributes:
        row: the row.
        recipe: command that measures it.
        tries: its tries so far.
        reason: why it was not measured often enough; empty if it was.
    """

    row: ClassRow
    recipe: Recipe
    tries: list[Try] = field(default_factory=list)
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether one of the repeated measurements reached the bound that the check demands."""
        return any(self.row.is_reached_by(each.value) for each in self.tries)

    @property
    def best(self) -> float:
        """Return the best value of the tries."""
        values = [each.value for each in self.tries]
        return min(values) if self.row.is_time else max(values)

    def uncertainty(self, node: NodeFacts) -> str:
        """Return why a row that is not good may belong to a good node; empty if it is slow."""
        if self.tries and all(self._is_slow_by_quota(each) for each in self.tries):
            return ""
        if self.reason:
            return self.reason
        for each in self.tries:
            if each.disturbance:
                return f"{each.disturbance} while it measured {self.row.name}"
        if node.is_virtual and not self.row.is_private:
            return (
                f"{self.row.name} is below its class, and other guests of this virtual machine's host may use"
                " its memory"
            )
        return ""

    def _is_slow_by_quota(self, each: Try) -> bool:
        """Return whether the quota of the control group alone keeps a good node below the bound.

        Then other programs and the number of tries do not matter. Only CPU rows are proportional to the
        CPU time.
        """
        if each.quota is None or self.row.subsystem != "cpu":
            return False
        return not self.row.is_reached_by(self.row.highest * each.quota / self.row.concurrency)


def check(campaign: Path, kernels: Path, seconds: float, names: Sequence[str]) -> Verdict:
    """Compare this node with its class in a campaign.

    Args:
        campaign: folder of the campaign.
        kernels: folder of the compiled kernels.
        seconds: time for the whole check.
        names: names of the rows to check; empty for the headline rows.

    Raises:
        Unavailable: nothing can be compared on this node.
        PeakmarkError: the campaign or the kernels are damaged, or ``names`` are wrong.
    """
    deadline = time.monotonic() + seconds
    node = expected.read_node(Host())
    equipment, members = expected.find_class(campaign, node)
    rows = expected.read_rows(campaign, members)
    chosen = expected.headline_rows(rows)
    if names:
        chosen = expected.named_rows(rows, names)
    checked = _measurable(campaign, chosen)
    planned, try_s = plan(checked, seconds)
    for _ in range(TRIES):
        for each in planned:
            if not each.is_good and not each.reason:
                _try(each, kernels, try_s, deadline)
            if each.tries and each.tries[-1].wrong_cpu is not None:
                return _wrong(node, each)
    return _verdict(campaign, node, equipment, planned)


def _measurable(campaign: Path, rows: Sequence[ClassRow]) -> list[CheckedRow]:
    """Return the rows whose CPUs this process may use.

    Raises:
        Unavailable: there is none.
    """
    allowed = os.sched_getaffinity(0)
    checked = []
    reason = (
        f"{campaign} has no row of this node's class with {expected.LEAST_VALUES} values or more"
    )
    for row in rows:
        recipe = expected.read_recipe(campaign, row)
        if allowed.issuperset(recipe.cpus):
            checked.append(CheckedRow(row, recipe))
        else:
            reason = f"{row.name} needs {plural(len(recipe.cpus), 'CPU')}, and this process may use {len(allowed)}"
    if not checked:
        raise Unavailable(reason)
    return checked


def plan(rows: Sequence[CheckedRow], seconds: float) -> tuple[list[CheckedRow], float]:
    """Return the rows that can be tried ``TRIES`` times within the time, and the seconds of a try.

    The first row is always tried.
    """
    round_s = (USED * seconds - RESERVED_S) / TRIES
    planned = list(rows[:1])
    overhead_s = rows[0].recipe.overhead_s
    for each in rows[1:]:
        needed_s = overhead_s + each.recipe.overhead_s + LEAST_TRY_S * (len(planned) + 1)
        if needed_s <= round_s:
            planned.append(each)
            overhead_s += each.recipe.overhead_s
    try_s = (round_s - overhead_s) / len(planned)
    return planned, min(MOST_TRY_S, max(LEAST_TRY_S, try_s))


def _try(each: CheckedRow, kernels: Path, try_s: float, deadline: float) -> None:
    """Measure a row once more, unless the time is too short."""
    left_s = deadline - time.monotonic()
    if left_s < try_s + each.recipe.overhead_s:
        each.reason = f"the time was too short for {TRIES} tries of {each.row.name}"
        return
    kernel = find_kernel(kernels, each.row.instrument)
    try:
        each.tries.append(measure(each.row, each.recipe, kernel, try_s, left_s + LATE_S))
    except Unavailable as error:
        each.reason = str(error)


def _verdict(
    campaign: Path, node: NodeFacts, equipment: Equipment, rows: Sequence[CheckedRow]
) -> Verdict:
    """Return the verdict on a node for which at least one measurement was attempted."""
    uncertain = []
    slow = []
    for each in rows:
        if each.is_good:
            continue
        uncertainty = each.uncertainty(node)
        if uncertainty:
            uncertain.append(uncertainty)
        else:
            slow.append(each)
    if slow:
        return Verdict(ExitCode.DIFFERENT, _slow(campaign, node, equipment, slow))
    if uncertain:
        return Verdict(ExitCode.CANNOT_TELL, f"cannot tell: {node.name}: {uncertain[0]}")
    names = ", ".join(each.row.name for each in rows)
    return Verdict(
        ExitCode.GOOD, f"good: {node.name} is as good as its class in {campaign} in {names}"
    )


def _slow(campaign: Path, node: NodeFacts, equipment: Equipment, slow: Sequence[CheckedRow]) -> str:
    """Return the sentence on a slow node: row, value, expected value, tries, and possible reasons."""
    first = slow[0]
    row = first.row
    word = "at most" if row.is_time else "at least"
    tries = ", ".join(quantity(each.value, row.unit) for each in first.tries)
    text = (
        f"slow: {node.name} in {row.name}: {quantity(first.best, row.unit)}, expected {word}"
        f" {quantity(row.bound, row.unit)} as in {campaign} (tries: {tries})"
    )
    if len(slow) > 1:
        text += f"; also slow: {', '.join(each.row.name for each in slow[1:])}"
    quota = first.tries[-1].quota
    if quota is not None:
        text += f"; its control group allows {quota:.3g} CPUs"
    for name in ("memory", "kernel", "clock"):
        own, usual = getattr(node.equipment, name), getattr(equipment, name)
        if own and usual and own != usual:
            text += f"; its {name} is {own}, that of its class {usual}"
    return text


def _wrong(node: NodeFacts, each: CheckedRow) -> Verdict:
    """Return the verdict on a node that computes wrong results."""
    text = (
        f"wrong: the core of CPU {each.tries[-1].wrong_cpu} on {node.name} computed a wrong result in"
        f" {each.row.name}: test the core or drain the node"
    )
    return Verdict(ExitCode.DIFFERENT, text)
