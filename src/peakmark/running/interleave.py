"""Two configurations measured in turn on this machine: each repetition of A beside that of B, as two ordinary campaigns.

What the machine does meanwhile is then in both, and their comparison has no drift between two times to allow for. Which of
the two comes first alternates from round to round, and begins by lot for each row.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from peakmark import lean, output, resources
from peakmark.catalogue.workloads import WORKLOADS
from peakmark.cell import Cell
from peakmark.config import given
from peakmark.errors import ConfigError
from peakmark.formatting import duration, plural
from peakmark.measuring import build, code, guard, lock
from peakmark.planning import plan
from peakmark.planning.cluster import ANY, settings_of
from peakmark.planning.plan import Plan
from peakmark.reasons import MeasurementError
from peakmark.resources import program
from peakmark.running import head, preflight, resume
from peakmark.storage import integrity, planfile
from peakmark.yamlfile import read as read_yaml

HERE = "what is measured in turn is measured on the machine where the command runs"


@dataclass(frozen=True)
class Order:
    """A cell to be measured, and the plan it belongs to."""

    plan: Plan
    cell: Cell


def plans(first: Path, second: Path) -> tuple[Plan, Plan]:
    """The two plans of two configuration files. Each campaign is named after both, so that it stands beside no earlier one.

    A second file without a grid says only what B does otherwise than A. Errors: ConfigError.
    """
    one = given.read([first])
    alone = any(read_yaml(second).get(subsystem) for subsystem in WORKLOADS)
    other = given.read([second] if alone else [first, second])
    for path, config in ((first, one), (second, other)):
        _check_nodes(path, config.get("nodes", ANY))
    names = str(one["campaign"]), str(other["campaign"])
    if names[0] == names[1]:
        names = names[0], second.stem if second.stem != names[0] else f"{names[0]}-again"
    made = (
        plan.timed(plan.make({**one, "campaign": f"{names[0]}-beside-{names[1]}"})),
        plan.timed(plan.make({**other, "campaign": f"{names[1]}-beside-{names[0]}"})),
    )
    for path, side in zip((first, second), made, strict=True):
        if settings_of(side.config) and side.config["nodes"] == ANY and "SLURM_JOB_ID" not in os.environ:
            raise ConfigError(
                f"{path} has a site with a section slurm, and this is no job: {HERE}, which would be {lean.host_name()} (nodes: "
                f"{lean.host_name()} says that it is meant). {_in_a_job()}"
            )
        if side.criteria:
            raise ConfigError(
                f"{path} ends repetitions when an interval is narrow, which two sides do at different times: measured in "
                "turn, repetitions is a number"
            )
    if not {cell.id for cell in made[0].cells} & {cell.id for cell in made[1].cells}:
        raise ConfigError(f"{first} and {second} have no cell in common: nothing of them can be compared")
    return made


def _check_nodes(path: Path, asked: Any) -> None:
    """Errors: ConfigError for nodes other than this one."""
    if asked in (ANY, [ANY]):
        return
    named = [asked] if isinstance(asked, str) else asked
    if (
        isinstance(named, list)
        and len(named) == 1
        and str(named[0]).partition(".")[0] == lean.host_name().partition(".")[0]
    ):
        return
    raise ConfigError(
        f"{path} has nodes: {json.dumps(asked, ensure_ascii=False)}, and {HERE}: leave nodes: out. {_in_a_job()}"
    )


def _in_a_job() -> str:
    """How to measure on a node of a cluster."""
    command = f"srun --exclusive --nodes=1 --nodelist=NODE {program('peakmark')} compare --interleave A.yaml B.yaml"
    return f"On a cluster call it in a job of one node, with a campaign: of its own for each node: {command}"


def orders(before: Plan, after: Plan) -> Iterator[tuple[int, list[list[Order]]]]:
    """Each round with its pairs in running order: A's cell, and B's of the same name right before or after it. What only one
    side has stands alone.
    """
    beside = {cell.id: cell for cell in after.cells}
    own = {cell.id for cell in before.cells}
    alone = [cell for cell in after.cells if cell.id not in own]
    rounds = {number: list(cells) for number, cells in groupby(before.cells, key=lambda cell: cell.repetition)}
    for number in sorted({*rounds, *(cell.repetition for cell in alone)}):
        found: list[list[Order]] = []
        for cell in rounds.get(number, ()):
            pair = [Order(before, cell)]
            if cell.id in beside:
                pair.append(Order(after, beside[cell.id]))
            lot = random.Random(f"{before.config['seed']}/{cell.row}").randrange(2)  # noqa: S311 - an order, not a secret
            found.append(pair if (number + lot) % 2 == 0 else pair[::-1])
        yield number, [*found, *([Order(after, cell)] for cell in alone if cell.repetition == number)]


def run(first: Path, second: Path, kernels: Path) -> tuple[Path, Path]:
    """Measure what both campaigns lack; their folders. Errors: PeakmarkError; MeasurementError when cells failed, after
    all others were measured.
    """
    made = plans(first, second)
    if not build.up_to_date():
        raise ConfigError("the kernels are not compiled, or older than their sources: run `make kernels` first")
    held = [head.lock(one.directory) for one in made]
    try:
        held.append(lock.acquire("campaign"))
        os.environ[guard.OWNER] = guard.own()  # a cell does not outlive this process, however that ends
        build.python()
        _measure(*made, kernels)
    finally:
        for descriptor in held:
            os.close(descriptor)
    return made[0].directory, made[1].directory


def _measure(before: Plan, after: Plan, kernels: Path) -> None:
    good: set[tuple[str, str]] = set()
    for one, other in ((before, after), (after, before)):
        seen = resume.survey(one.directory, one.cells)
        good |= {(one.campaign, name) for name, finding in seen.items() if finding.state == integrity.GOOD}
        missing = [cell for cell in one.cells if (one.campaign, cell.id) not in good]
        preflight.say(preflight.check(one, missing))
        planfile.write(one.directory / "plan.json", {**one.to_json(), "beside": other.campaign})
        code.keep(one.directory)
        resume.begin(one, seen)
    rounds = [(number, list(_missing(pairs, good))) for number, pairs in orders(before, after)]
    left = [one for _, found in rounds for one in found]
    if left:
        output.tell(f"{plural(len(left), 'cell')} of {before.directory} and {after.directory}, about {_time(left)}")
    failed: list[Order] = []
    for number, found in rounds:
        failed += [one for one in found if not _cell(one, kernels)]
        left = left[len(found) :]
        if found and left:
            output.tell(f"round {number + 1} of {len(rounds)} is done, about {_time(left)} left")
    if failed:
        worst = failed[0]
        raise MeasurementError(
            f"{plural(len(failed), 'cell')} failed, {worst.plan.directory / 'logs' / worst.cell.id}.log says why of the "
            "first; the same command measures what is missing and compares"
        )


def _missing(pairs: Iterable[list[Order]], good: set[tuple[str, str]]) -> Iterator[Order]:
    """What is to be measured. Of a pair with one half only the other is set aside: its two halves belong to one time."""
    for pair in pairs:
        there = [one for one in pair if (one.plan.campaign, one.cell.id) in good]
        if len(there) == len(pair):
            continue
        for one in there:
            integrity.set_aside(one.plan.directory, one.cell, good=True)
        yield from pair


def _time(left: list[Order]) -> str:
    return duration(sum(one.plan.durations.expected(one.cell) for one in left))


def _cell(one: Order, kernels: Path) -> bool:
    """Measure one cell as a rule does, in a process of its own; whether there is a record now."""
    directory = one.plan.directory
    log = directory / "logs" / f"{one.cell.id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    plan_path = str(directory / "plan.json")
    argv = resources.command("measure", "--plan", plan_path, "--cell", one.cell.id, "--kernels", str(kernels))
    with log.open("wb") as errors:
        process = subprocess.Popen(argv, stderr=errors)
        try:
            return process.wait() == 0
        except BaseException:
            process.send_signal(signal.SIGTERM)  # it ends its program and removes its files
            process.wait()
            raise
