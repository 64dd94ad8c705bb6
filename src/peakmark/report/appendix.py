"""The appendix: every run, what went wrong, where the numbers come from, and what it takes to reproduce
them.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import yaml

from peakmark import yamlfile
from peakmark.analysis import fleet
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import POOLS
from peakmark.cell import Cell
from peakmark.config.campaign import complete
from peakmark.config.types import Campaign
from peakmark.formatting import binary, duration, natural, plural, typeset
from peakmark.report import machine_text
from peakmark.report.method_text import TEXT
from peakmark.resources import of_checkout
from peakmark.storage.results import Results

ECHO = "LAT-ICMP"
IMPOSSIBLE = "not possible here"
BRACKETS = (
    "Values in brackets were disturbed and measured again, or are wrong: no summary has them."
)
WIDTH = 96  # characters after which a line of the configuration ends
ROWS = 20  # so many without a record are named

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
    """Cells that could not be measured, attempts that failed, and cells without a record: cell,
    what, reason.
    """
    events = [(record.cell, IMPOSSIBLE, str(record.data["reason"])) for record in results.refused]
    answered = {record.cell.id for record in (*results.records, *results.checks)}
    for record in results.attempts:
        later = "failed, repeated later" if record.cell.id in answered else "failed"
        events.append(
            (record.cell, later, f"{record.data['reason']} ({record.data['context']['host']})")
        )
    failed = {record.cell.id for record in results.attempts}
    waiting = [
        (cell, "not measured", "no record yet") for cell in results.missing if cell.id not in failed
    ]
    if len({cell.node for cell in results.cells}) > fleet.MANY:
        lines = _of_nodes([*events, *waiting])
    else:
        often = Counter((_name(cell, what), what, reason) for cell, what, reason in events)
        lines = [
            [name, f"{what} ({n} times)" if n > 1 else what, reason]
            for (name, what, reason), n in often.items()
        ]
        numbers: dict[str, list[int]] = defaultdict(list)
        for cell, _, _ in waiting:
            numbers[f"{cell.instrument} {cell.point} {cell.place}"].append(cell.repetition)
        if len(numbers) > ROWS:  # an unfinished campaign: its tables say which
            cells = Counter(cell.instrument for cell, _, _ in waiting)
            numbers = {}
            lines += [
                [f"{name}: {plural(n, 'cell')}", "not measured", "no record yet"]
                for name, n in cells.items()
            ]
        for name, repetitions in numbers.items():
            lines.append(
                [
                    f"{name} {', '.join(map(str, sorted(repetitions)))}",
                    "not measured",
                    "no record yet",
                ]
            )
    none = "Every planned cell was measured at its first attempt."
    kept = "Failed attempts are kept with the last lines of the program below attempts/."
    return {"text": kept if lines else none, "lines": lines}


def _of_nodes(events: Sequence[tuple[Cell, str, str]]) -> list[list[str]]:
    """The same of many nodes: what befell a row on several of them is one line."""
    together: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell, what, reason in events:
        together[f"{cell.instrument} {cell.point}", what, reason].append(cell.place)
    return [
        [
            f"{name} on {machine_text.who(list(dict.fromkeys(nodes)))} ({plural(len(nodes), 'cell')})",
            what,
            reason,
        ]
        for (name, what, reason), nodes in together.items()
    ]


def _name(cell: Cell, what: str) -> str:
    """The cell, or what is impossible in each of its repetitions."""
    name = f"{cell.instrument} {cell.point} {cell.place}"
    return name if what == IMPOSSIBLE else f"{name} {cell.repetition}"


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
            f"{len(results.cells) - len(results.missing)} of {plural(len(results.cells), 'cell')}, {plural(len(results.attempts), 'failed attempt')}"
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
        return f"# as the preset {preset}, but for\n{_yaml('campaign', config['campaign'])}"
    return "".join(_yaml(key, value) for key, value in _set_keys(config).items())


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
    return _filled(_without_formulas(config), msgspec.to_builtins(Campaign()))


def _without_formulas(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the formulas of its site file, pages of them: those that were used
    stand with the limits.
    """
    facts = {
        key: value for key, value in (config.get("site_facts") or {}).items() if key != "formulas"
    }
    return {**config, "site_facts": facts} if config.get("site_facts") else {**config}


def _filled(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without the keys that hold nothing or their default."""
    kept = {}
    for key, value in config.items():
        default = defaults.get(key, ...)
        both = isinstance(value, dict) and isinstance(default, dict)
        shown = _filled(value, default) if both else value
        if value != default and (shown or not both):
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


def _yaml(key: str, value: Any) -> str:
    """A key of the configuration as YAML: each entry of a list of mappings begins a line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        entries = [f"  - {_flow(entry)}" for entry in value]
        return "\n".join([f"{key}:", *entries, ""])
    return f"{_flow({key: value})[1:-1]}\n"


def _flow(part: Mapping[str, Any]) -> str:
    """A mapping as YAML in braces, further lines indented."""
    text: str = yaml.dump(
        part,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=True,
        width=WIDTH,
    )
    return text.strip().replace("\n", "\n   ")


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
    pools = [_pool(record.data) for record in results.records]
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
    if max(pools, default=0):
        lines.append(
            ["Memory while measuring", f"{binary(max(pools))} for the pool of the memory cells"]
        )
    return lines


def _pool(record: Mapping[str, Any]) -> int:
    """Bytes of the pool that a record's program walked, 0 where it had none."""
    pools = [
        entry["details"].get("pool")
        for entry in record["measurements"]
        if entry["variant"] in POOLS
    ]
    asked = record["cell"]["options"].get("pool") if pools else None
    return max([int(size) for size in (*pools, asked) if isinstance(size, int)], default=0)
