"""The content of ``campaign.json``, which describes the whole campaign, and the frame of host facts."""

from __future__ import annotations

import functools
import hashlib
import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from peakmark import yamlfile
from peakmark.config.types import Planned
from peakmark.formatting import counted, natural, printable
from peakmark.resources import of_checkout
from peakmark.rows import schema
from peakmark.rows.fleet import DELTA, LEAST_REPETITIONS
from peakmark.rows.node_classes import LEAST_NODES
from peakmark.rows.schema import NOT_PLANNED
from peakmark.storage.record_types import CommandRun, NetworkUsed
from peakmark.storage.results import Results, StoredRecord
from peakmark.tools import REGISTRY
from peakmark.tools.tables import TABLES, tables_of

Facts = Mapping[str, Any]

OUTPUT_LINES = 50
"""Number of lines of a raw output that a report may print: half a page."""
MOST_NAMED = 3
"""Largest number of points that a failure names; further points are counted."""


def campaign_of(results: Results) -> dict[str, Any]:
    """Return the content of ``campaign.json``.

    The keys whose names do not explain themselves:

    - ``settings``: the keys of ``config`` that differ from the default.
    - ``preset``: name of the shipped preset with the same settings; empty if there is none.
    - ``cells``: number of planned cells.
    - ``missing``: number of planned cells without a valid record.
    - ``instruments``: instruments with planned cells.
    - ``node_seconds``: for each ended job, its number of nodes x its seconds in Slurm's accounting.
    - ``programs``: programs that measured.
    - ``commands``: instrument -> commands that it executed.
    - ``outputs``: reference tool -> the beginning of its first raw output.
    - ``empty``: instrument -> why it has no values.
    - ``networks``: host -> its network interface.
    - ``on_cluster``: whether Slurm ran the campaign.
    - ``behind``: switch or uplink -> nodes behind it.
    - ``checksums``: number of files with a checksum, and the digest of the list of checksums.
    - ``left_out``: sentences on records and on hosts' facts that were left out.
    - ``tables``: names of the tables that the plan fills.
    - ``unplanned``: subsystem -> why its grids planned no cells, in a sentence.
    - ``promises``: verdict on each promised value of the site file, by node; see ``judge_promises``.
    - ``rule``: a node is slow if it is behind by more than the share ``beyond``. The test needs at
      least ``nodes`` nodes of a class and ``repetitions`` repetitions of a row.
    """
    return {
        "name": results.name,
        "config": msgspec.to_builtins(results.config),
        "settings": settings_of(results.config),
        "preset": preset_of(results.config),
        "cells": len(results.cells),
        "missing": len(results.missing),
        "instruments": sorted({cell.instrument for cell in results.cells}),
        "times": times_of(results),
        "jobs": jobs_of(results),
        "node_seconds": results.node_seconds,
        "versions": versions_of(results),
        "programs": programs_of(results),
        "commands": commands_of(results),
        "outputs": outputs_of(results),
        "empty": empty_reasons(results),
        "failures": failures_of(results),
        "networks": networks_of(results),
        "on_cluster": results.plan.cluster is not None,
        "behind": nodes_behind(results),
        "checksums": checksums_of(results),
        "left_out": list(results.left_out),
        "tables": tables_of(results.cells),
        "unplanned": dict(results.plan.left_out),
        "rule": {"beyond": DELTA, "nodes": LEAST_NODES, "repetitions": LEAST_REPETITIONS},
    }


def times_of(results: Results) -> dict[str, Any]:
    """Return when the campaign was measured, and how long it took.

    - ``newest``: start of the newest record or failed attempt, to the second.
    - ``records``: number of records.
    - ``first``: start of the first record.
    - ``elapsed``: time from the start of the first record to the end of the last, s.

    Without records only ``newest`` and ``records`` are present.
    """
    contexts = [record.data.context for record in results.records]
    times: dict[str, Any] = {"newest": newest(results).isoformat(), "records": len(contexts)}
    if not contexts:
        return times
    starts, ends = [], []
    for context in contexts:
        begun = datetime.fromisoformat(context.started).astimezone(UTC)
        starts.append(begun)
        ends.append(begun + timedelta(seconds=context.seconds))
    first = min(starts)
    return times | {"first": first.isoformat(), "elapsed": (max(ends) - first).total_seconds()}


def newest(results: Results) -> datetime:
    """Return the start of the newest record or failed attempt, to the second; without any, the epoch."""
    # The epoch is the result without records, and older than any record.
    times = [datetime.fromtimestamp(0, UTC)]
    for record in (*results.records, *results.attempts):
        times.append(datetime.fromisoformat(record.data.context.started).astimezone(UTC))
    return max(times).replace(microsecond=0)


def jobs_of(results: Results) -> list[str]:
    """Return the IDs of the Slurm jobs that measured, in ascending order."""
    numbers = {record.data.context.job_id for record in results.records}
    return sorted((str(number) for number in numbers if number), key=natural)


def versions_of(results: Results) -> list[str]:
    """Return the versions of peakmark that measured, in the order of the records."""
    return list(dict.fromkeys(record.data.context.peakmark for record in results.records))


def programs_of(results: Results) -> list[dict[str, str]]:
    """Return each program that measured as a dict with ``instrument``, ``version`` and ``path``, without duplicates."""
    found = {}
    for record in results.records:
        tool, library = record.data.context.tool, record.data.context.library
        if not record.ok or tool is None:
            continue
        # ``library`` has facts of the program's libraries, such as how MPI started its ranks.
        extra = [f"{name} {value}" for name, value in sorted(library.items()) if value is not None]
        version = tool.version
        if extra:
            version += f" ({'; '.join(extra)})"
        program = {"instrument": record.cell.instrument, "version": version, "path": tool.path}
        found[tuple(program.values())] = program
    return [found[key] for key in sorted(found)]


def commands_of(results: Results) -> dict[str, list[str]]:
    """Return for each instrument one command line per workload: the first that was recorded."""
    lines: dict[str, dict[str, str]] = defaultdict(dict)
    for record in results.records:
        executed = record.data.context.commands
        if record.ok and executed:
            by_workload = lines[record.cell.instrument]
            if record.cell.workload not in by_workload:
                by_workload[record.cell.workload] = shell_line(executed[0])
    return {instrument: list(by_workload.values()) for instrument, by_workload in lines.items()}


def outputs_of(results: Results) -> dict[str, str]:
    """Return for each reference tool the first ``OUTPUT_LINES`` lines of its first raw output."""
    found: dict[str, str] = {}
    for record in results.records:
        instrument = record.cell.instrument
        if not REGISTRY[instrument].reference or instrument in found:
            continue
        folder = (results.directory / record.path).parent
        for path in (folder / name for name in record.data.raw):
            if path.is_file():
                with path.open(encoding="utf-8", errors="replace") as stream:
                    begin = "".join(islice(stream, OUTPUT_LINES))
                # splitlines() also splits at signs that end no line of a file, such as form feeds.
                lines = begin.splitlines()[:OUTPUT_LINES]
                found[instrument] = "\n".join(map(printable, lines))
                break
    return found


def shell_line(command: CommandRun) -> str:
    """Return a recorded command as a line for the shell."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in sorted(command.env.items())]
    return " ".join([*settings, shlex.join(command.argv)])


def empty_reasons(results: Results) -> dict[str, str]:
    """Return instrument of the tables -> the reason to show if it has no values."""
    reasons = {}
    for table in TABLES:
        for program in table.series:
            reasons[program.instrument] = empty_reason(results, program.instrument)
    return reasons


def empty_reason(results: Results, instrument: str) -> str:
    """Return why an instrument has no values, with the package to install if the plan knows one."""
    # The plan did not find the program.
    for reference in results.plan.references:
        if reference.instrument == instrument and reference.path is None:
            reason = reference.reason or "the program is not on this machine"
            if reference.package:
                reason += f"; `apt install {reference.package}` fills them"
            return reason
    # Hosts cannot measure its cells, or failed. Several hosts may have one reason.
    reasons: dict[str, None] = {}
    for record in (*results.refused, *results.attempts):
        if record.cell.instrument == instrument:
            reasons[without_host(record)] = None
    if reasons:
        return "; ".join(reasons)
    if any(cell.instrument == instrument for cell in results.cells):
        return "none of its cells has been measured for these rows yet"
    return NOT_PLANNED


def without_host(record: StoredRecord) -> str:
    """Return why a record has no value, without the host's name.

    Without the name, several nodes can have one reason.
    """
    return str(record.data.reason).replace(f" on {record.data.context.host}", "")


class SharedFailure(NamedTuple):
    """A failure of cells that several nodes may have in common.

    Attributes:
        cells: name of the cells: the program, and usually their points.
        what: what went wrong, such as *not possible here*.
        reason: why it did.
    """

    cells: str
    what: str
    reason: str


def failures_of(results: Results) -> list[dict[str, Any]]:
    """Return each failure as a mapping with the attributes of ``SharedFailure`` and with ``nodes``.

    ``nodes`` lists a node once for each time that it failed.
    """
    nodes: dict[SharedFailure, list[str]] = defaultdict(list)
    found = chain(impossible_cells(results), failed_attempts(results), untried_cells(results))
    for failure, node in found:
        nodes[failure].append(node)
    return [failure._asdict() | {"nodes": names} for failure, names in nodes.items()]


def impossible_cells(results: Results) -> Iterator[tuple[SharedFailure, str]]:
    """Yield (failure, host) for each record of a cell that the host cannot measure.

    All points of a program with one reason are one failure.
    """
    refused: dict[tuple[str, str], list[StoredRecord]] = defaultdict(list)
    for record in results.refused:
        refused[record.cell.instrument, without_host(record)].append(record)
    for (instrument, reason), records in refused.items():
        points = list(dict.fromkeys(record.cell.point for record in records))
        name = f"{instrument} {counted(points, MOST_NAMED)}"
        for record in records:
            yield SharedFailure(name, "not possible here", reason), record.data.context.host


def failed_attempts(results: Results) -> Iterator[tuple[SharedFailure, str]]:
    """Yield (failure, node) for each failed attempt. The attempts at one point with one reason are one failure."""
    answered = {record.cell.id for record in results.records}
    for record in results.attempts:
        what = "failed, repeated later" if record.cell.id in answered else "failed"
        # The host may be another than the node that was planned.
        reason = f"{record.data.reason} ({record.data.context.host})"
        name = f"{record.cell.instrument} {record.cell.point}"
        yield SharedFailure(name, what, reason), record.cell.place


def untried_cells(results: Results) -> Iterator[tuple[SharedFailure, str]]:
    """Yield (failure, node) for each cell that has neither a record nor a failed attempt."""
    tried = {record.cell.id for record in results.attempts}
    for cell in results.missing:
        if cell.id not in tried:
            yield SharedFailure(cell.instrument, "not measured", "no record yet"), cell.place


def networks_of(results: Results) -> dict[str, dict[str, Any]]:
    """Return host -> facts of its network interface, with a ``remark`` on whether it was measured.

    A host without a measured interface has the facts of the interface of its default route.
    """
    seen: dict[str, list[NetworkUsed]] = defaultdict(list)
    for record in results.records:
        context = record.data.context
        if context.network:
            seen[context.host].append(context.network)
    return {
        host: network_of(facts.get("network") or {}, seen[host])
        for host, facts in results.facts.items()
    }


def network_of(facts: Facts, seen: list[NetworkUsed]) -> dict[str, Any]:
    """Return the facts of the interface that a host's records used.

    Return ``facts`` if no record used an interface, and those of the first one if the records used
    several. ``remark`` says whether the interface was measured.

    Args:
        facts: facts of the interface of the default route.
        seen: the part ``network`` of the contexts of the host's records.
    """
    if not seen:
        return {**facts, "remark": "of the default route; not measured"}
    first = seen[0]
    link = first.link or {"interface": first.interface}
    if first.loopback:
        note = "loopback has no line rate: no network was crossed"
        link = {"interface": first.interface, "kind": "loopback", "speed_note": note}
    return {**link, "remark": "measured"}


def nodes_behind(results: Results) -> dict[str, list[str]]:
    """Return name of a switch or uplink of the plan -> the nodes behind it; empty outside a cluster."""
    known = results.plan.cluster or {}
    return {name: sorted(nodes, key=natural) for name, nodes in known.get("switches", {}).items()}


def checksums_of(results: Results) -> dict[str, Any]:
    """Return the number of files in ``Results.checksum_list``, and the SHA-256 of this list."""
    digest = hashlib.sha256(results.checksum_list.encode()).hexdigest()
    return {"files": results.checksum_list.count("\n"), "digest": digest}


# -- facts of hosts


def facts_of_hosts(results: Results) -> pd.DataFrame:
    """Return the frame ``facts``, with a line for each part of the facts of each host, such as ``cpu``."""
    lines = []
    for host, facts in results.facts.items():
        for part, value in facts.items():
            text = json.dumps(value, ensure_ascii=False)
            lines.append({"host": host, "part": part, "value": text})
    return schema.typed("facts", pd.DataFrame(lines))


# -- the configuration, and the preset it matches


def preset_of(config: Planned) -> str:
    """Return the name of the shipped preset that has the settings of a configuration.

    The campaign's name is not compared. Return an empty name if there is no such preset.
    """
    wanted = settings_of(config) | {"campaign": ""}
    return next((name for name, preset in presets().items() if preset == wanted), "")


@functools.cache
def presets() -> dict[str, dict[str, Any]]:
    """Return name of each shipped preset -> its settings; the name of its campaign is empty."""
    found = {}
    for path in sorted(of_checkout("config/presets").glob("*.yaml")):
        preset = msgspec.convert(yamlfile.read(path), Planned)
        found[path.stem] = settings_of(preset) | {"campaign": ""}
    return found


def settings_of(config: Planned) -> dict[str, Any]:
    """Return the keys of a configuration that differ from the default."""
    return without_defaults(msgspec.to_builtins(config), msgspec.to_builtins(Planned()))


def without_defaults(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the keys that are empty or have their default value, at all depths."""
    kept = {}
    for key, value in config.items():
        default: Any = defaults.get(key)
        shown = value
        if isinstance(value, dict) and isinstance(default, dict):
            shown = without_defaults(value, default)
        if shown not in (default, None, {}):
            kept[key] = shown
    return kept
