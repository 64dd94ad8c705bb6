"""Run ``peakmark check`` for people, Slurm's prolog and HealthCheckProgram, and NHC.

The command measures rows of a campaign on this node, and decides whether the node is as good as its
class was in the campaign.

A row is good if one of its tries reaches the bound of the class and, if there is one, the promised
value. A row is slow if none of ``TRIES`` tries reaches both values and nothing disturbed the tries.
In all other cases the row is uncertain. One slow row makes the node slow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from peakmark import promises
from peakmark.catalogue import NOT_POSSIBLE
from peakmark.comparability import Equipment, equipment_of
from peakmark.errors import (
    ConfigError,
    ExitCode,
    MeasurementError,
    PeakmarkError,
    RecordError,
    Unavailable,
    mute,
    sentence,
    tell,
)
from peakmark.formatting import percent, plural, quantity
from peakmark.machine import hardware, job_limits
from peakmark.machine.host import Host
from peakmark.rows import CHECK, FOLDER
from peakmark.run import kernel_build, noise
from peakmark.storage import activity
from peakmark.storage.activity import Activity

BY_HAND_S = (20.0, 3600.0)
"""(seconds that a check may take by default, most seconds that ``--seconds`` may allow)."""
CALLERS_S = {"prolog": (5.0, 60.0), "health": (20.0, 55.0), "nhc": (10.0, 28.0)}
"""Program that calls the check -> default and largest number of seconds of a check.

A job waits for its prolog. slurmd kills HealthCheckProgram after 60 s, and NHC ends itself after
30 s.
"""
TRIES = 3
"""Most tries of a row. A short disturbance does not last for all of them."""
LEAST_TRY_S, MOST_TRY_S = 0.1, 1.0
"""Shortest and longest time, in seconds, that a try measures."""
RESERVED_S = 0.3
"""Seconds of a check for reading the campaign and the node."""
PLANNED_SHARE = 0.9
"""Share of the time of a check for which tries are planned. The rest absorbs delays."""
LATE_S = 0.2
"""Seconds by which a running kernel may exceed the time of the check before it is killed."""
LOWERED_CLOCK = 0.99
"""This node's clock limit counts as lowered if it is less than this share of the class's limit."""


class ClassRow(NamedTuple):
    """A row that good nodes of this class reach, as ``rows.expectations`` lists it.

    Attributes:
        name: name in messages and for ``--rows``, such as ``cpu DP xcores``.
        threads: number of threads.
        unit: SI unit of the values; lower values are better if it is s.
        highest: highest upper end of the confidence intervals of the nodes' medians.
        bound: value that every good node reaches.
        is_cpu: whether the row is proportional to the CPU time of its threads.
        is_private: whether the row uses only the cores of its threads, and nothing that other cores
            share.
        argv: name of the kernel, and its options without the amount of work.
        cpus: CPUs that the threads are pinned to.
        overhead_s: seconds of the command besides measuring.
        clock_limit_hz: lowest clock limit (``scaling_max_freq``) that these CPUs had in the
            campaign, if known.
        is_headline: whether the row is checked by default.
        promised: value that the site file promises; None without a promise.
    """

    name: str
    threads: int
    unit: str
    highest: float
    bound: float
    is_cpu: bool
    is_private: bool
    argv: list[str]
    cpus: list[int]
    overhead_s: float
    clock_limit_hz: float | None
    is_headline: bool
    promised: float | None = None

    def is_reached_by(self, value: float) -> bool:
        """Return whether a value is at least as good as ``least_good``."""
        return promises.shortfall(value, self.least_good, self.unit) <= 0

    @property
    def least_good(self) -> float:
        """Return the worst good value: ``bound``, or the promised value if it is stricter."""
        if self.promised and promises.shortfall(self.bound, self.promised, self.unit) > 0:
            return self.promised
        return self.bound

    @property
    def expected(self) -> str:
        """Return the worst good value in words, such as ``at least 8.9 GB/s as promised``."""
        word = "at most" if self.unit == "s" else "at least"
        source = " as promised" if self.least_good == self.promised else ""
        return f"{word} {quantity(self.least_good, self.unit)}{source}"


class Try(NamedTuple):
    """One measurement of a row.

    Attributes:
        value: measured value in the unit of the row.
        disturbance: what disturbed it, in words; empty if nothing did.
        quota: CPU time that the control group allows, as a number of CPUs, if it is less than the
            number of threads; else None.
        wrong_cpu: CPU that computed a wrong result, or None.
    """

    value: float
    disturbance: str = ""
    quota: float | None = None
    wrong_cpu: int | None = None


class NodeFacts(NamedTuple):
    """Facts of the node that is checked.

    Attributes:
        name: name of the host without its domain.
        equipment: equipment in words.
        is_virtual: whether a hypervisor runs the node, so that unseen guests may share its memory.
    """

    name: str
    equipment: Equipment
    is_virtual: bool


class Verdict(NamedTuple):
    """Outcome of a check: its exit code, and one line that gives the reason."""

    code: ExitCode
    text: str


@dataclass
class CheckedRow:
    """A row with its tries on this node.

    Attributes:
        row: the row.
        tries: its tries so far.
        reason: why it was not measured often enough; empty if it was.
    """

    row: ClassRow
    tries: list[Try] = field(default_factory=list)
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether one of the tries reaches the bound of the class and the promised value."""
        return any(self.row.is_reached_by(each.value) for each in self.tries)

    def uncertainty(self, node: NodeFacts) -> str:
        """Return why a row that is not good may belong to a good node; empty if the row is slow."""
        # A quota alone makes the row slow, whatever else happened.
        if self.tries and all(self._is_slow_by_quota(each) for each in self.tries):
            return ""
        # The row was not tried often enough.
        if self.reason:
            return self.reason
        # Something on this node disturbed a try.
        for each in self.tries:
            if each.disturbance:
                return f"{each.disturbance} while it measured {self.row.name}"
        # Something on the host, which this node cannot see, may have disturbed all tries.
        if node.is_virtual and not self.row.is_private:
            return (
                f"{self.row.name} is below its class, and other guests of this virtual machine's host may use"
                " its memory"
            )
        return ""

    def _is_slow_by_quota(self, each: Try) -> bool:
        """Return whether the quota of the control group alone keeps a good node below the bound.

        If it does, the row is slow, whatever other programs did and however few tries there were.
        """
        if each.quota is None or not self.row.is_cpu:
            return False
        # The best node of the class would reach this share of its value with the quota.
        return not self.row.is_reached_by(self.row.highest * each.quota / self.row.threads)


def compare_node(campaign: Path, kernels: Path, seconds: float, names: Sequence[str]) -> Verdict:
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
    node = read_node(Host())
    equipment, rows = read_class(campaign, node)
    checked = _measurable(campaign, choose(rows, names))
    planned, try_s = plan(checked, seconds)
    for _ in range(TRIES):
        for each in planned:
            # A good row needs no further try. A row that could not be tried will not be tried later.
            if not each.is_good and not each.reason:
                _try(each, kernels, try_s, deadline)
            if each.tries and each.tries[-1].wrong_cpu is not None:
                return _wrong(node, each)
    return _verdict(campaign, node, equipment, planned)


def read_node(host: Host) -> NodeFacts:
    """Read the facts of this node that decide to which class of equal nodes it belongs."""
    system = os.uname()
    cpu = hardware.collect_cpu(host)
    # The network is left out: a check measures only rows of CPU and memory.
    facts = {
        "cpu": cpu,
        "memory": {"total": host.meminfo().get("MemTotal")},
        "os": {"kernel": system.release},
    }
    name = system.nodename.partition(".")[0]
    return NodeFacts(name, equipment_of(facts), is_virtual=cpu["virtualised"] is not None)


class NodeClass(NamedTuple):
    """The equipment and the rows of a class of equal nodes in a campaign."""

    equipment: Equipment
    rows: list[ClassRow]


def read_class(campaign: Path, node: NodeFacts) -> NodeClass:
    """Return this node's class in a campaign.

    The class must have the CPU of this node. Of several such classes, the one that has most in common with
    the node counts, with the rows of all that have its equipment. Memory or kernel may differ, because a wrong
    one may be what makes the node slow.

    Raises:
        RecordError: the campaign has no list of classes, or it is damaged.
        Unavailable: no node of the campaign has this CPU.
    """
    path = campaign / FOLDER / CHECK
    again = f"`peakmark tables {campaign}` writes it where the campaign was measured"
    try:
        classes = [_class(known) for known in json.loads(path.read_bytes())]
    except OSError as error:
        raise RecordError(f"{path} cannot be read ({error.strerror}): {again}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise RecordError(f"{path} is damaged ({error}): {again}") from error
    matching = [known for known in classes if known.equipment.cpu == node.equipment.cpu]
    if not matching:
        cpus = {known.equipment.cpu for known in classes}
        others = " or ".join(sorted(filter(None, cpus)))
        raise Unavailable(
            f"{node.name} belongs to no class of {campaign}: its CPU is {node.equipment.cpu or 'unknown'},"
            f" and theirs is {others or 'unknown'}"
        )
    best = max(matching, key=lambda known: known.equipment.in_common(node.equipment))
    # Cells of the node ``any`` are a class of their own, often with the equipment of the named nodes.
    rows = []
    for known in matching:
        if known.equipment == best.equipment:
            rows += known.rows
    return NodeClass(best.equipment, rows)


def _class(known: Mapping[str, Any]) -> NodeClass:
    """Return a class from its entry in check.json."""
    rows = [ClassRow(**row) for row in known["rows"]]
    return NodeClass(Equipment(**known["equipment"]), rows)


def choose(rows: Sequence[ClassRow], names: Sequence[str]) -> list[ClassRow]:
    """Return the rows that match one of ``names``; without names the headline rows.

    A row matches a name if the name of the row has all its words.

    Raises:
        ConfigError: a name matches no row.
    """
    if not names:
        return [row for row in rows if row.is_headline]
    chosen: dict[str, ClassRow] = {}
    for name in names:
        words = set(name.split())
        matching = [row for row in rows if words <= set(row.name.split())]
        if not matching or not words:  # without words, every row would match
            known = ", ".join(row.name for row in rows) or "none"
            raise ConfigError(f"--rows {name!r}: the campaign has no such row; it has {known}")
        for row in matching:
            chosen.setdefault(row.name, row)
    return list(chosen.values())


def _measurable(campaign: Path, rows: Sequence[ClassRow]) -> list[CheckedRow]:
    """Return the rows whose CPUs this process may use. Errors: Unavailable, if there is none."""
    allowed = os.sched_getaffinity(0)
    checked = [CheckedRow(row) for row in rows if allowed.issuperset(row.cpus)]
    if not checked:
        needs = "no row"
        if rows:
            needs = f"{rows[0].name} needs {plural(len(rows[0].cpus), 'CPU')}"
        raise Unavailable(
            f"{campaign} has no row of this node's class for {plural(len(allowed), 'CPU')}: {needs}"
        )
    return checked


def plan(rows: Sequence[CheckedRow], seconds: float) -> tuple[list[CheckedRow], float]:
    """Return the rows that can be tried ``TRIES`` times within the time, and the seconds of a try.

    The first row is always tried. Each further row, in the given order, is added if it fits into
    the time that is left.

    Args:
        rows: the rows that this node can measure; at least one.
        seconds: time for the whole check.
    """
    round_s = (PLANNED_SHARE * seconds - RESERVED_S) / TRIES  # time to try every row once
    planned = list(rows[:1])
    overhead_s = rows[0].row.overhead_s
    for each in rows[1:]:
        # The time of a round if this row is added, and each row is measured as briefly as possible.
        needed_s = overhead_s + each.row.overhead_s + LEAST_TRY_S * (len(planned) + 1)
        if needed_s <= round_s:
            planned.append(each)
            overhead_s += each.row.overhead_s
    try_s = (round_s - overhead_s) / len(planned)
    return planned, min(MOST_TRY_S, max(LEAST_TRY_S, try_s))


def _try(each: CheckedRow, kernels: Path, try_s: float, deadline: float) -> None:
    """Measure a row once more. If that is not possible, or the time is too short, set its ``reason``."""
    left_s = deadline - time.monotonic()
    if left_s < try_s + each.row.overhead_s:
        each.reason = f"the time was too short for {TRIES} tries of {each.row.name}"
        return
    kernel = find_kernel(kernels, each.row.argv[0])
    try:
        each.tries.append(measure(each.row, kernel, try_s, left_s + LATE_S))
    except Unavailable as error:
        each.reason = str(error)


def _verdict(
    campaign: Path, node: NodeFacts, equipment: Equipment, rows: Sequence[CheckedRow]
) -> Verdict:
    """Return the verdict on a node after all tries of its rows.

    One slow row makes the node slow, even if other rows are uncertain. Of several uncertain rows, the first one
    gives the reason.
    """
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
    reached = ", ".join(f"{each.row.name} {each.row.expected}" for each in rows)
    return Verdict(
        ExitCode.GOOD, f"good: {node.name} reaches the bounds of its class in {campaign}: {reached}"
    )


def _slow(campaign: Path, node: NodeFacts, equipment: Equipment, slow: Sequence[CheckedRow]) -> str:
    """Return the sentence on a slow node: row, value, expected value, tries, and possible reasons.

    Of several slow rows, it has the values of the first one, and the names of the others.
    """
    first = slow[0]
    row = first.row
    values = [each.value for each in first.tries]
    best = min(values) if row.unit == "s" else max(values)
    tries = ", ".join(quantity(value, row.unit) for value in values)
    text = (
        f"slow: {node.name} in {row.name}: {quantity(best, row.unit)}, expected"
        f" {row.expected} (class in {campaign}; tries: {tries})"
    )
    if len(slow) > 1:
        text += f"; also slow: {', '.join(each.row.name for each in slow[1:])}"
    # The control group's quota as it is now, and what differs from the class, may be the reasons.
    quota = first.tries[-1].quota
    if quota is not None:
        text += f"; its control group allows {quota:.3g} CPUs"
    # Its CPU is that of the class, and its network was not read.
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


# -- one try


def find_kernel(folder: Path, name: str) -> Path:
    """Return the path of a kernel: in the subfolder for this architecture, or in the folder itself.

    Raises:
        Unavailable: the kernel was not compiled.
    """
    for path in (folder / os.uname().machine / name, folder / name):
        if os.access(path, os.X_OK):
            return path.resolve()
    raise Unavailable(
        f"the kernel {name} is not in {folder.resolve()}",
        "compile it with `make kernels`, or name its folder with --kernels",
    )


def measure(row: ClassRow, kernel: Path, seconds: float, limit_s: float) -> Try:
    """Measure a row once.

    Args:
        row: the row.
        kernel: path of the kernel.
        seconds: time to measure.
        limit_s: seconds after which the kernel is killed.

    Raises:
        Unavailable: this machine cannot measure the row, or not within the time.
        MeasurementError: the kernel failed.
    """
    argv = [str(kernel), *row.argv[1:], "--seconds", f"{seconds:.3f}"]
    before = noise.read(tuple(row.cpus))
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
            # The same environment for every caller, whatever its variables.
            env={"LC_ALL": "C", "PATH": os.defpath},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{kernel.name} did not measure {row.name} in time") from None
    except OSError as error:
        raise Unavailable(f"{kernel} cannot be executed ({error.strerror})") from error
    after = noise.read(tuple(row.cpus))
    try:
        printed = json.loads(done.stdout)
    except ValueError:  # the kernel failed before it printed its result
        printed = {}
    if printed.get("wrong_cpus"):
        return Try(0.0, wrong_cpu=printed["wrong_cpus"][0])
    if done.returncode == NOT_POSSIBLE:
        raise Unavailable(f"{row.name}: {done.stderr.strip() or 'this machine cannot measure it'}")
    value = printed.get("value")
    if done.returncode or not isinstance(value, float | int) or value <= 0:
        # The last line of the kernel's message.
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise MeasurementError(
            f"{kernel.name} failed in {row.name} with exit code {done.returncode}: {said[0]}"
        )
    quota = _quota(row)
    # The disturbances: activity of others, and a clock limit below the one of the class.
    during = noise.between(before, after)
    disturbances = _disturbances(row, printed, during, quota)
    cap = _lowered_clock(before.clock_limit_hz, row.clock_limit_hz)
    return Try(float(value), " and ".join(filter(None, [*disturbances, cap])), quota)


def _quota(row: ClassRow) -> float | None:
    """Return the CPU time that the control group allows, as a number of CPUs.

    The result is None if that is enough for all threads.
    """
    quota: float | None = job_limits.collect(Host())["cpu_quota"]
    if quota and quota < row.threads:
        return quota
    return None


def _disturbances(
    row: ClassRow, printed: Mapping[str, Any], during: Activity | None, quota: float | None
) -> list[str]:
    """Return in words how other programs and the hypervisor disturbed a try.

    It is no disturbance if a quota of the control group holds the threads back.
    """
    subsystem = "cpu" if row.is_cpu else "memory"
    is_crowded = quota is not None or row.threads > len(row.cpus)
    amounts = activity.find_disturbances(subsystem, during, None, printed, is_crowded=is_crowded)
    disturbances = []
    if "other-load" in amounts:
        disturbances.append(f"other programs used {amounts['other-load']:.1f} CPUs")
    if "steal" in amounts:
        disturbances.append(f"the hypervisor took {percent(amounts['steal'])} % of the CPU time")
    # Other load and steal make threads wait, so that waiting is named only without them.
    if "waited" in amounts and not disturbances:
        disturbances.append(
            f"the threads waited for a CPU {percent(amounts['waited'])} % of the time"
        )
    return disturbances


def _lowered_clock(limit_hz: float | None, usual_hz: float | None) -> str:
    """Return words on a clock limit of this node that is below the limit of its class; else empty.

    Args:
        limit_hz: this node's limit in Hz; None if it is not known.
        usual_hz: limit of the class in Hz; None if it is not known.
    """
    if not limit_hz or not usual_hz or limit_hz >= LOWERED_CLOCK * usual_hz:
        return ""
    return (
        f"the clock was limited to {quantity(limit_hz, 'Hz')} (class: {quantity(usual_hz, 'Hz')})"
    )


# -- the command


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to a parser."""
    command.add_argument(
        "campaign",
        type=Path,
        help="folder of the campaign with rows/ and cells/, e.g. results/quick",
    )
    command.add_argument(
        "--seconds",
        type=float,
        metavar="SECONDS",
        help="time for the whole check; default: 20, for a prolog 5, for NHC 10",
    )
    command.add_argument(
        "--rows",
        action="append",
        default=[],
        metavar="WORDS",
        help="check the rows with these words in their name instead of the headline rows, e.g. 'DP x1'; may be repeated",
    )
    command.add_argument(
        "--for",
        dest="caller",
        choices=list(CALLERS_S),
        help="for Slurm's prolog or HealthCheckProgram, or for NHC: exit with 0 unless the node is slow (1)",
    )
    command.add_argument(
        "--kernels", type=Path, help="folder of the compiled kernels; default: of this installation"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run this command as a program of its own, without loading peakmark's other commands."""
    parser = argparse.ArgumentParser(prog="peakmark check", description=check.__doc__)
    add_arguments(parser)
    return check(parser.parse_args(words))


def check(options: argparse.Namespace) -> int:
    """Check on a node whether it is as good as its class was in a campaign.

    Exit code 1 means slow, 3 means cannot tell. Python's standard library suffices:
    python3 -IBS .../peakmark/check results/NAME does the same without an environment.
    """
    try:
        verdict = _compare(options)
        print(verdict.text, flush=True)
        code = verdict.code
    except PeakmarkError as error:
        code = _failed(str(error), error.exit_code)
    except OSError as error:
        mute()  # Python would try to print again, and end with another code
        code = _failed(sentence(error), ExitCode.ERROR)
    except Exception as error:  # a traceback ends with 1, which would drain the node
        code = _failed(f"defect of peakmark: {error!r}", ExitCode.ERROR)
    # With --for, a prolog or a health check calls: any code but 0 drains the node. Only a slow node deserves that.
    if options.caller and code != ExitCode.DIFFERENT:
        return ExitCode.GOOD
    return code


def _failed(text: str, code: ExitCode) -> ExitCode:
    """Print why the check failed, and return its exit code."""
    tell(text)
    return code


def _compare(options: argparse.Namespace) -> Verdict:
    """Check the options, then the node, and return the verdict. Errors: PeakmarkError, OSError."""
    usual_s, most_s = CALLERS_S.get(options.caller, BY_HAND_S)
    seconds = options.seconds
    if seconds is None:
        seconds = usual_s
    if not 1 <= seconds <= most_s:
        raise ConfigError(f"--seconds {seconds:g} is not allowed: give 1 to {most_s:g}")
    kernels = options.kernels or kernel_build.folder()
    try:
        return compare_node(options.campaign, kernels, seconds, options.rows)
    except Unavailable as error:
        return Verdict(ExitCode.CANNOT_TELL, f"cannot tell: {error}")
