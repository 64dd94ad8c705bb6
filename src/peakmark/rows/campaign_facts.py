"""What holds for a whole campaign: ``campaign.json``, and the facts of its hosts."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pandas as pd

from peakmark.formatting import natural
from peakmark.plan.cluster import Cluster, behind
from peakmark.rows import schema
from peakmark.rows.campaign_config import preset_of, settings_of
from peakmark.rows.fleet import DELTA, LEAST_NODES, LEAST_REPETITIONS
from peakmark.storage.results import Results
from peakmark.tools.tables import TABLES

Facts = Mapping[str, Any]


def campaign_of(results: Results) -> dict[str, Any]:
    """Return the content of ``campaign.json``.

    Keys: ``name``; ``config``, the configuration; ``settings``, those that are not as by default;
    ``preset`` with the same settings, empty without one; ``cells`` planned, ``missing`` without a record
    that counts, ``damaged`` with the reason why records do not count; ``instruments`` that were
    planned; ``times``, ``jobs`` and ``versions``; ``programs`` that measured, ``commands`` of each,
    and why others are ``empty``; ``failures``, and how many
    ``attempts`` failed; the ``largest_file`` of a disk cell, B; ``networks`` and ``core_types`` of hosts;
    ``on_cluster``, whether Slurm ran it; ``behind``, the nodes behind each switch; ``checksums`` of raw outputs; ``left_out``, a sentence
    on each record that does not count; the ``rule`` by which nodes are judged: ``beyond`` which
    share one is slow, and how many ``nodes`` of a class and ``repetitions`` of a row it takes.
    """
    reasons = [results.findings[cell.id].reason for cell in results.missing]
    return {
        "name": results.name,
        "config": dict(results.config),
        "settings": settings_of(results.config),
        "preset": preset_of(results.config),
        "cells": len(results.cells),
        "missing": len(results.missing),
        "damaged": [reason for reason in reasons if reason],
        "instruments": sorted({cell.instrument for cell in results.cells}),
        "times": times_of(results),
        "jobs": jobs_of(results),
        "versions": versions_of(results),
        "programs": programs_of(results),
        "commands": commands_of(results),
        "empty": empty_reasons(results),
        "failures": list(failures_of(results)),
        "attempts": len(results.attempts),
        "largest_file": largest_file(results),
        "networks": networks_of(results),
        "core_types": core_types_of(results),
        "on_cluster": bool(results.plan.get("cluster")),
        "behind": nodes_behind(results),
        "checksums": checksums_of(results),
        "left_out": list(results.left_out),
        "rule": {"beyond": DELTA, "nodes": LEAST_NODES, "repetitions": LEAST_REPETITIONS},
    }


def largest_file(results: Results) -> int:
    """Return the size of the largest file that a cell writes, B; 0 where none writes one."""
    return max((int(cell.options.get("size") or 0) for cell in results.cells), default=0)


def times_of(results: Results) -> dict[str, Any]:
    """Return when the campaign was measured, and how long it took.

    ``newest`` is when the newest record or failed attempt was begun, to the second. ``first`` and
    ``last`` are the starts of records, as they were written; ``seconds`` is the time of all cells
    together, ``elapsed`` that from the first start to the last end, s.
    """
    contexts = [record.data["context"] for record in results.records]
    times: dict[str, Any] = {"newest": results.newest.isoformat(), "records": len(contexts)}
    if not contexts:
        return times
    starts, ends, seconds = {}, [], []
    for context in contexts:
        begun = datetime.fromisoformat(context["started"]).timestamp()
        starts[begun] = context["started"]
        seconds.append(float(context["seconds"] or 0))
        ends.append(begun + seconds[-1])
    first, last = min(starts), max(starts)
    return times | {
        "began": first,
        "first": starts[first],
        "last": starts[last],
        "seconds": sum(seconds),
        "longest": max(seconds),
        "elapsed": max(ends) - first,
    }


def jobs_of(results: Results) -> list[str]:
    """Return the numbers of the Slurm jobs that measured, in their order."""
    numbers = {record.data["context"].get("job_id") for record in results.records}
    return sorted((str(number) for number in numbers if number), key=natural)


def versions_of(results: Results) -> list[str]:
    """Return the versions of peakmark that measured, in the order of the records."""
    contexts = [record.data["context"] for record in results.records]
    return list(dict.fromkeys(str(context.get("peakmark", "unknown")) for context in contexts))


def programs_of(results: Results) -> list[dict[str, str]]:
    """Return instrument, version and path of each program that measured, each once."""
    found = {}
    for record in results.records:
        context = record.data["context"]
        tool, library = context["tool"], context.get("library") or {}
        if not record.ok or tool is None:
            continue
        extra = [f"{name} {value}" for name, value in sorted(library.items()) if value is not None]
        version = str(tool["version"])
        if extra:
            version += f" ({'; '.join(extra)})"
        program = {"instrument": record.cell.instrument, "version": version, "path": tool["path"]}
        found[tuple(program.values())] = program
    return [found[key] for key in sorted(found)]


def commands_of(results: Results) -> dict[str, list[str]]:
    """Return for each program what was executed for the first record of each of its workloads."""
    lines: dict[str, dict[str, str]] = defaultdict(dict)
    for record in results.records:
        executed = record.data["context"]["commands"]
        if record.ok and executed:
            by_workload = lines[record.cell.instrument]
            by_workload.setdefault(record.cell.workload, shell_line(executed[0]))
    return {program: list(by_workload.values()) for program, by_workload in lines.items()}


def shell_line(command: Facts) -> str:
    """Return a command of a record as a shell would read it."""
    environment = sorted(command.get("env", {}).items())
    settings = [f"{name}={shlex.quote(str(value))}" for name, value in environment]
    return " ".join([*settings, shlex.join(command["argv"])])


def empty_reasons(results: Results) -> dict[str, str]:
    """Return why an instrument has no values, for each that tables could show.

    It says what would fill its columns where that is known.
    """
    reasons = {}
    for table in TABLES:
        for program in table.series:
            reasons[program.instrument] = empty_reason(results, program.instrument)
    return reasons


def empty_reason(results: Results, instrument: str) -> str:
    """Return why an instrument has no values."""
    for reference in results.plan.get("references", []):
        if reference["instrument"] == instrument and reference["path"] is None:
            reason = reference["reason"] or "the program is not on this machine"
            package = reference.get("package")
            if package:
                reason += f"; `apt install {package}` fills them"
            return reason
    refused = []
    for record in (*results.records, *results.attempts):
        if not record.ok and record.cell.instrument == instrument:
            refused.append(str(record.data["reason"]))
    if refused:
        return "; ".join(dict.fromkeys(refused))
    if any(cell.instrument == instrument for cell in results.cells):
        return "none of its cells has been measured for these rows yet"
    return "the plan holds no cell of it"


def failures_of(results: Results) -> Iterator[dict[str, Any]]:
    """Yield what went wrong: cells, ``what``, ``reason``, and the nodes it befell, one for each time."""
    places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for record in results.refused:
        name = f"{record.cell.instrument} {record.cell.point}"
        places[name, "not possible here", record.data["reason"]].append(record.cell.place)
    answered = {record.cell.id for record in results.records}
    failed = set()
    for record in results.attempts:
        failed.add(record.cell.id)
        what = "failed, repeated later" if record.cell.id in answered else "failed"
        reason = f"{record.data['reason']} ({record.data['context']['host']})"
        name = f"{record.cell.instrument} {record.cell.point}"
        places[name, what, reason].append(record.cell.place)
    for cell in results.missing:
        if cell.id not in failed:
            places[cell.instrument, "not measured", "no record yet"].append(cell.place)
    for (name, what, reason), nodes in places.items():
        yield {"cells": name, "what": what, "reason": reason, "nodes": nodes}


def networks_of(results: Results) -> dict[str, dict[str, Any]]:
    """Return the interface of each host that was measured, with a ``remark``; else that of its facts."""
    seen: dict[str, list[Facts]] = defaultdict(list)
    for record in results.records:
        context = record.data["context"]
        if context.get("network"):
            seen[context["host"]].append(context["network"])
    return {
        host: network_of(facts.get("network") or {}, seen[host])
        for host, facts in results.facts.items()
    }


def network_of(facts: Facts, seen: list[Facts]) -> dict[str, Any]:
    """Return the interface that records have ``seen``; that of the default route was not measured."""
    if not seen:
        return {**facts, "remark": "of the default route; not measured"}
    first = seen[0]
    name = str(first["interface"])
    others = sorted({str(entry["interface"]) for entry in seen} - {name})
    remark = "measured"
    if others:
        remark += f"; others too: {', '.join(others)}"
    link = first.get("link") or {"interface": name}
    if first.get("loopback"):
        note = "loopback has no line rate: no network was crossed"
        link = {"interface": name, "kind": "loopback", "speed_note": note}
    return {**link, "remark": remark}


def core_types_of(results: Results) -> dict[str, list[str]]:
    """Return the core types that the BLAS of HPL took on each host."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for record in results.records:
        context = record.data["context"]
        core_type = (context.get("library") or {}).get("core_type")
        if core_type:
            found[context["host"]][str(core_type)] = None
    return {host: list(names) for host, names in found.items()}


def nodes_behind(results: Results) -> dict[str, list[str]]:
    """Return the nodes behind each switch or uplink, as far as the plan knows them."""
    known = results.plan.get("cluster")
    if not known:
        return {}
    nodes = behind(results.config, Cluster.from_json(known))
    return {switch: sorted(names, key=natural) for switch, names in nodes.items()}


def checksums_of(results: Results) -> dict[str, Any]:
    """Return the number of raw outputs, and the SHA-256 of the list of their checksums."""
    digest = hashlib.sha256(results.checksum_list.encode()).hexdigest()
    return {"outputs": len(results.checksums), "digest": digest}


# -- facts of hosts


def facts_of_hosts(results: Results) -> pd.DataFrame:
    """Return ``facts``: a line for each known fact of each host."""
    lines = []
    for host, facts in results.facts.items():
        for key, value in leaves(facts):
            text = json.dumps(value, ensure_ascii=False)
            lines.append({"host": host, "key": key, "value": text})
    return schema.typed("facts", pd.DataFrame(lines))


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name of each value that holds no others, and the value.

    A mapping of names with dots is one value, so that the others can be told apart again.
    """
    parts: dict[Any, Any] = {}
    if isinstance(value, Mapping) and not any("." in str(key) for key in value):
        parts = dict(value)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        parts = dict(enumerate(value))
    if not parts:
        yield name, value
    for key, part in parts.items():
        yield from leaves(part, f"{name}.{key}".removeprefix("."))
