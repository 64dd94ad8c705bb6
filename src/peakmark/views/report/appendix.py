"""The chapters after the results: method, failures, provenance and reproduction."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from peakmark import yamlfile
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.formatting import binary, duration, period, plural, size, typeset
from peakmark.resources import ROOT
from peakmark.rows.names import NOT_PLANNED
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import SMALL_RECORD, TABLES
from peakmark.views import layout_tables
from peakmark.views.report import nodes
from peakmark.views.report.nodes import who

WIDTH = 96
"""Largest number of characters in a line of the configuration."""
MISSING = "–"
"""Version of a program that did not run."""
TEXT = yamlfile.read(ROOT / "reports" / "method.yaml")
COUNTED: list[list[str]] = TEXT["counted"]
"""Lines of (resource, workloads, the operation that these workloads count)."""


# -- method


def describe_method(frames: CampaignFrames, layout: Layout | None) -> dict[str, Any]:
    """Return paragraphs by heading, the table of workloads, and the table of programs."""
    small = size(SMALL_RECORD)
    parts = {
        "How a number arises": list(map(typeset, (*TEXT["arises"], *energy_texts(frames)))),
        "How to read a row": [text.format(small=small) for text in TEXT["reading"]],
    }
    return {
        "parts": {title: paragraphs for title, paragraphs in parts.items() if paragraphs},
        "workloads": counted(frames),
        "programs": list_programs(frames, layout),
    }


def planned_subsystems(frames: CampaignFrames) -> list[str]:
    """Return the subsystems that the plan measures, in the order of the report.

    If the plan measures nothing, return all subsystems.
    """
    subsystems = set(frames.rows["subsystem"])
    return [subsystem for subsystem in SUBSYSTEMS if subsystem in subsystems or not subsystems]


def counted(frames: CampaignFrames) -> list[list[str]]:
    """Return the lines of ``COUNTED`` that have a workload of the campaign."""
    measured: dict[str, set[str]] = defaultdict(set)
    for subsystem, workload in zip(frames.rows["subsystem"], frames.rows["workload"], strict=True):
        family, _, _ = workload.partition("-")
        measured[SUBSYSTEMS[subsystem].title] |= {workload, family}
    return [line for line in COUNTED if not measured[line[0]].isdisjoint(line[1].split())]


def energy_texts(frames: CampaignFrames) -> list[str]:
    """Return different sentences on where energy was read, or on why it is missing."""
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

    For a missing program, the path is replaced by the reason.
    """
    campaign, subsystems = frames.campaign, planned_subsystems(frames)
    known: dict[str, list[list[str]]] = defaultdict(list)
    for table in TABLES:
        if table.subsystem in subsystems:
            for program in table.series:
                known[program.instrument] = []
    # Programs that a layout does not ask for are not missing.
    chosen = set(known)
    if layout:
        chosen = set(campaign["instruments"])
    for program in campaign["programs"]:
        known[program["instrument"]].append([program["version"], program["path"]])
    titles = program_titles(layout)
    lines = []
    for name, versions in known.items():
        title = titles.get(name, name)
        lines += [[title, *line] for line in sorted(versions)]
        if not versions and name in chosen and campaign["empty"][name] != NOT_PLANNED:
            lines.append([title, MISSING, campaign["empty"][name]])
    return lines


def program_titles(layout: Layout | None) -> dict[str, str]:
    """Return titles such as ``diskbench (peakmark)`` for programs with other names in tables."""
    tables = [layout_tables.printed_table(None, table) for table in TABLES]
    if layout:
        tables = [layout.called(each.table) for each in layout.layout_tables]
    headings: dict[str, dict[str, None]] = defaultdict(dict)
    for table in tables:
        for program in table.series:
            if program.heading.lower() != program.instrument:
                headings[program.instrument][program.heading] = None
    return {name: f"{name} ({', '.join(names)})" for name, names in headings.items()}


# -- failures


def list_problems(frames: CampaignFrames) -> dict[str, Any]:
    """Return cells that could not be measured, attempts that failed, and cells without a record.

    Failures of a point on several nodes or in several repetitions share a line.
    """
    lines = []
    for failure in frames.campaign["failures"]:
        places = failure["nodes"]
        what = failure["what"]
        if len(places) > 1:
            what += f" ({len(places)} times)"
        name = failure["cells"]
        named = [place for place in dict.fromkeys(places) if place != "any"]
        if named:
            name += f" on {who(named)}"
        lines.append([name, what, failure["reason"]])
    return {"text": TEXT["problems"], "lines": lines}


# -- provenance


def describe_provenance(frames: CampaignFrames) -> dict[str, Any]:
    """Return facts, commands by program, the configuration as YAML, and the checksum of raw outputs."""
    campaign = frames.campaign
    times, jobs = campaign["times"], campaign["jobs"]
    started, slurm = "no record yet", "none: measured without Slurm"
    if times["records"]:
        started = period(times["first"], times["last"])
    if jobs:
        slurm = f"{len(jobs)}, {jobs[0]} to {jobs[-1]}"
    done = campaign["cells"] - campaign["missing"]
    cells = plural(campaign["cells"], "cell")
    failed = plural(campaign["attempts"], "failed attempt")
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
        "config_on_paper": config_on_paper(campaign),
        "checksums_text": sums,
    }


def config_text(campaign: Mapping[str, Any]) -> str:
    """Return the whole configuration as YAML; for a preset, only its name and the campaign's name."""
    preset, shown, head = campaign["preset"], campaign["config"], ""
    if preset == campaign["name"]:
        return f"# the preset {preset}\n"
    if preset:
        shown = {"campaign": campaign["name"]}
        head = f"# as the preset {preset}, but for\n"
    text: str = yaml.safe_dump(
        shown, sort_keys=False, allow_unicode=True, default_flow_style=None, width=WIDTH
    )
    return head + text


def config_on_paper(campaign: Mapping[str, Any]) -> str:
    """Return the keys of the configuration that differ from the default, with a line for each grid.

    A preset is named as in ``config_text``, but not if the campaign has its name: the commands name it.
    """
    if campaign["preset"] == campaign["name"]:
        return ""
    if campaign["preset"]:
        return config_text(campaign)
    lines = ["# The keys that differ from the default; report.html has the whole configuration."]
    for key, value in campaign["settings"].items():
        if isinstance(value, list):
            lines.append(f"{key}:")
            lines += [f"  - {on_one_line(grid)}" for grid in value]
        else:
            lines.append(f"{key}: {on_one_line(value)}")
    return "\n".join(lines)


def on_one_line(value: Any) -> str:
    """Return a value as YAML on one line."""
    text: str = yaml.safe_dump(
        [value], sort_keys=False, allow_unicode=True, default_flow_style=True, width=sys.maxsize
    )
    return text.strip().removeprefix("[").removesuffix("]")


def describe_reproduction(frames: CampaignFrames) -> dict[str, Any]:
    """Return how to reproduce the campaign: steps (sentence, command), expected results, and costs."""
    campaign = frames.campaign
    config = campaign["preset"] or f"{campaign['name']}.yaml"
    steps = []
    for text, command in TEXT["steps"]:
        steps.append([text, command.format(name=campaign["name"], config=config)])
    time = [[what, typeset(text)] for what, text in costs(campaign, len(frames.nodes))]
    return {"steps": steps, "expected": TEXT["expected"], "time": time}


def costs(campaign: Mapping[str, Any], nodes: int) -> Iterator[tuple[str, str]]:
    """Yield the times that the campaign took, and the disk space that it needed."""
    times = campaign["times"]
    if not times["records"]:
        yield "Measuring", "no record yet"
        return
    cells = plural(times["records"], "cell")
    where = f"on {nodes} nodes" if nodes > 1 else "one after the other"
    yield "Measuring", f"{duration(times['seconds'])} for {cells}, {where}"
    yield "From first start to last end", duration(times["elapsed"])
    yield "Longest cell", duration(times["longest"])
    if campaign["largest_file"]:
        yield "Disk space while measuring", binary(campaign["largest_file"]) or ""
