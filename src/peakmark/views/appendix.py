"""The chapters after the results: method, failures, provenance, reproduction and the machine."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml
from jinja2 import ChainableUndefined, Environment, Template

from peakmark import yamlfile
from peakmark.catalogue import SHORTEST_S, SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.formatting import (
    binary,
    listed,
    moment,
    plural,
    significant,
    size,
    typeset,
)
from peakmark.messages import words
from peakmark.resources import ROOT
from peakmark.rows import schema
from peakmark.rows.labels import printed_table
from peakmark.rows.schema import NOT_PLANNED, CampaignFrames
from peakmark.tools.tables import SMALL_RECORD, TABLES

MISSING = "–"
"""Version of a program that did not run."""
TEXT = yamlfile.read(ROOT / "reports" / "method.yaml")
COUNTED: list[list[str]] = TEXT["counted"]
"""Lines of (resource, codes of workloads, the operation that these workloads count)."""


# -- method


def describe_method(frames: CampaignFrames, layout: Layout | None) -> dict[str, Any]:
    """Return the chapter Method.

    Returns:
        A mapping with these keys:

        - ``parts``: heading -> paragraphs, without headings that have none.
        - ``workloads``: lines of resource, workloads, and what counts as one operation.
        - ``programs``: lines of name, version, and path or why the program is missing.

        The last two are empty for numbers that a report printed.
    """
    small, middle = size(SMALL_RECORD), layout.value if layout else "median"
    if frames.printed_in:
        texts = [text.format(source=frames.printed_in, middle=middle) for text in TEXT["printed"]]
        return {"parts": {"How these numbers arose": texts}, "workloads": [], "programs": []}
    config = frames.campaign["config"]
    seconds = config.get("seconds", 1)
    scale = config.get("scale", 1)
    # Scale as the plan does: a scaled time is at least SHORTEST_S. An unscaled one may be shorter.
    if scale != 1:
        seconds = float(significant(max(seconds * scale, SHORTEST_S)))
    advice = TEXT["longer"] if seconds < 1 else ""
    values = {"seconds": seconds, "advice": advice, "middle": middle}
    arises = [text.format(**values) for text in TEXT["arises"]]
    parts = {
        "How a number arises": list(map(typeset, arises)),
        "How to read a row": [text.format(small=small, middle=middle) for text in TEXT["reading"]],
        "Energy": [TEXT["energy"]] if frames.rows["joules"].notna().any() else [],
    }
    return {
        "parts": {title: paragraphs for title, paragraphs in parts.items() if paragraphs},
        "workloads": counted(frames, layout),
        "programs": list_programs(frames, layout),
    }


def counted(frames: CampaignFrames, layout: Layout | None) -> list[list[str]]:
    """Return the lines of ``COUNTED`` that have a workload of the campaign, with the printed names."""
    # Resource -> codes of its workloads, and of their families: what a code has before its first dash.
    measured: dict[str, set[str]] = defaultdict(set)
    for subsystem, workload in zip(frames.rows["subsystem"], frames.rows["workload"], strict=True):
        family, _, _ = workload.partition("-")
        measured[SUBSYSTEMS[subsystem].title] |= {workload, family}
    lines = []
    for resource, workloads, operation in COUNTED:
        codes = workloads.split()
        if measured[resource].isdisjoint(codes):
            continue
        names = codes
        if layout is None or layout.plain_names:
            names = [words(f"workload {code}") for code in codes]
        lines.append([resource, ", ".join(dict.fromkeys(names)), operation])
    return lines


def list_programs(frames: CampaignFrames, layout: Layout | None) -> list[list[str]]:
    """Return name, version and path of each program, in the order of the tables.

    For a missing program, the path is replaced by the reason.
    """
    campaign, subsystems = frames.campaign, set(frames.rows["subsystem"])
    # Program -> version and path of each of its versions that ran. A program of the tables may not have run.
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
        # The campaign did not ask for a program of which the plan has no cell: it is not missing.
        why = campaign["empty"].get(name, NOT_PLANNED)
        if not versions and name in chosen and why != NOT_PLANNED:
            lines.append([title, MISSING, why])
    return lines


def program_titles(layout: Layout | None) -> dict[str, str]:
    """Return instrument -> title such as ``diskbench (peakmark)``, for programs that tables call by another name."""
    tables = [printed_table(None, table) for table in TABLES]
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
    """Return the chapter Failures: its ``text``, and ``lines`` of cells, what happened, and the reason.

    A line is on cells that could not be measured, attempts that failed, or cells without a record. Failures of a point
    on several nodes or in several repetitions share a line.
    """
    lines = []
    for failure in frames.campaign["failures"]:
        places = failure["nodes"]
        what = failure["what"]
        if len(places) > 1:
            what += f" ({len(places)} times)"
        # Name the nodes, unless the cell may run on any node.
        name = failure["cells"]
        named = [place for place in dict.fromkeys(places) if place != "any"]
        if named:
            name += f" on {who(named)}"
        lines.append([name, what, failure["reason"]])
    return {"text": TEXT["problems"], "lines": lines}


# -- provenance


def describe_provenance(frames: CampaignFrames) -> dict[str, Any]:
    """Return facts, commands by program, the configuration as YAML, and the checksum of all files.

    Of numbers that a report printed, only their source and the site file are known.
    """
    campaign = frames.campaign
    if frames.printed_in:
        site = campaign["config"]["site"] or "none"
        return {
            "facts": [["Numbers from", frames.printed_in], ["Site file", site]],
            "commands": {},
            "config": "",
            "digest": "",
            "checksums_text": "",
        }
    # State the jobs and, of those that have ended, the node-hours as Slurm counts them.
    jobs = campaign["jobs"]
    of_slurm = []
    if jobs:
        slurm = f"{len(jobs)} (ID {jobs[0]} to {jobs[-1]})"
        if seconds := campaign["node_seconds"]:
            hours = sum(seconds) / 3600
            slurm += f"; {hours:.2f} node-hours by Slurm's count of {plural(len(seconds), 'job')}"
        of_slurm.append(["Slurm jobs", slurm])
    done = campaign["cells"] - campaign["missing"]
    return {
        "facts": [
            ["Campaign", campaign["name"]],
            ["peakmark", ", ".join(campaign["versions"]) or "no record yet"],
            ["Records", f"{done} of {plural(campaign['cells'], 'cell')}"],
            *of_slurm,
        ],
        "commands": campaign["commands"],
        "config": config_text(campaign),
        "digest": campaign["checksums"]["digest"],
        "checksums_text": TEXT["checksums"].format(**campaign["checksums"]),
    }


def list_outputs(frames: CampaignFrames, layout: Layout | None) -> list[list[str]]:
    """Return name, commands and raw output of each reference tool; no lines unless the layout asks for them."""
    if layout is None or not layout.raw_outputs:
        return []
    titles, commands = program_titles(layout), frames.campaign["commands"]
    lines = []
    for name, output in frames.campaign["outputs"].items():
        lines.append([titles.get(name, name), "\n".join(commands.get(name, [])), output])
    return lines


def config_text(campaign: Mapping[str, Any]) -> str:
    """Return the keys of the configuration that differ from the default as YAML, with a line for each grid.

    If the campaign is a preset, return a comment that names the preset instead; if no key differs, an empty text.
    """
    name, preset = campaign["name"], campaign["preset"]
    if preset:
        return f"# The preset {preset}, as the campaign {name}."
    if not campaign["settings"]:
        return ""
    lines = ["# The keys that differ from the default."]
    for key, value in campaign["settings"].items():
        if isinstance(value, list):
            lines.append(f"{key}:")
            lines += [f"  - {on_one_line(grid)}" for grid in value]
        else:
            lines.append(f"{key}: {on_one_line(value)}")
    return "\n".join(lines)


def on_one_line(value: Any) -> str:
    """Return a value as YAML on one line."""
    # It is dumped in a list, because a text that is dumped alone has a line of dots behind it.
    text: str = yaml.safe_dump(
        [value], sort_keys=False, allow_unicode=True, default_flow_style=True, width=sys.maxsize
    )
    return text.strip().removeprefix("[").removesuffix("]")


def describe_reproduction(frames: CampaignFrames) -> dict[str, Any]:
    """Return how to reproduce the campaign: steps (sentence, command), and expected results."""
    campaign = frames.campaign
    config = campaign["preset"] or f"{campaign['name']}.yaml"
    is_printed = bool(frames.printed_in)
    steps = []
    for text, command in TEXT["printed_steps" if is_printed else "steps"]:
        steps.append([text, command.format(name=campaign["name"], config=config)])
    return {"steps": steps, "expected": "" if is_printed else TEXT["expected"]}


# -- machine

Facts = Mapping[str, Any]
Groups = dict[str, list[list[str]]]
"""Title -> lines of the name and the value of a fact."""

MACHINE = ROOT / "reports" / "machine.yaml"
"""Templates of the facts of a machine: group -> name of a fact -> template."""
BOX = "On page one"
"""Name of the group in ``MACHINE`` whose facts stand in the box on page one."""
UNREAD = "What could not be read, and how to supply it"
HOST = "Host"
"""Fact that is left out for several nodes, because the nodes' names state it."""
UNKNOWN = "unknown"
"""Fact that maps the dotted name of each unknown fact to a way to supply the fact."""
MOST_NAMED = 3
"""Largest number of nodes whose names are printed. If more nodes share a value, their number is printed."""
VALUES = 4
"""Largest number of values of a fact in a line; the most frequent values are printed."""


def hosts(frames: CampaignFrames) -> list[str]:
    """Return the hosts whose facts are known."""
    return list(dict.fromkeys(frames.facts["host"]))


def facts_of(frames: CampaignFrames) -> dict[str, dict[str, Any]]:
    """Return host -> its facts as nested mappings and lists. ``network`` has the interface that was measured."""
    found: dict[str, dict[str, Any]] = {host: {} for host in hosts(frames)}
    for line in schema.lines(frames.facts):
        found[line.host][line.part] = json.loads(line.value)
    for host, facts in found.items():
        facts["network"] = frames.campaign["networks"].get(host)
    return found


def machines(frames: CampaignFrames) -> list[dict[str, Any]]:
    """Return a list with one entry: the facts of a single node, or the merged facts of several, see ``alike``.

    The list is empty without facts. It is also empty if the numbers were read from a printed report: page one then
    has what that report says of its machine.
    """
    if frames.printed_in:
        return []
    return alike(facts_of_nodes(frames))


def alike(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a list with one node that merges all: the equal facts, then those that differ.

    Args:
        nodes: nodes with ``name`` and ``groups``, see ``Groups``. A single one is returned as it is.
    """
    if len(nodes) < 2:
        return [dict(node) for node in nodes]
    # Group and fact -> value of the fact -> names of the nodes that have this value.
    names_of: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for node in nodes:
        for title, lines in node["groups"].items():
            for what, value in lines:
                names_of[title, what].setdefault(value, []).append(str(node["name"]))
    groups: Groups = defaultdict(list)
    different = []
    for (title, what), names_by_value in names_of.items():
        # A fact is common if all nodes have its first value.
        value, names = next(iter(names_by_value.items()))
        if len(names) == len(nodes):
            groups[title].append([what, value])
        elif what != HOST:  # the names of the nodes state it
            different.append([what, values_with_nodes(names_by_value)])
    if different:
        groups["What differs between the nodes, or is known of some only"] = different
    name = f"{len(nodes)} nodes: {nodes[0]['name']} to {nodes[-1]['name']}"
    return [{"name": name, "groups": groups}]


def values_with_nodes(names_by_value: Mapping[str, Sequence[str]]) -> str:
    """Return the values of a fact with their nodes: ``A (60 nodes); B (node3 and node9)``.

    Values beyond ``VALUES`` are counted.
    """
    ordered = sorted(names_by_value.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{value} ({who(names)})" for value, names in ordered[:VALUES]]
    if len(ordered) > VALUES:
        shown.append(plural(len(ordered) - VALUES, "other value"))
    return "; ".join(shown)


def who(names: Sequence[str]) -> str:
    """Return ``node3 and node9``, or the number of nodes if there are many."""
    if len(names) > MOST_NAMED:
        return f"{len(names)} nodes"
    return listed(names)


def facts_of_nodes(frames: CampaignFrames) -> list[dict[str, Any]]:
    """Return for each node a mapping with its ``name`` and its facts as ``groups``, see ``group``."""
    return [{"name": host, "groups": group(facts)} for host, facts in facts_of(frames).items()]


def group(facts: Facts) -> Groups:
    """Return the facts of one machine by groups, without empty lines and groups.

    The group ``BOX`` is left out, because page one shows it. ``UNREAD`` lists the facts that are unknown.
    """
    shown = {}
    for title, of_group in templates().items():
        if title != BOX:
            shown[title] = rendered(of_group, facts)
    unread = (facts.get(UNKNOWN) or {}).items()
    shown[UNREAD] = [[name, f"unknown: {how}"] for name, how in unread]
    return {title: lines for title, lines in shown.items() if lines}


def rendered(lines: Mapping[str, Template], facts: Facts) -> list[list[str]]:
    """Return the lines of a group of facts that are not empty."""
    texts = [[what, template.render(facts)] for what, template in lines.items()]
    return [line for line in texts if line[1]]


def box(frames: CampaignFrames) -> list[list[str]]:
    """Return the lines of page one's box on the machine, each as [name of a fact, text].

    For several nodes, a fact that differs lists its values with their nodes.
    """
    found, clocks = [], highest_clocks(frames)
    for host, facts in facts_of(frames).items():
        lines_of_box = rendered(templates()[BOX], facts | {"clocks": clocks})
        found.append({"name": host, "groups": {BOX: lines_of_box}})
    lines: list[list[str]] = []
    # Several nodes may have a second group: the lines that differ.
    for group_of_all in alike(found):
        for of_group in group_of_all["groups"].values():
            lines += of_group
    return lines


def highest_clocks(frames: CampaignFrames) -> list[float]:
    """Return the highest clock in Hz that the runs observed on each host, without hosts whose clock is unknown."""
    of_runs = frames.runs[["clock_work_hz", "clock_before_hz", "clock_after_hz"]].max(axis=1)
    return list(of_runs.groupby(frames.runs["host"]).max().dropna())


@cache
def templates() -> dict[str, dict[str, Template]]:
    """Return group -> name of a fact -> its template."""
    environment = Environment(
        autoescape=False,  # noqa: S701 - texts as JSON, which each form of the report escapes
        undefined=ChainableUndefined,
        finalize=text_of,
    )
    environment.filters |= {
        "binary": binary,
        "listed": listed,
        "moment": moment,
        "number": typeset_known,
        "pairs": pairs,
        "plural": plural,
        "significant": significant,
    }
    found = {}
    for title, lines in yamlfile.read(MACHINE).items():
        found[title] = {what: environment.from_string(text) for what, text in lines.items()}
    return found


def text_of(value: Any) -> Any:
    """Return a value for a template: an empty text instead of None."""
    return "" if value is None else value


def typeset_known(text: str | None) -> str | None:
    """Return a number with its unit as it is printed; an unknown number stays None or empty."""
    return text and typeset(text)


def pairs(values: Mapping[str, Any] | None, sign: str = ": ") -> str:
    """Return ``name: value; name: value`` without empty values."""
    return "; ".join(f"{name}{sign}{value}" for name, value in (values or {}).items() if value)
