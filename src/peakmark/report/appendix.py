"""The appendix: every run, what went wrong, where the numbers come from, and what it takes to reproduce
them.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import yaml

from peakmark import yamlfile
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.cell import Cell
from peakmark.config.campaign import complete
from peakmark.config.types import Campaign
from peakmark.formatting import binary, duration, natural, plural, typeset
from peakmark.report import machine_text
from peakmark.report.method_text import TEXT
from peakmark.resources import of_checkout
from peakmark.storage.results import Results

ECHO = "LAT-ICMP"
BRACKETS = (
    "Values in brackets were disturbed and measured again, or are wrong: no summary has them."
)
WIDTH = 96  # characters after which a line of the configuration ends

Rows = Mapping[str, Sequence[Row]]


def runs(rows: Rows) -> dict[str, Any]:
    """Groups of one program and unit: a line per row with every repetition in its order, called as
    in the tables.
    """
    groups: dict[tuple[str, str], list[list[str]]] = {}
    bracketed = False
    listed: set[tuple[str, ...]] = set()  # echoes of ping stand beside several rows
    for row in (row for table in rows.values() for row in table):
        labels = LabelFormatter.of(row)
        for entry in row.table.series:
            series = row.series.get(entry.instrument)
            if series is None:
                continue
            runs_of = (row.table.name, *(point.record.path for point in series.points))
            echo = series.points[0].record.cell.workload == ECHO
            if echo and runs_of in listed:
                continue
            listed.add(runs_of)
            point = "ICMP" if echo else row_label(labels, row)
            group = groups.setdefault((labels.program(entry), labels.unit), [])
            values = [labels.number(value, series.step) for value in series.values]
            values += [f"[{labels.number(run.value, series.step)}]" for run in series.left_out]
            group.append([point, "  ".join(values)])
            bracketed = bracketed or bool(series.left_out)
    text = "Values in the order of the repetitions; tables/runs.csv holds all of them with full precision, start time, hosts and job."
    return {
        "text": f"{text} {BRACKETS}" if bracketed else text,
        "columns": ["Program", "Row", "Runs", "Unit"],
        "groups": [
            {"program": program, "unit": unit, "lines": lines}
            for (program, unit), lines in groups.items()
        ],
        "longest": max(
            (len(point) + len(values) for lines in groups.values() for point, values in lines),
            default=0,
        ),
    }


def row_label(labels: LabelFormatter, row: Row) -> str:
    """``RWS pool, 1 MiB, ×2``."""
    variant = row.key.variant if row.table.variant and row.key.variant != "psync" else ""
    node = row.key.node if row.key.node != "any" else ""
    parts = (
        f"{labels.workload(row)} {variant}".strip(),
        labels.block(row),
        f"×{row.key.concurrency}",
        node,
    )
    return ", ".join(filter(None, parts))


def elsewhere() -> dict[str, Any]:
    """The same where there are too many for a page."""
    text = "tables/runs.csv holds every repetition of every node with full precision, start time, hosts and job."
    return {"text": text, "columns": [], "groups": [], "longest": 0}


def problems(results: Results) -> dict[str, Any]:
    """Cells that could not be measured, attempts that failed, and cells without a record: cells,
    what, reason. What befell a point on several nodes or in several repetitions is one line.
    """
    events = [
        (record.cell, "not possible here", record.data["reason"]) for record in results.refused
    ]
    answered = {record.cell.id for record in (*results.records, *results.checks)}
    for record in results.attempts:
        what = "failed, repeated later" if record.cell.id in answered else "failed"
        reason = f"{record.data['reason']} ({record.data['context']['host']})"
        events.append((record.cell, what, reason))
    failed = {record.cell.id for record in results.attempts}
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell, what, reason in events:
        groups[f"{cell.instrument} {cell.point}", what, reason].append(cell)
    for cell in results.missing:  # tables name their rows
        if cell.id not in failed:
            groups[cell.instrument, "not measured", "no record yet"].append(cell)
    lines = []
    for (name, what, reason), cells in groups.items():
        nodes = machine_text.who(list(dict.fromkeys(cell.place for cell in cells)))
        often = f" ({len(cells)} times)" if len(cells) > 1 else ""
        lines.append([f"{name} {nodes}", f"{what}{often}", reason])
    none = "Every planned cell was measured at its first attempt."
    kept = "Failed attempts are kept with the last lines of the program below attempts/."
    return {"text": kept if lines else none, "lines": lines}


MAX_CHECKSUMS = 300


def provenance(results: Results) -> dict[str, Any]:
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
            f"{len(results.cells) - len(results.missing)} of {plural(len(results.cells), 'cell')}, {plural(len(results.attempts), 'failed attempt')}",
        ],
        ["First and last start", f"{times[0]} to {times[-1]}" if times else "no record yet"],
        [
            "Slurm jobs",
            f"{len(jobs)}, {jobs[0]} to {jobs[-1]}" if jobs else "none: measured without Slurm",
        ],
    ]
    return {
        "facts": facts,
        "commands": commands(results),
        "first_commands": commands(results, by_workload=False),
        "config": _config_text(results.config),
        "checksums_text": listed if sums else none,
        "checksums": [list(pair) for pair in sums] if len(sums) <= MAX_CHECKSUMS else [],
    }


def _config_text(config: Mapping[str, Any]) -> str:
    """A configuration as YAML; the name of the preset stands for what is as there."""
    preset = preset_of(config)
    if preset:
        return f"# as the preset {preset}, but for\n{_yaml({'campaign': config['campaign']})}"
    return _yaml(_set_keys(config))


def preset_of(config: Mapping[str, Any]) -> str:
    """The preset that comes with peakmark and differs in nothing but the campaign's name; empty
    without one.
    """
    wanted = _set_keys({**config, "campaign": None})
    return next((name for name, preset in _presets().items() if preset == wanted), "")


@functools.cache  # two chapters ask
def _presets() -> dict[str, dict[str, Any]]:
    paths = sorted(of_checkout("config/presets").glob("*.yaml"))
    completed = {path.stem: complete(yamlfile.read(path)) for path in paths}
    return {name: _set_keys({**preset, "campaign": None}) for name, preset in completed.items()}


def _set_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that are not as by default. Formulas of a site file, pages of them, stand with the
    limits.
    """
    facts = dict(config.get("site_facts") or {})
    facts.pop("formulas", None)
    return _filled({**config, "site_facts": facts or None}, msgspec.to_builtins(Campaign()))


def _filled(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the keys that hold nothing or their default."""
    kept = {}
    for key, value in config.items():
        default = defaults.get(key, ...)
        both = isinstance(value, dict) and isinstance(default, dict)
        shown = _filled(value, default) if both else value
        if value not in (default, None) and (shown or not both):
            kept[key] = shown
    return kept


def _yaml(config: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(
        config, sort_keys=False, allow_unicode=True, default_flow_style=None, width=WIDTH
    )
    return text


def commands(results: Results, by_workload: bool = True) -> list[str]:
    """What was executed for the first record of each program, and of each of its workloads, as a
    shell would read it.
    """
    by_program: dict[tuple[str, str], str] = {}
    for record in results.records:
        key = (record.cell.instrument, record.cell.workload if by_workload else "")
        if record.ok and key not in by_program and record.data["context"]["commands"]:
            by_program[key] = shell_line(record.data["context"]["commands"][0])
    return list(by_program.values())


def shell_line(command: Mapping[str, Any]) -> str:
    """A command of a record as a shell would read it."""
    environment = [
        f"{name}={shlex.quote(str(value))}"
        for name, value in sorted(command.get("env", {}).items())
    ]
    return " ".join([*environment, shlex.join(command["argv"])])


Lines = list[list[str]]


def artifact(results: Results) -> dict[str, Any]:
    """Steps as sentence and command, the expected results, and lines of what and value for time."""
    config = preset_of(results.config) or f"{results.name}.yaml"
    return {
        "steps": [
            [text, command.format(name=results.name, config=config)]
            for text, command in TEXT["steps"]
        ],
        "expected": TEXT["expected"],
        "time": [[what, typeset(text)] for what, text in _time(results)],
    }


def _time(results: Results) -> Lines:
    begun = [
        datetime.fromisoformat(str(entry.data["context"]["started"])) for entry in results.records
    ]
    seconds = [float(entry.data["context"]["seconds"] or 0) for entry in results.records]
    if not begun:
        return [["Measuring", "no record yet"]]
    ended = [
        start + timedelta(seconds=length) for start, length in zip(begun, seconds, strict=True)
    ]
    sizes = [int(cell.options.get("size") or 0) for cell in results.cells]
    lines = [
        [
            "Measuring",
            f"{duration(sum(seconds))} for {plural(len(seconds), 'cell')}, one after the other",
        ],
        ["From first start to last end", duration((max(ended) - min(begun)).total_seconds())],
        ["Longest cell", duration(max(seconds))],
    ]
    if max(sizes, default=0):
        lines.append(["Disk space while measuring", binary(max(sizes)) or ""])
    return lines
