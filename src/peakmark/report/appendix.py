"""What stands behind the results: how it was measured, every run, what went wrong, where the numbers
come from, and what it takes to reproduce them.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import add
from typing import Any

import msgspec
import yaml

from peakmark import yamlfile
from peakmark.analysis import ECHO, Analysis, verdict
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Rows
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.config.types import Campaign
from peakmark.formatting import binary, decimal_mark, duration, natural, plural, size, typeset
from peakmark.report.nodes import who
from peakmark.resources import ROOT, of_checkout
from peakmark.storage.results import Results
from peakmark.tables.presentation import empty_reason
from peakmark.tools.tables import SMALL_RECORD, TABLES

WIDTH = 96  # characters after which a line of the configuration ends
MISSING = "–"
TEXT = yamlfile.read(ROOT / "reports" / "method.yaml")
COUNTED: list[list[str]] = TEXT["counted"]
"""Resource, workloads, and what one operation of theirs is."""


def method(analysis: Analysis) -> dict[str, Any]:
    """Paragraphs by heading, the table of workloads, and the table of programs."""
    arises = [*TEXT["arises"], *_energy(analysis.results)]
    shared = [typeset(each.full_sentence) for each in verdict.conditions(analysis.rows)]
    parts = {
        "How a number arises": [
            decimal_mark(typeset(text), analysis.results.mark) for text in arises
        ],
        "How to read a row": [text.format(small=size(SMALL_RECORD)) for text in TEXT["reading"]],
        "Conditions of this campaign": shared,
    }
    return {
        "parts": {title: paragraphs for title, paragraphs in parts.items() if paragraphs},
        "workloads": _counted(analysis.rows),
        "programs": programs(analysis),
    }


def _counted(rows: Rows) -> list[list[str]]:
    """What is counted, of the workloads that the campaign has."""
    measured = {
        (SUBSYSTEMS[row.table.subsystem].title, name)
        for row in (row for table in rows.values() for row in table)
        for name in (row.key.workload, row.key.workload.partition("-")[0])
    }
    return [line for line in COUNTED if any((line[0], it) in measured for it in line[1].split())]


def _energy(results: Results) -> list[str]:
    """Whose energy the tables have, and why they have none; once for nodes that are alike."""
    texts = dict[str, None]()
    for facts in results.facts.values():
        names = (facts.get("cpu") or {}).get("energy")
        reason = (facts.get("unknown") or {}).get("cpu.energy")
        if names or reason:
            texts[TEXT["energy" if names else "no_energy"].format(names=names, reason=reason)] = (
                None
            )
    return [*texts]


def programs(analysis: Analysis) -> list[list[str]]:
    """Name with what the tables call it, version and path of each program, in the order of the
    tables; of one that is missing the reason in place of the path.
    """
    results, layout = analysis.results, analysis.layout
    subsystems = verdict.planned(analysis.rows)
    tables = [table for table in TABLES if table.subsystem in subsystems]
    order = list(dict.fromkeys(series.instrument for table in tables for series in table.series))
    versions: dict[str, set[tuple[str, str]]] = {name: set() for name in order}
    for record in results.records:
        tool = record.data["context"]["tool"]
        if record.ok and tool is not None:
            library = record.data["context"].get("library") or {}
            extra = [
                f"{name} {value}" for name, value in sorted(library.items()) if value is not None
            ]
            version = str(tool["version"]) + (f" ({'; '.join(extra)})" if extra else "")
            known = versions.setdefault(record.cell.instrument, set())
            known.add((version, str(tool["path"])))
    # A layout has its own choice of programs: others are not missing.
    chosen = {cell.instrument for cell in results.cells} if layout else set(order)
    titles = _titles(layout)
    lines = []
    for name, known in versions.items():
        title = titles.get(name, name)
        lines += [[title, *line] for line in sorted(known)]
        if not known and name in chosen:
            lines.append([title, MISSING, empty_reason(results, name)])
    return lines


def _titles(layout: Layout | None) -> dict[str, str]:
    """``diskbench (MyDiskBench)``: programs whose name in the tables, or in those of the layout, is
    another one.
    """
    tables = [layout.called(each.table) for each in layout.layout_tables] if layout else TABLES
    headings: dict[str, dict[str, None]] = defaultdict(dict)
    for series in (series for table in tables for series in table.series):
        if series.heading.lower() != series.instrument:
            headings[series.instrument][series.heading] = None
    return {name: f"{name} ({', '.join(names)})" for name, names in headings.items()}


def runs(analysis: Analysis) -> dict[str, Any]:
    """Groups of one program and unit: a line for each row with every repetition in its order. Many
    nodes have too many for a page.
    """
    texts = TEXT["runs"]
    if analysis.is_fleet:
        return {"text": texts["elsewhere"], "groups": []}
    # Echoes of ping stand beside several rows: a line is listed once.
    groups: dict[tuple[str, str], dict[tuple[str, str], None]] = defaultdict(dict)
    text = texts["here"]
    for row in (row for table in analysis.rows.values() for row in table):
        labels = LabelFormatter.of(row)
        for entry in row.table.series:
            series = row.series.get(entry.instrument)
            if series is None:
                continue
            is_echo = series.points[0].record.cell.workload == ECHO
            values = [labels.number(value, series.step) for value in series.values]
            values += [f"[{labels.number(run.value, series.step)}]" for run in series.left_out]
            line = ("ICMP" if is_echo else row_label(labels, row), "  ".join(values))
            groups[labels.program(entry), labels.unit][line] = None
            if series.left_out:
                text = f"{texts['here']} {texts['brackets']}"
    return {
        "text": text,
        "groups": [
            {"program": program, "unit": unit, "lines": [*lines]}
            for (program, unit), lines in groups.items()
        ],
    }


def row_label(labels: LabelFormatter, row: Row) -> str:
    """``RWS pool, 1 MiB, ×2``."""
    key = row.key
    variant = key.variant if row.table.variant and key.variant != "psync" else ""
    workload = f"{labels.workload(row)} {variant}".strip()
    node = key.node if key.node != "any" else ""
    return ", ".join(filter(None, (workload, labels.block(row), f"×{key.concurrency}", node)))


def problems(analysis: Analysis) -> dict[str, Any]:
    """Cells that could not be measured, attempts that failed, and cells without a record: cells,
    what, reason. What befell a point on several nodes or in several repetitions is one line.
    """
    results = analysis.results
    events = [(each.cell, "not possible here", each.data["reason"]) for each in results.refused]
    answered = {record.cell.id for record in results.records}
    failed = set[str]()
    for record in results.attempts:
        failed.add(record.cell.id)
        what = "failed, repeated later" if record.cell.id in answered else "failed"
        reason = f"{record.data['reason']} ({record.data['context']['host']})"
        events.append((record.cell, what, reason))
    places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell, what, reason in events:
        places[f"{cell.instrument} {cell.point}", what, reason].append(cell.place)
    for cell in results.missing:  # tables name their rows
        if cell.id not in failed:
            places[cell.instrument, "not measured", "no record yet"].append(cell.place)
    lines = []
    for (name, what, reason), nodes in places.items():
        often = f" ({len(nodes)} times)" if len(nodes) > 1 else ""
        lines.append([f"{name} {who(list(dict.fromkeys(nodes)))}", f"{what}{often}", reason])
    return {"text": TEXT["problems" if lines else "no_problems"], "lines": lines}


def provenance(analysis: Analysis) -> dict[str, Any]:
    """Facts, commands by program, the configuration as YAML, and the checksum of the raw outputs'
    checksums.
    """
    results = analysis.results
    contexts = [record.data["context"] for record in results.records]
    versions = dict.fromkeys(str(context.get("peakmark", "unknown")) for context in contexts)
    # The clocks may have been changed in between.
    times = sorted((str(each["started"]) for each in contexts), key=datetime.fromisoformat)
    numbers = {context.get("job_id") for context in contexts} - {None}
    jobs = sorted(map(str, numbers), key=natural)
    cells, failed = plural(len(results.cells), "cell"), len(results.attempts)
    done = len(results.cells) - len(results.missing)
    outputs = len(results.checksums)
    digest = hashlib.sha256(results.checksum_list.encode()).hexdigest()
    sums = TEXT["checksums"].format(outputs=plural(outputs, "raw output"), digest=digest)
    return {
        "facts": [
            ["Campaign", results.name],
            ["peakmark", ", ".join(versions) or "no record yet"],
            ["Records", f"{done} of {cells}, {plural(failed, 'failed attempt')}"],
            ["First and last start", f"{times[0]} to {times[-1]}" if times else "no record yet"],
            [
                "Slurm jobs",
                f"{len(jobs)}, {jobs[0]} to {jobs[-1]}" if jobs else "none: measured without Slurm",
            ],
        ],
        "commands": commands(results),
        "config": _config_text(results.config),
        "checksums_text": sums if outputs else TEXT["no_checksums"],
    }


def _config_text(config: Mapping[str, Any]) -> str:
    """A configuration as YAML; the name of the preset stands for what is as there."""
    preset = preset_of(config)
    shown = {"campaign": config["campaign"]} if preset else _set_keys(config)
    text: str = yaml.safe_dump(
        shown, sort_keys=False, allow_unicode=True, default_flow_style=None, width=WIDTH
    )
    return f"# as the preset {preset}, but for\n{text}" if preset else text


def preset_of(config: Mapping[str, Any]) -> str:
    """The preset that comes with peakmark and differs in nothing but the campaign's name; empty
    without one.
    """
    wanted = _set_keys({**config, "campaign": None})
    return next((name for name, preset in _presets().items() if preset == wanted), "")


@functools.cache  # two chapters ask
def _presets() -> dict[str, dict[str, Any]]:
    return {
        path.stem: _set_keys({**yamlfile.read(path), "campaign": None})
        for path in sorted(of_checkout("config/presets").glob("*.yaml"))
    }


def _set_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that are not as by default."""
    return _filled(config, msgspec.to_builtins(Campaign()))


def _filled(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the keys that hold nothing or their default."""
    kept = {}
    for key, value in config.items():
        default: Any = defaults.get(key)
        both = isinstance(value, dict) and isinstance(default, dict)
        shown = _filled(value, default) if both else value
        if shown not in (default, None, {}):
            kept[key] = shown
    return kept


def commands(results: Results) -> dict[str, list[str]]:
    """Program -> what was executed for the first record of each of its workloads, as a shell would
    read it.
    """
    lines: dict[str, dict[str, str]] = defaultdict(dict)
    for record in results.records:
        executed = record.data["context"]["commands"]
        if record.ok and executed:
            by_workload = lines[record.cell.instrument]
            by_workload.setdefault(record.cell.workload, shell_line(executed[0]))
    return {program: list(by_workload.values()) for program, by_workload in lines.items()}


def shell_line(command: Mapping[str, Any]) -> str:
    """A command of a record as a shell would read it."""
    environment = sorted(command.get("env", {}).items())
    settings = [f"{name}={shlex.quote(str(value))}" for name, value in environment]
    return " ".join([*settings, shlex.join(command["argv"])])


def artifact(analysis: Analysis) -> dict[str, Any]:
    """Steps as sentence and command, the expected results, and lines of what and value for time."""
    results = analysis.results
    config = preset_of(results.config) or f"{results.name}.yaml"
    return {
        "steps": [
            [text, command.format(name=results.name, config=config)]
            for text, command in TEXT["steps"]
        ],
        "expected": TEXT["expected"],
        "time": [[what, typeset(text)] for what, text in _time(results)],
    }


def _time(results: Results) -> Iterator[tuple[str, str]]:
    """How long it took, and the disk space that it needed."""
    contexts = [record.data["context"] for record in results.records]
    if not contexts:
        yield "Measuring", "no record yet"
        return
    seconds = [float(context["seconds"] or 0) for context in contexts]
    starts = [datetime.fromisoformat(str(context["started"])).timestamp() for context in contexts]
    elapsed = max(map(add, starts, seconds)) - min(starts)
    cells = plural(len(seconds), "cell")
    yield "Measuring", f"{duration(sum(seconds))} for {cells}, one after the other"
    yield "From first start to last end", duration(elapsed)
    yield "Longest cell", duration(max(seconds))
    largest = max(int(cell.options.get("size") or 0) for cell in results.cells)
    if largest:
        yield "Disk space while measuring", binary(largest) or ""
