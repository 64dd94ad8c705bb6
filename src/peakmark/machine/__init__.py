"""Facts of a node as any user can read them: what the limits are computed from and what a report
must state.

``collect`` takes well under a second, needs no root, and never fails because a tool is missing:
what cannot be read is null, and ``unknown`` says how a person can supply it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import output
from peakmark.errors import RecordError
from peakmark.machine import allowed
from peakmark.machine.host import Host
from peakmark.machine.topology import Topology
from peakmark.storage import facts as stored
from peakmark.storage.types import Facts
from peakmark.tools import present
from peakmark.tools.base import Tool
from peakmark.validation import convert

SCHEMA = 1

__all__ = ["SCHEMA", "Host", "cached", "collect"]


def collect(
    scratch: Path | None = None,
    tools: Mapping[str, Tool] | None = None,
    cpubench: Path | None = None,
    host: Host | None = None,
) -> dict[str, Any]:
    """All facts of this machine as JSON values, of the type ``storage.types.Facts``.

    scratch            directory whose disk is described; default $TMPDIR, else /tmp
    tools              name -> program with ``path`` and ``version``, kept beside the facts
    cpubench           kernel that tells the clock the cores really have (50 ms); without it the
                       observed clock is null
    host               another root directory or other tools, for tests

    Units: bytes, Hz, bit/s, B/s. Errors: RecordError if what was read does not fit the type (a
    defect of ours).
    """
    # Late: only the first cell on a node collects.
    import datetime

    from peakmark.machine import cpu, libraries, memory, network, software, storage

    host = host or Host()
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "host": os.uname().nodename,
        "collected": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": cpu.collect(host),
        "memory": memory.collect(host),
        "os": software.collect_os(host),
        "storage": storage.collect(host, scratch),
        "network": network.collect(host),
        "limits": allowed.collect(host),
        "tools": {
            name: {"path": tool.path, "version": tool.version}
            for name, tool in sorted((tools or {}).items())
        },
        "slurm": software.collect_slurm(host),
        "build": libraries.collect_build(host, cpubench.parent if cpubench else None),
        "blas": libraries.collect_blas(
            host, tools["hpl"].path if tools and "hpl" in tools else None
        ),
        "libraries": libraries.collect_libraries(
            host, [tool.path for tool in (tools or {}).values()]
        ),
    }
    _observe_clock(host, facts, cpubench)
    facts["unknown"] = dict(sorted(host.unknown.items()))
    convert(facts, Facts, "machine facts")
    return facts


def _observe_clock(host: Host, facts: dict[str, Any], cpubench: Path | None) -> None:
    """Fill the observed clock from a very short run of our own kernel, which times a dependent
    chain.
    """
    how = "build the kernels (make kernels): cpubench measures the clock"
    if cpubench is not None:
        how = f"{cpubench} did not tell a clock"
        clock = _run_cpubench(cpubench)
        if clock is not None:
            facts["cpu"]["clock_hz"]["observed"] = clock
            facts["cpu"]["clock_source"]["observed"] = (
                "dependent chain timed by cpubench, one thread"
            )
            return
    host.missing("cpu.clock_hz.observed", how)


def _run_cpubench(program: Path) -> float | None:
    import subprocess

    argv = [
        str(program),
        "--workload",
        "SP",
        "--seconds",
        "0.05",
        "--warmup",
        "0.02",
        "--threads",
        "1",
    ]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5, check=True
        )
        clock = json.loads(done.stdout)["clock_hz_before"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
    return float(clock) if isinstance(clock, int | float) and clock > 0 else None


def cached(
    folder: Path,
    scratch: Path | None = None,
    kernels: Path | None = None,
    cpu_locations: Topology | None = None,
) -> dict[str, Any]:
    """Facts of this machine from ``folder/<host>.json``, collected and written there by the first
    who asks; collected again, and the file set aside, when it is damaged or was edited.

    kernels  folder of the compiled kernels, asked with all other programs when facts are collected;
             None: none is asked
    seats    where this process's CPUs sit, when it is known

    What may differ from job to job is always read anew: limits, Slurm's job, and the disk if
    ``scratch`` is another. No program is started for it, unless for another disk.
    """
    path = folder / f"{os.uname().nodename}.json"
    host = Host()
    facts = _stored(path)
    if facts is not None:
        facts["limits"] = allowed.collect(host, cpu_locations=cpu_locations)
        facts["slurm"] = allowed.slurm_now((facts.get("slurm") or {}).get("version"))
        if scratch is not None and facts.get("storage", {}).get("scratch") != str(scratch):
            from peakmark.machine import storage

            facts["storage"] = storage.collect(host, scratch)
        return facts
    if kernels is None:
        facts = collect(scratch, host=host)
    else:
        facts = collect(scratch, present(kernels), kernels / "cpubench", host)
    stored.write(path, facts)
    return facts


def _stored(path: Path) -> dict[str, Any] | None:
    """The facts at ``path``; None where there are none that count."""
    if not path.exists():
        return None
    try:
        return stored.read(path)
    except RecordError as error:
        aside = stored.set_aside(path.parent.parent, path.stem)
        output.tell(f"{error}: collected again, what was there is kept in {aside}")
        return None
