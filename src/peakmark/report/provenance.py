"""Where the numbers come from: campaign, versions, commands, configuration and checksums."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
import yaml

from peakmark.config.types import Campaign
from peakmark.formatting import natural, plural
from peakmark.storage.results import Results

MAX_CHECKSUMS = 300


def build(results: Results) -> dict[str, Any]:
    """Facts, commands, the configuration as YAML, and the checksums of the raw outputs."""
    sums = results.checksums
    digest = hashlib.sha256(results.checksum_list.encode()).hexdigest()
    listed = (
        f"SHA-256 of tables/checksums.txt, which lists {plural(len(sums), 'raw output')}: {digest}."
    )
    none = "There are no raw outputs: what the own kernels say stands whole in the records."
    versions = dict.fromkeys(
        str(record.data["context"].get("peakmark", "unknown")) for record in results.records
    )
    started = (str(record.data["context"]["started"]) for record in results.records)
    times = sorted(
        started, key=datetime.fromisoformat
    )  # the clocks may have been changed in between
    numbers = {record.data["context"].get("job_id") for record in results.records} - {None}
    jobs = sorted(map(str, numbers), key=natural)
    facts = [
        ["Campaign", results.name],
        ["peakmark", ", ".join(versions) or "no record yet"],
        [
            "Records",
            f"{len(results.records)} of {plural(len(results.cells), 'cell')}, {plural(len(results.attempts), 'failed attempt')}"
            + (
                f"; {plural(len(results.spared), 'planned repetition')} spared"
                if results.spared
                else ""
            ),
        ],
        ["First and last start", f"{times[0]} to {times[-1]}" if times else "no record yet"],
        [
            "Slurm jobs",
            f"{len(jobs)}, {jobs[0]} to {jobs[-1]}" if jobs else "none: measured without Slurm",
        ],
    ]
    config = _filled(_without_formulas(results.config), msgspec.to_builtins(Campaign()))
    text = yaml.dump(
        config,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=46,
    )
    return {
        "facts": facts,
        "commands": commands(results),
        "first_commands": commands(results, by_workload=False),
        "config": text,
        "checksums_text": listed if sums else none,
        "checksums": [list(pair) for pair in sums] if len(sums) <= MAX_CHECKSUMS else [],
    }


def _without_formulas(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the formulas of its site file, pages of them: those that were used
    stand with the limits.
    """
    facts = {
        key: value for key, value in (config.get("site_facts") or {}).items() if key != "formulas"
    }
    return {**config, "site_facts": facts} if config.get("site_facts") else {**config}


def _filled(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the keys that hold nothing, as they do by default."""
    kept = {}
    for key, value in config.items():
        default = defaults.get(key, ...)
        both = isinstance(value, dict) and isinstance(default, dict)
        shown = _filled(value, default) if both else value
        if shown or isinstance(shown, bool | int | float) or default:
            kept[key] = shown
    return kept


class _Dumper(yaml.SafeDumper):
    """Large floats as 1.0e+12 instead of thirteen digits; they are read back as the same numbers."""


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    text = f"{value:.15e}"
    digits, _, power = text.partition("e")
    short = f"{digits.rstrip('0')}{'0' if digits.rstrip('0').endswith('.') else ''}e{power}"
    if value >= 1e6 and float(short) == value and len(short) < len(repr(value)):
        return dumper.represent_scalar("tag:yaml.org,2002:float", short)
    return dumper.represent_float(value)


_Dumper.add_representer(float, _float)


def commands(results: Results, by_workload: bool = True) -> list[str]:
    """What was executed for the first record of each program, and of each of its workloads, as a
    shell would read it.
    """
    by_program: dict[tuple[str, str], str] = {}
    for record in results.records:
        key = (record.cell.instrument, record.cell.workload if by_workload else "")
        if record.ok and key not in by_program and record.data["context"]["commands"]:
            by_program[key] = _shell(record.data["context"]["commands"][0])
    return list(by_program.values())


def _shell(command: Mapping[str, Any]) -> str:
    environment = [
        f"{name}={shlex.quote(str(value))}"
        for name, value in sorted(command.get("env", {}).items())
    ]
    return " ".join([*environment, shlex.join(command["argv"])])
