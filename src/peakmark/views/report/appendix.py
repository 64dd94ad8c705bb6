"""What stands behind the results.

How it was measured, every run, what went wrong, where the numbers come from, and what it takes to
reproduce them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from peakmark import yamlfile
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.formatting import binary, duration, plural, size, typeset
from peakmark.resources import ROOT
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import SMALL_RECORD, TABLES, Table
from peakmark.views import headlines, layouts, node_groups
from peakmark.views.points import Line, rows_of
from peakmark.views.report import nodes
from peakmark.views.report.nodes import who

WIDTH = 96
"""Characters after which a line of the configuration ends."""
MISSING = "–"
"""Version of a program that did not run."""
ECHO = "LAT-ICMP"
"""Workload of an echo, which stands beside several rows and is listed once."""
TEXT = yamlfile.read(ROOT / "reports" / "method.yaml")
COUNTED: list[list[str]] = TEXT["counted"]
"""Resource, workloads, and what one operation of theirs is."""


# -- method


def describe_method(frames: CampaignFrames, layout: Layout | None) -> dict[str, Any]:
    """Return paragraphs by heading, the table of workloads, and the table of programs."""
    arises = [typeset(text) for text in (*TEXT["arises"], *energy_texts(frames))]
    parts = {
        "How a number arises": arises,
        "How to read a row": [text.format(small=size(SMALL_RECORD)) for text in TEXT["reading"]],
        "Conditions of this campaign": [
            typeset(each.full_sentence) for each in headlines.conditions(frames)
        ],
    }
    return {
        "parts": {title: paragraphs for title, paragraphs in parts.items() if paragraphs},
        "workloads": counted(frames),
        "programs": list_programs(frames, layout),
    }


def counted(frames: CampaignFrames) -> list[list[str]]:
    """Return what is counted, of the workloads that the campaign has."""
    measured = set()
    pairs = frames.rows[["subsystem", "workload"]].drop_duplicates()
    for subsystem, workload in pairs.itertuples(index=False):
        title = SUBSYSTEMS[subsystem].title
        measured |= {(title, workload), (title, workload.partition("-")[0])}
    lines = []
    for line in COUNTED:
        if any((line[0], workload) in measured for workload in line[1].split()):
            lines.append(line)
    return lines


def energy_texts(frames: CampaignFrames) -> list[str]:
    """Return whose energy the tables have, or why they have none; once for nodes that are alike."""
    texts = dict[str, None]()
    for facts in nodes.facts_of(frames).values():
        names = (facts.get("cpu") or {}).get("energy")
        reason = (facts.get("unknown") or {}).get("cpu.energy")
        if names:
            texts[TEXT["energy"].format(names=names)] = None
        elif reason:
            texts[TEXT["no_energy"].format(reason=reason)] = None
    return list(texts)


def list_programs(frames: CampaignFrames, layout: Layout | None) -> list[list[str]]:
    """Return name, version and path of each program, in the order of the tables.

    The name has what tables call it; a program that is missing has the reason in place of the path.
    """
    campaign, subsystems = frames.campaign, headlines.planned(frames)
    known: dict[str, list[list[str]]] = {}
    for table in TABLES:
        if table.subsystem in subsystems:
            for program in table.series:
                known[program.instrument] = []
    order = set(known)
    for program in campaign["programs"]:
        line = [program["version"], program["path"]]
        known.setdefault(program["instrument"], []).append(line)
    # A layout has its own choice of programs: others are not missing.
    chosen = set(campaign["instruments"]) if layout else order
    titles = program_titles(layout)
    lines = []
    for name, versions in known.items():
        title = titles.get(name, name)
        lines += [[title, *line] for line in sorted(versions)]
        if not versions and name in chosen:
            lines.append([title, MISSING, campaign["empty"][name]])
    return lines


def program_titles(layout: Layout | None) -> dict[str, str]:
    """Return ``diskbench (MyDiskBench)`` for programs that tables call otherwise."""
    tables = list(TABLES)
    if layout:
        tables = [layout.called(each.table) for each in layout.layout_tables]
    headings: dict[str, dict[str, None]] = defaultdict(dict)
    for table in tables:
        for program in table.series:
            if program.heading.lower() != program.instrument:
                headings[program.instrument][program.heading] = None
    return {name: f"{name} ({', '.join(names)})" for name, names in headings.items()}


# -- runs


def list_runs(frames: CampaignFrames, layout: Layout | None) -> dict[str, Any]:
    """Return groups of one program and unit: a line for each row with every repetition in its order.

    Many nodes have too many for a page.
    """
    texts = TEXT["runs"]
    if node_groups.is_many(frames):
        return {"text": texts["elsewhere"], "groups": []}
    runs = runs_by_row(frames)
    groups: dict[tuple[str, str], dict[tuple[str, str], None]] = defaultdict(dict)
    text = texts["here"]
    called = {table.name: called_table(frames, layout, table) for table in TABLES}
    for row in schema.lines(frames.rows):
        if not row.n:
            continue
        labels = layouts.labels_of(layout, called[row.table], row)
        values = runs[row.point, row.instrument]
        shown, name = values_of(labels, row, values), row_label(labels, row)
        if any(run.measured_workload == ECHO for run in values):
            name = "ICMP"
        groups[row.program, labels.unit][name, "  ".join(shown)] = None
        if not all(run.kept for run in values):
            text = f"{texts['here']} {texts['brackets']}"
    listed = []
    for (program, unit), lines in groups.items():
        listed.append({"program": program, "unit": unit, "lines": list(lines)})
    return {"text": text, "groups": listed}


def called_table(frames: CampaignFrames, layout: Layout | None, table: Table) -> Table:
    """Return a table with the unit in which its rows are printed."""
    return layouts.table_of(layout, table, rows_of(frames, table))


def runs_by_row(frames: CampaignFrames) -> dict[tuple[str, str], list[Line]]:
    """Return point and instrument -> its measured runs, those that do not count behind the others."""
    measured = frames.runs[frames.runs["value"].notna() & frames.runs["table"].ne("")]
    kept = measured[measured["kept"]].sort_values("repetition", kind="stable")
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for frame in (kept, measured[measured["disturbed"].ne("")], measured[measured["above_limit"]]):
        for run in schema.lines(frame):
            found[run.point, run.instrument].append(run)
    return found


def values_of(labels: Labels, row: Line, runs: Sequence[Line]) -> list[str]:
    """Return the values of a row; those that do not count stand in brackets."""
    shown = []
    for run in runs:
        number = labels.number(run.value, row.resolution or 0.0)
        shown.append(number if run.kept else f"[{number}]")
    return shown


def row_label(labels: Labels, row: Line) -> str:
    """Return ``RWS pool, 1 MiB, ×2``."""
    variant = ""
    if labels.table.variant and row.variant != "psync":
        variant = row.variant
    workload = f"{labels.workload(row)} {variant}".strip()
    node = row.node if row.node != "any" else ""
    return ", ".join(filter(None, (workload, labels.block(row), f"×{row.concurrency}", node)))


# -- failures


def list_problems(frames: CampaignFrames) -> dict[str, Any]:
    """Return cells that could not be measured, attempts that failed, and cells without a record.

    What befell a point on several nodes or in several repetitions is one line.
    """
    lines = []
    for failure in frames.campaign["failures"]:
        places = failure["nodes"]
        often = f" ({len(places)} times)" if len(places) > 1 else ""
        name = f"{failure['cells']} {who(list(dict.fromkeys(places)))}"
        lines.append([name, f"{failure['what']}{often}", failure["reason"]])
    return {"text": TEXT["problems" if lines else "no_problems"], "lines": lines}


# -- provenance


def describe_provenance(frames: CampaignFrames) -> dict[str, Any]:
    """Return facts, commands by program, the configuration as YAML, and the checksum of raw outputs."""
    campaign = frames.campaign
    times, jobs = campaign["times"], campaign["jobs"]
    started, slurm = "no record yet", "none: measured without Slurm"
    if times["records"]:
        started = f"{times['first']} to {times['last']}"
    if jobs:
        slurm = f"{len(jobs)}, {jobs[0]} to {jobs[-1]}"
    done = campaign["cells"] - campaign["missing"]
    cells, failed = (
        plural(campaign["cells"], "cell"),
        plural(campaign["attempts"], "failed attempt"),
    )
    checksums, sums = campaign["checksums"], TEXT["no_checksums"]
    if checksums["outputs"]:
        outputs = plural(checksums["outputs"], "raw output")
        sums = TEXT["checksums"].format(outputs=outputs, digest=checksums["digest"])
    return {
        "facts": [
            ["Campaign", campaign["name"]],
            ["peakmark", ", ".join(campaign["versions"]) or "no record yet"],
            ["Records", f"{done} of {cells}, {failed}"],
            ["First and last start", started],
            ["Slurm jobs", slurm],
        ],
        "commands": campaign["commands"],
        "config": config_text(campaign),
        "checksums_text": sums,
    }


def config_text(campaign: Mapping[str, Any]) -> str:
    """Return the configuration as YAML; the name of the preset stands for what is as there."""
    preset, shown = campaign["preset"], campaign["settings"]
    if preset:
        shown = {"campaign": campaign["config"].get("campaign")}
    text: str = yaml.safe_dump(
        shown, sort_keys=False, allow_unicode=True, default_flow_style=None, width=WIDTH
    )
    return f"# as the preset {preset}, but for\n{text}" if preset else text


def describe_reproduction(frames: CampaignFrames) -> dict[str, Any]:
    """Return steps as sentence and command, the expected results, and what they take."""
    campaign = frames.campaign
    config = campaign["preset"] or f"{campaign['name']}.yaml"
    steps = []
    for text, command in TEXT["steps"]:
        steps.append([text, command.format(name=campaign["name"], config=config)])
    time = [[what, typeset(text)] for what, text in costs(campaign)]
    return {"steps": steps, "expected": TEXT["expected"], "time": time}


def costs(campaign: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how long the campaign took, and the disk space that it needed."""
    times = campaign["times"]
    if not times["records"]:
        yield "Measuring", "no record yet"
        return
    cells = plural(times["records"], "cell")
    yield "Measuring", f"{duration(times['seconds'])} for {cells}, one after the other"
    yield "From first start to last end", duration(times["elapsed"])
    yield "Longest cell", duration(times["longest"])
    if campaign["largest_file"]:
        yield "Disk space while measuring", binary(campaign["largest_file"]) or ""
