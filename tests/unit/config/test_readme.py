"""``config/README.md`` has every key of a configuration and of a site file, with an example."""

import json
import os
import re
from functools import cache

import jsonschema
import schemas
import yaml

from peakmark.config.types import Campaign, Site
from peakmark.resources import ROOT

README = ROOT / "config" / "README.md"
FIRST = "## A campaign"
"""Heading of the generated part: what is above it is written by hand."""
EXAMPLES = """
{affiliation: TU Wien, author: Jane Doe, authors: [{name: Jane Doe}],
batch: 20, bytes_per_transfer: 8, campaign: node,
cores: 16, course: Cluster computing, cpu: {clock: nominal},
draft: true, email: jane@example.org, id: A20412345, team: Team 7,
description: Nodes of 2024, fan_out: {batch: 20},
disk: [{variants: [psync], together: [1, all]}], network: [{variants: [gso]}], gpu: [{variants: [burst]}],
mpi: [{workloads: [PINGPONG], concurrency: [2], blocks: [8B], variants: [same-socket]},
{workloads: [BARRIER], concurrency: [1], nodes: [2, all]}],
interface: ib0, memory: [{pairs: all}], references: {hpl: {memory: 0.8, ranks: core}}, modules: {fio: [fio/3.36]}, mtu: 9000, nb: 192,
nodes: all, pairs: {rounds: 5}, pool: 1GiB,
promise: {memory/LAT: 95 ns}, report: {title: A node}, sample: 3,
scratch: /scratch, site: config/sites/mine.yaml, slurm: {partition: compute},
one_file: true, text: text, together: true,
tools: {fio: /opt/fio/bin/fio}, type: DDR4}
"""
"""Examples of keys that no shipped file has, or only in many words."""
COMMENTED = re.compile(r"^( *)# ( *(?:- )?\w+:)(?=$| )", re.MULTILINE)
"""A key that the example of a site file leaves out."""


def key_values(data, parent=""):
    """Every key of nested mappings and lists, with the key above it and its value."""
    if isinstance(data, list):
        for part in data:
            yield from key_values(part, parent)
    if isinstance(data, dict):
        for key, value in data.items():
            yield parent, key, value
            yield from key_values(value, key)


def in_one_line(value):
    """A value as YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("...\n").strip()


@cache
def shipped():
    """Keys with examples of their values: the texts above first, then those of the shipped files."""
    files = [*ROOT.glob("config/*.yaml"), *ROOT.glob("config/presets/*.yaml")]
    files = sorted([*files, *ROOT.glob("config/sites/*.yaml")])
    texts = [EXAMPLES, *(COMMENTED.sub(r"\1\2", file.read_text()) for file in files)]
    found = [entry for text in texts for entry in key_values(yaml.safe_load(text))]
    return sorted(found, key=lambda entry: len(in_one_line(entry[2])))


def parents(heading, parts):
    """The keys whose values are such a part; empty for a whole file."""
    reference = f"#/$defs/{heading}"
    return {
        key
        for part in parts.values()
        for key, value in part.get("properties", {}).items()
        if json.dumps(reference) in json.dumps(value)
    } or {""}


def example(key, part, known, above):
    """The shortest valid value of that name, below one of the keys ``above`` if there is one."""
    schema = jsonschema.Draft202012Validator({**part, "$defs": known})
    found = [(parent in above, value) for parent, name, value in shipped() if name == key]
    values = [value for is_below, value in sorted(found, key=lambda one: not one[0])]
    values += [part.get("default"), *part.get("enum", ())]
    valid = [value for value in values if value not in (None, [], {}) and schema.is_valid(value)]
    assert valid, f"EXAMPLES lacks {key}"
    return in_one_line({key: valid[0]})[1:-1]


def allowed(part):
    """What a value may be, in words."""
    if "anyOf" in part:
        return ", or ".join(map(allowed, part["anyOf"]))
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"]).replace('"', "")
    if part.get("type") == "array" and part.get("items"):
        return f"list of {allowed(part['items'])}"
    return str(part.get("type", "any"))


def table(part, known, above):
    """Lines of a table of a mapping's keys, below the keys ``above``; ``known``: schemas of its parts."""
    yield "| key | allowed | default | example | what |\n|---|---|---|---|---|"
    for key, value in part["properties"].items():
        default = f"`{json.dumps(value['default'])}`" if "default" in value else ""
        texts = [f"`{key}`", allowed(value), default, f"`{example(key, value, known, above)}`"]
        yield " | ".join(["", *texts, value.get("description", ""), ""]).strip()


def generated():
    """The text of the page."""
    lines = [README.read_text().partition(FIRST)[0].rstrip(), ""]
    for name, kind, title in (("config", Campaign, "A campaign"), ("site", Site, "A site file")):
        schema = schemas.schema(name, kind)
        parts = {title: schema, **schema["$defs"]}
        for heading, part in parts.items():
            if "properties" in part:
                level = "##" if part is schema else "###"
                lines += [f"{level} {heading}\n", f"{part.get('description', '')}\n".lstrip()]
                lines += [*table(part, schema["$defs"], parents(heading, parts)), ""]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines))


def test_the_page_has_every_key_of_the_schemas():
    if os.environ.get("PEAKMARK_GOLDEN"):
        README.write_text(generated())
    assert README.read_text() == generated(), "PEAKMARK_GOLDEN=1 pytest test_readme.py"
