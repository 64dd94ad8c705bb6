"""Facts of a node as any user can read them: what the limits are computed from and what a report
must state.

``collect`` takes well under a second, needs no root, and never fails because a tool is missing:
what cannot be read is null, and ``unknown`` says how a person can supply it.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path

from peakmark import output
from peakmark.errors import RecordError
from peakmark.machine import hardware, job_limits, network, software, storage
from peakmark.machine.host import Facts, Host
from peakmark.machine.topology import Topology
from peakmark.storage import facts as stored
from peakmark.storage import types
from peakmark.tools import present
from peakmark.tools.base import Tool
from peakmark.validation import convert

SCHEMA = 1

__all__ = ["SCHEMA", "cached", "collect"]


def collect(
    scratch: Path | None = None,
    tools: Mapping[str, Tool] | None = None,
    cpubench: Path | None = None,
    host: Host | None = None,
) -> Facts:
    """All facts of this machine as JSON values, of the type ``storage.types.Facts``.

    Args:
        scratch: directory whose disk is described; default $TMPDIR, else /tmp.
        tools: name -> program, whose path and version become facts.
        cpubench: kernel that measures the clock in 50 ms; without it the observed clock is null.
        host: another root directory or other tools, for tests.

    Returns:
        Facts in bytes, Hz, bit/s and B/s.

    Raises:
        RecordError: if the facts do not fit the type (a defect of peakmark).
    """
    host, tools = host or Host(), tools or {}
    hpl = tools["hpl"].path if "hpl" in tools else None
    facts: Facts = {
        "schema": SCHEMA,
        "host": os.uname().nodename,
        "collected": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "cpu": hardware.collect_cpu(host),
        "memory": hardware.collect_memory(host),
        "os": software.collect_os(host),
        "storage": storage.collect(host, scratch),
        "network": network.collect(host),
        "limits": job_limits.collect(host),
        "tools": {
            name: {"path": tool.path, "version": tool.version}
            for name, tool in sorted(tools.items())
        },
        "slurm": software.collect_slurm(host),
        "build": software.collect_build(host, cpubench.parent if cpubench else None),
        "blas": software.collect_blas(host, hpl),
        "libraries": software.collect_libraries(host, [tool.path for tool in tools.values()]),
    }
    measured = _measure_shortly(host, cpubench) if cpubench else {}
    clock = measured.get("clock_hz_before")
    facts["cpu"]["energy"] = measured.get("energy_of")
    if measured and facts["cpu"]["energy"] is None:
        host.missing("cpu.energy", hardware.how_to_read_energy(host))
    if clock:
        facts["cpu"]["clock_hz"]["observed"] = clock
        facts["cpu"]["clock_source"]["observed"] = "dependent chain timed by cpubench, one thread"
    elif cpubench:
        host.missing("cpu.clock_hz.observed", f"{cpubench} did not tell a clock")
    else:
        how = "build the kernels (peakmark run -- kernels): cpubench measures the clock"
        host.missing("cpu.clock_hz.observed", how)
    facts["unknown"] = dict(sorted(host.unknown.items()))
    convert(facts, types.Facts, "machine facts")
    return facts


def _measure_shortly(host: Host, cpubench: Path) -> Facts:
    """What a very short run of cpubench prints: the clock in Hz by a dependent chain, and whose
    energy it can read.
    """
    options = ["--workload", "SP", "--seconds", "0.05", "--warmup", "0.02", "--threads", "1"]
    result = host.run_json([str(cpubench.absolute()), *options])
    return result if isinstance(result, dict) else {}


def cached(
    folder: Path,
    scratch: Path | None = None,
    kernels: Path | None = None,
    cpu_locations: Topology | None = None,
) -> Facts:
    """Facts of this machine from ``folder/<host>.json``, which the first caller on a node writes.

    Limits, Slurm's job, and the disk if ``scratch`` is another, may differ from job to job and are
    always read; no program is started for them, unless for another disk. A damaged or edited file
    is set aside and written again.

    Args:
        kernels: folder of the compiled kernels; None leaves all programs out of the facts.
        cpu_locations: where this process's CPUs sit, if already read.
    """
    path = folder / f"{os.uname().nodename}.json"
    host = Host()
    facts = _stored(path)
    if facts is None:
        tools = present(kernels) if kernels else None
        facts = collect(scratch, tools, kernels / "cpubench" if kernels else None, host)
        stored.write(path, facts)
        return facts
    facts["limits"] = job_limits.collect(host, cpu_locations=cpu_locations)
    facts["slurm"] = job_limits.slurm_job((facts["slurm"] or {}).get("version"))
    if scratch is not None and facts["storage"]["scratch"] != str(scratch):
        facts["storage"] = storage.collect(host, scratch)
    return facts


def _stored(path: Path) -> Facts | None:
    """The facts at ``path``; None where there are none that are valid."""
    if not path.exists():
        return None
    try:
        return stored.read(path)
    except RecordError as error:
        aside = stored.set_aside(path.parent.parent, path.stem)
        output.tell(f"{error}: collected again, what was there is kept in {aside}")
        return None
