"""Two configurations measured in turn on this machine: each repetition of A right before or after
that of B, as two ordinary campaigns.

What the machine does meanwhile is then in both, and their comparison has no drift between two times
to allow for. Which of the two comes first alternates from round to round, and begins by lot for
each row.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

from peakmark import output, plan, resources
from peakmark.catalogue import WORKLOADS
from peakmark.cell import Cell
from peakmark.config import campaign
from peakmark.errors import ConfigError
from peakmark.formatting import duration, plural
from peakmark.messages import MeasurementError
from peakmark.plan import Plan
from peakmark.plan.cluster import ANY, settings_of
from peakmark.resources import program
from peakmark.run import build, cleanup, lock
from peakmark.storage import planfile, records
from peakmark.workflow import startup
from peakmark.yamlfile import read as read_yaml

HERE = "what is measured in turn is measured on the machine where the command runs"
DONE = set[tuple[str, str]]
"""Campaign and cell of each record that counts."""


@dataclass(frozen=True)
class Order:
    """A cell to be measured, and the plan it belongs to."""

    plan: Plan
    cell: Cell

    @property
    def key(self) -> tuple[str, str]:
        return self.plan.campaign, self.cell.id

    @property
    def log(self) -> Path:
        return self.plan.directory / "logs" / f"{self.cell.id}.log"


def run(first: Path, second: Path, kernels: Path) -> tuple[Path, Path]:
    """Measure what both campaigns lack; their folders.

    Raises:
        PeakmarkError: nothing can be measured.
        MeasurementError: cells failed; all others are measured.
    """
    before, after = plans(first, second)
    if not build.up_to_date():
        raise ConfigError(
            "the kernels are not compiled, or older than their sources: `peakmark run -- kernels` compiles them"
        )
    held = [startup.lock(before.directory), startup.lock(after.directory)]
    try:
        held.append(lock.acquire("campaign"))
        # A cell does not outlive this process, however that ends.
        os.environ[cleanup.OWNER] = cleanup.process_identity()
        done = _prepare(before, after) | _prepare(after, before)
        rounds = [list(_missing(pairs, done)) for pairs in orders(before, after)]
        _measure(rounds, f"{before.directory} and {after.directory}", kernels)
    finally:
        for descriptor in held:
            os.close(descriptor)
    return before.directory, after.directory


def plans(first: Path, second: Path) -> tuple[Plan, Plan]:
    """The two plans of two configuration files. Each campaign is named after both, so that it is
    none of an earlier run.

    A second file without a grid says only what B does otherwise than A.

    Raises:
        ConfigError: they cannot be measured in turn.
    """
    whole = any(read_yaml(second).get(subsystem) for subsystem in WORKLOADS)
    configs = campaign.read([first]), campaign.read([second] if whole else [first, second])
    for path, config in zip((first, second), configs, strict=True):
        _check_nodes(path, config.get("nodes", ANY))
    name, other = (str(config["campaign"]) for config in configs)
    if name == other:
        other = second.stem if second.stem != name else f"{name}-again"
    before = plan.make({**configs[0], "campaign": f"{name}-beside-{other}"})
    after = plan.make({**configs[1], "campaign": f"{other}-beside-{name}"})
    for path, side in ((first, before), (second, after)):
        of_cluster = settings_of(side.config) and side.config["nodes"] == ANY
        if of_cluster and "SLURM_JOB_ID" not in os.environ:
            raise ConfigError(
                f"{path} has a site with a section slurm, and this is no job: {HERE}, which would be {gethostname()} (nodes: "
                f"{gethostname()} says that it is meant). {_in_a_job()}"
            )
    if not {cell.id for cell in before.cells} & {cell.id for cell in after.cells}:
        raise ConfigError(
            f"{first} and {second} have no cell in common: nothing of them can be compared"
        )
    return before, after


def _check_nodes(path: Path, nodes: Any) -> None:
    """Raises: ConfigError for nodes other than this one."""
    names = [nodes] if isinstance(nodes, str) else nodes
    hosts = [str(name).partition(".")[0] for name in names] if isinstance(names, list) else []
    if hosts not in ([ANY], [gethostname().partition(".")[0]]):
        shown = json.dumps(nodes, ensure_ascii=False)
        raise ConfigError(f"{path} has nodes: {shown}, and {HERE}: leave nodes: out. {_in_a_job()}")


def _in_a_job() -> str:
    """How to measure on a node of a cluster."""
    command = f"srun --exclusive --nodes=1 --nodelist=NODE {program('peakmark')} compare --interleave A.yaml B.yaml"
    return f"On a cluster call it in a job of one node, with a campaign: of its own for each node: {command}"


def orders(before: Plan, after: Plan) -> Iterator[list[list[Order]]]:
    """The pairs of each round in running order: A's cell, and B's of the same name right before or
    after it. A cell that only one side has stands alone.
    """
    partners = {cell.id: Order(after, cell) for cell in after.cells}
    for number in sorted({cell.repetition for cell in (*before.cells, *after.cells)}):
        pairs = []
        for cell in (cell for cell in before.cells if cell.repetition == number):
            pair = [Order(before, cell)]
            if cell.id in partners:
                pair.append(partners.pop(cell.id))
            lot = random.Random(f"{before.config['seed']}/{cell.row}").randrange(2)  # noqa: S311 - an order, not a secret
            pairs.append(pair if (number + lot) % 2 == 0 else pair[::-1])
        alone = [order for order in partners.values() if order.cell.repetition == number]
        yield [*pairs, *([order] for order in alone)]


def _prepare(side: Plan, other: Plan) -> DONE:
    """Set aside records that do not count and write the plan; those that do."""
    startup.check_readable(side.results)
    findings = startup.survey(side.results)
    good = {name for name, finding in findings.items() if finding.state == records.GOOD}
    output.tell(*startup.check(side, [cell for cell in side.cells if cell.id not in good]))
    planfile.write(side.directory / "plan.json", {**side.to_json(), "beside": other.campaign})
    build.keep_version(side.directory)
    startup.set_aside(side, findings)
    return {(side.campaign, name) for name in good}


def _missing(pairs: Iterable[list[Order]], done: DONE) -> Iterator[Order]:
    """The cells to be measured. Of a pair with one half only the other is set aside: its two halves
    belong to one time.
    """
    for pair in pairs:
        measured = [order for order in pair if order.key in done]
        if len(measured) < len(pair):
            for order in measured:
                records.set_aside(order.plan.directory, order.cell, good=True)
            yield from pair


def _measure(rounds: list[list[Order]], folders: str, kernels: Path) -> None:
    left = [order for missing in rounds for order in missing]
    if left:
        output.tell(f"{plural(len(left), 'cell')} of {folders}, about {_time(left)}")
    failed: list[Path] = []
    for number, missing in enumerate(rounds, 1):
        failed += [order.log for order in missing if not _measure_cell(order, kernels)]
        left = left[len(missing) :]
        if missing and left:
            output.tell(f"round {number} of {len(rounds)} is done, about {_time(left)} left")
    if failed:
        raise MeasurementError(
            f"{plural(len(failed), 'cell')} failed, {failed[0]} says why of the first; the same command measures what is "
            "missing and compares"
        )


def _time(left: list[Order]) -> str:
    return duration(sum(order.plan.durations.expected(order.cell) for order in left))


def _measure_cell(order: Order, kernels: Path) -> bool:
    """Measure one cell as a rule does, in a process of its own; whether there is a record now."""
    plan_path = str(order.plan.directory / "plan.json")
    order.log.parent.mkdir(parents=True, exist_ok=True)
    argv = resources.command(
        "measure", "--plan", plan_path, "--cell", order.cell.id, "--kernels", str(kernels)
    )
    with order.log.open("wb") as errors:
        process = subprocess.Popen(argv, stderr=errors)
        try:
            return process.wait() == 0
        except BaseException:
            process.send_signal(signal.SIGTERM)  # it ends its program and removes its files
            process.wait()
            raise
