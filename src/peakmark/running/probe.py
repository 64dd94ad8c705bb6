"""``peakmark doctor --slurm``: would Slurm take our jobs, and what do they find on a node of each kind."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import output, resources, slurm
from peakmark.errors import PeakmarkError
from peakmark.machine.host import Host, parse_cpu_list
from peakmark.running import refusals
from peakmark.running.reasons import JobReason

FOLDER = Path("results") / "doctor"


def examine(settings: Mapping[str, Any], scratch: Path | None, wait_s: float) -> tuple[str, bool]:
    """A submission of every kind that is only tested, then a job on one node of each size. Returns lines and whether all
    is well. Errors: SlurmError when Slurm does not answer at all.
    """
    base = [f"--{key}={settings[key]}" for key in ("partition", "account", "qos", "constraint") if key in settings]
    base += ["--time=5", "--ntasks-per-node=1"]
    base += ["--exclusive"] if settings.get("exclusive", True) else []
    base += ["--mem=0"] if settings.get("memory", "per_node") == "per_node" else []
    base += str(settings.get("extra", "")).split()
    kinds: dict[tuple[int, int, str], list[slurm.Node]] = {}
    for node in slurm.nodes(settings.get("partition")):
        kinds.setdefault((node.cpus, node.memory, " ".join(sorted(node.features))), []).append(node)
    lines, healthy = [], True
    for count, what in ((1, "one node"), (2, "two nodes")):
        refusal = _refusal([*base, f"--nodes={count}"])
        healthy &= refusal is None or count == 2
        lines.append(line("missing" if refusal else "ok", what, str(refusal or "Slurm would take such a job")))
    if not healthy:
        return "\n".join(lines), False
    for (cpus, memory, _), nodes in sorted(kinds.items()):
        usable = next((node for node in nodes if node.usable), None)
        lines += ["", f"{len(nodes)} x {cpus} CPUs, {memory} MiB: {', '.join(node.name for node in nodes[:4])}"]
        if usable is None:
            lines.append(line("note", "nodes", f"none can be used now ({nodes[0].state})"))
            continue
        lines.append(_probe(base, usable, scratch, wait_s))
    return "\n".join(lines), healthy


def line(mark: str, what: str, finding: str) -> str:
    """A line of ``peakmark doctor``; ``mark``: ok, note, missing or broken."""
    return f"{mark:<8}{what:<14}{finding}"


def _refusal(options: list[str]) -> JobReason | None:
    try:
        slurm.ask("sbatch", "--test-only", *options, text="#!/bin/sh\n")
    except slurm.SlurmError as error:
        return None if refusals.away(error) else refusals.reason(error)
    return None


def _probe(base: list[str], node: slurm.Node, scratch: Path | None, wait_s: float) -> str:
    """What a job finds on the node, in the words of ``peakmark doctor`` there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{node.name}.txt"
    path.unlink(missing_ok=True)
    where = ("--scratch", str(scratch)) if scratch else ()
    command = f"{shlex.join(resources.command('doctor', '--node', *where))} > {path}.part 2>&1; mv {path}.part {path}"
    options = [*base, "--nodes=1", f"--nodelist={node.name}", "--job-name=peakmark-doctor", "--output=/dev/null"]
    try:
        number = slurm.submit(options, f"#!/bin/sh\n{command}\n")
    except slurm.SlurmError as error:
        return line("missing", "job", str(refusals.reason(error)))
    output.tell(f"job {number} asks {node.name}; it may wait {wait_s:g} s for its turn (--wait)")
    try:
        return _answer(path, number, wait_s)
    except BaseException:
        with contextlib.suppress(PeakmarkError):
            slurm.cancel([number])
        raise


def _answer(path: Path, number: str, wait_s: float) -> str:
    deadline = time.monotonic() + wait_s
    while not path.exists() and time.monotonic() < deadline:
        mine = [job for job in slurm.jobs("all") if job.number == number]
        if mine and mine[0].state in slurm.ENDED_BADLY:
            return line("missing", "job", f"Slurm ended it: {mine[0].state} {mine[0].reason}")
        time.sleep(0.5)
    if not path.exists():
        slurm.cancel([number])
        return line("note", "job", f"did not run within {wait_s:g} s and is cancelled; --wait gives it longer")
    return path.read_text(encoding="utf-8").rstrip()


def of_node() -> list[str]:
    """On a node, inside a job: the CPUs it may use of those that are there, and threads a core."""
    allowed, there = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    mark = "ok" if allowed == there else "note"
    bound = f"{allowed} of {there}" + ("" if allowed == there else "; the job is bound to a part of its node")
    siblings = parse_cpu_list(Host().read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"))
    return [line(mark, "CPUs", bound), line("ok", "threads", f"{len(siblings) or 1} a core")]
