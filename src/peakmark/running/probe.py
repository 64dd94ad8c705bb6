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
from peakmark.running import refusals

FOLDER = Path("results") / "doctor"


def examine(settings: Mapping[str, Any], scratch: Path | None, wait_s: float) -> tuple[str, bool]:
    """A submission of every kind that is only tested, then a job on one node of each size. Returns lines and whether all
    is well. Errors: SlurmError when Slurm does not answer at all.
    """
    base = [f"--{key}={settings[key]}" for key in ("partition", "account", "qos", "constraint") if key in settings] + [
        "--time=5",
        "--ntasks-per-node=1",
    ]
    base += ["--exclusive"] if settings.get("exclusive", True) else []
    base += ["--mem=0"] if settings.get("memory", "per_node") == "per_node" else []
    base += str(settings.get("extra", "")).split()
    kinds: dict[tuple[int, int, str], list[slurm.Node]] = {}
    for node in slurm.nodes(settings.get("partition")):
        kinds.setdefault((node.cpus, node.memory, " ".join(sorted(node.features))), []).append(node)
    lines, healthy = [], True
    for words in ("one node", "two nodes"):
        refusal = _refusal([*base, f"--nodes={2 if words == 'two nodes' else 1}"])
        healthy &= refusal is None or words == "two nodes"
        lines.append(
            f"{'ok' if refusal is None else 'missing':<8}{words:<14}{refusal or 'Slurm would take such a job'}"
        )
    if not healthy:
        return "\n".join(lines), False
    for (cpus, memory, _), nodes in sorted(kinds.items()):
        usable = next((node for node in nodes if node.usable), None)
        lines += ["", f"{len(nodes)} x {cpus} CPUs, {memory} MiB: {', '.join(node.name for node in nodes[:4])}"]
        if usable is None:
            lines.append(f"{'note':<8}{'nodes':<14}none can be used now ({nodes[0].state})")
            continue
        lines.append(_probe(base, usable, scratch, wait_s))
    return "\n".join(lines), healthy


def _refusal(words: list[str]) -> str | None:
    try:
        slurm.ask("sbatch", "--test-only", *words, text="#!/bin/sh\n")
    except slurm.SlurmError as error:
        return None if refusals.away(str(error)) else refusals.sentence(str(error))
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
    except PeakmarkError as error:
        return f"{'missing':<8}{'job':<14}{refusals.sentence(str(error))}"
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
            return f"{'missing':<8}{'job':<14}Slurm ended it: {mine[0].state} {mine[0].reason}"
        time.sleep(0.5)
    if not path.exists():
        slurm.cancel([number])
        return f"{'note':<8}{'job':<14}did not run within {wait_s:g} s and is cancelled; --wait gives it longer"
    return path.read_text(encoding="utf-8").rstrip()


def of_node() -> list[tuple[str, str, str]]:
    """On a node, inside a job: the CPUs it may use of those that are there, and threads a core. (mark, what, words)."""
    allowed, there = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    mark = "ok" if allowed == there else "note"
    words = f"{allowed} of {there}" + ("" if allowed == there else "; the job is bound to a part of its node")
    siblings = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    threads = _count(siblings.read_text().strip()) if siblings.exists() else 1
    return [(mark, "CPUs", words), ("ok", "threads", f"{threads} a core")]


def _count(ranges: str) -> int:
    """``0,64`` and ``0-1`` are two."""
    bounds = [[int(one) for one in part.split("-")] for part in ranges.split(",")]
    return sum(bound[-1] - bound[0] + 1 for bound in bounds)
