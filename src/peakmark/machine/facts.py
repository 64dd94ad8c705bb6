"""Collect all facts of a node once, and keep them in a file.

``collect`` takes well under a second, needs no root, and does not fail if a tool is missing. A fact
that cannot be read is null, and ``unknown`` says how the user can supply it.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path

from peakmark.errors import RecordError, tell
from peakmark.machine import gpu, hardware, job_limits, network, software, storage
from peakmark.machine.host import Facts, Host
from peakmark.machine.topology import Topology
from peakmark.storage import records
from peakmark.tools import present
from peakmark.tools.base import Tool

SCHEMA = 1  # version of the layout of the facts, which their file states


def collect(
    scratch: Path | None = None,
    tools: Mapping[str, Tool] | None = None,
    cpubench: Path | None = None,
    host: Host | None = None,
) -> Facts:
    """Return all facts of this machine as JSON values.

    Args:
        scratch: directory on the disk to describe; by default $TMPDIR or, if it is not set, /tmp.
        tools: name -> program, whose path and version become facts.
        cpubench: kernel that measures the clock in 50 ms; without it the observed clock is null.
        host: machine with another root directory or other tools, for tests.
    """
    host, tools = host or Host(), tools or {}
    hpl = tools["hpl"].path if "hpl" in tools else None
    programs = {}
    for name, tool in sorted(tools.items()):
        programs[name] = {"path": tool.path, "version": tool.version}
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
        "tools": programs,
        "slurm": software.collect_slurm(host),
        "build": software.collect_build(host, cpubench and cpubench.parent),
        "blas": software.collect_blas(host, hpl),
        "libraries": software.collect_libraries(host, [tool.path for tool in tools.values()]),
    }
    _observe(host, facts["cpu"], cpubench)
    # gpubench, which lists the GPUs, is next to cpubench.
    gpus = None
    if cpubench is not None:
        gpus = gpu.collect(host, cpubench.with_name("gpubench"))
    if gpus is not None:
        facts["gpu"] = gpus
    facts["unknown"] = dict(sorted(host.unknown.items()))
    return facts


def _observe(host: Host, cpu: Facts, cpubench: Path | None) -> None:
    """Run cpubench briefly; add the observed clock and the energy counters to the facts ``cpu``."""
    cpu["energy"] = None
    if cpubench is None:
        how = "build the kernels (peakmark run -- kernels): cpubench measures the clock"
        host.missing("cpu.clock_hz.observed", how)
        return
    # A run of 50 ms with one thread is long enough to measure a clock.
    words = "--workload SP --seconds 0.05 --warmup 0.02 --threads 1"
    printed = host.run_json([str(cpubench.absolute()), *words.split()]) or {}
    cpu["energy"] = printed.get("energy_of")
    if printed and cpu["energy"] is None:
        host.missing("cpu.energy", hardware.how_to_read_energy(host))
    # cpubench measures the clock before its run and after it.
    if printed.get("clock_hz_before"):
        cpu["clock_hz"]["observed"] = printed["clock_hz_before"]
        cpu["clock_source"]["observed"] = "dependent chain timed by cpubench, one thread"
    else:
        host.missing("cpu.clock_hz.observed", f"{cpubench} printed no clock")


def cached(
    folder: Path,
    scratch: Path | None = None,
    kernels: Path | None = None,
    cpu_locations: Topology | None = None,
) -> Facts:
    """Return the facts of this machine from ``folder/<host>.json``, which the first call writes.

    The limits, and the partition and the node in Slurm, are read again in every call. The disk is read again only if
    ``scratch`` is another directory, because reading it starts programs. A damaged or edited file is
    moved below ``set-aside/``, and the facts are collected again.

    Args:
        folder: folder of the facts in the campaign.
        scratch: directory on the disk to describe.
        kernels: folder of the compiled kernels; None leaves all programs out of the facts. It counts only if this
            call writes the facts.
        cpu_locations: core, socket and NUMA node of each CPU, if already read.
    """
    path = folder / f"{os.uname().nodename}.json"
    host = Host()
    facts = _stored(path)
    if facts is None:
        tools, cpubench = None, None
        if kernels is not None:
            # cpubench is also run: it measures the clock.
            tools, cpubench = present(kernels), kernels / "cpubench"
        facts = collect(scratch, tools, cpubench, host)
        records.write_facts(path, facts)
        return facts
    facts["limits"] = job_limits.collect(host, cpu_locations=cpu_locations)
    # The version is taken from the file, because reading it starts a program.
    facts["slurm"] = job_limits.slurm_job((facts["slurm"] or {}).get("version"))
    if scratch is not None and facts["storage"]["scratch"] != str(scratch):
        facts["storage"] = storage.collect(host, scratch)
    return facts


def _stored(path: Path) -> Facts | None:
    """Return the facts at ``path``, or None if there is no valid file. An invalid file is moved away."""
    if not path.exists():
        return None
    try:
        return records.read_facts(path)
    except RecordError as error:
        # ``path`` is machine/<host>.json in the folder of the campaign.
        aside = records.set_aside_facts(path.parent.parent, path.stem)
        tell(f"{error}: collected again, the old file is kept in {aside}")
        return None
