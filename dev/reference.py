"""Pages of the documentation that are made from the program when the site is built, by a hook of
MkDocs: commands from their parsers, keys from the schemas, columns from the tables, warnings from
the catalogue of messages.
"""

from __future__ import annotations

import argparse
import html
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import schemas
import yaml

from peakmark import cli, messages
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Layout
from peakmark.config.types import Campaign, Site
from peakmark.errors import ExitCode
from peakmark.rows import schema
from peakmark.storage.record_types import Record
from peakmark.tools import references
from peakmark.tools.tables import TABLES, Table
from peakmark.views.table import points_of
from peakmark.views.usual_tables import columns_of
from peakmark.workflow import doctor

DOCS = Path(__file__).parents[1] / "docs"
SCHEMAS: dict[str, type] = {
    "config": Campaign,
    "site": Site,
    "layout": Layout,
    "record": Record,
}
"""Files that people and programs write -> the type of which the site has a JSON schema."""
SECTION = re.compile(r"^# -- (.*)$|^(\S.*):$", re.MULTILINE)
"""A heading of the catalogue of messages, or the code of an entry."""


def commands() -> str:
    """Every command of a user with its options."""
    parser = cli.build_parser()
    lines = ["# Commands", "", f"{parser.description}.", ""]
    (parsers,) = (action for action in parser._actions if isinstance(action.choices, dict))
    for known in chain.from_iterable(cli.GROUPS.values()):
        command = parsers.choices[known.name]
        lines += [f"## peakmark {known.name}", "", _cell(command.description or "")]
        usage = command.format_usage().removeprefix("usage: ")
        lines += ["", "```text", " ".join(usage.split()), "```", ""]
        rows = [
            (_option(action), _cell(action.help or ""))
            for action in command._actions
            if action.dest != "help" and action.help != argparse.SUPPRESS
        ]
        if rows:
            lines += [*_table(("argument", "meaning"), rows), ""]
    return "\n".join([*lines, *_exit_codes()])


def _exit_codes() -> Iterator[str]:
    """Yield the section on the exit codes, with what the docstring of each says."""
    yield from ("## Exit codes", "", "All commands share one list of exit codes.", "")
    about = inspect.getdoc(ExitCode) or ""
    rows = []
    for name, meaning in re.findall(r"^    ([A-Z_]+): (.*)$", about, re.MULTILINE):
        rows.append((f"`{ExitCode[name].value}`", meaning.replace("``", "`")))
    rows.append(("more than 128", "A signal stopped the command: 130 for Ctrl-C, 143 for SIGTERM."))
    yield from _table(("code", "meaning"), rows)
    yield from (
        "",
        "If you start Snakemake yourself, it ends with 1 for every failure except a wrong option.",
        "",
    )


def _option(action: argparse.Action) -> str:
    value = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
    return f"`{' '.join([', '.join(action.option_strings), str(value)]).strip()}`"


def configuration() -> str:
    """Return ``config/README.md``, and every key of a layout with its default and meaning."""
    text = (DOCS.parent / "config" / "README.md").read_text().replace("](../docs/", "](../")
    links = [f"[{name}](../schemas/{name}.schema.json)" for name in SCHEMAS]
    lines = [text, f"JSON schemas of these and other files: {', '.join(links)}.", ""]
    of_layout = schemas.schema("layout", SCHEMAS["layout"])
    lines += ["## Layout", "", of_layout["description"], "", *_keys(of_layout), ""]
    for part, definition in of_layout["$defs"].items():
        lines += [f"### {part}", "", definition["description"], "", *_keys(definition), ""]
    return "\n".join(lines)


def _keys(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    rows = []
    for key, rule in schema["properties"].items():
        default = "required" if key in required else _default(rule)
        rows.append((f"`{key}`", _kind(rule), default, _cell(rule.get("description", ""))))
    return _table(("key", "value", "default", "meaning"), rows)


def _default(rule: Mapping[str, Any]) -> str:
    default = rule.get("default")
    return "" if default in (None, [], {}) else f"`{json.dumps(default)}`"


def _kind(rule: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in rule:
        name = rule["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in rule:
        kinds = [_kind(choice) for choice in rule["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in rule:
        return ", ".join(f"`{value}`" for value in rule["enum"])
    if rule.get("type") == "array":
        return f"list of {_kind(rule.get('items', {}))}"
    kind = {"object": "mapping", "string": "text", "boolean": "true or false"}
    name = rule.get("type", "any")
    low, high = rule.get("minimum", rule.get("exclusiveMinimum")), rule.get("maximum")
    limits = [f"from {low:g}" if low is not None else "", f"to {high:g}" if high else ""]
    return " ".join([kind.get(name, name), *filter(None, limits)])


def table_columns() -> str:
    """Every column of every CSV file with its meaning."""
    files = yaml.safe_load((DOCS / "columns.yaml").read_text())
    patterns = files.pop("tables")
    lines = ["# Columns", "", "All files are in `results/<campaign>/tables`.", ""]
    for table in TABLES:
        pairs = []
        points = points_of(example_rows(table))
        points.own["notes"] = ""
        for column in columns_of(table, points):
            if column.heading:
                fitting = [
                    text for key, text in patterns.items() if re.fullmatch(key, column.heading)
                ]
                pairs.append((f"`{column.heading}`", fitting[0]))
        lines += [f"## {table.name}.csv", "", f"{table.title}.", ""]
        lines += [*_table(("column", "meaning"), pairs), ""]
    for name, meanings in files.items():
        pairs = [(f"`{column}`", meaning) for column, meaning in meanings.items()]
        lines += [f"## {name}", "", *_table(("column", "meaning"), pairs), ""]
    return "\n".join(lines)


def example_rows(table: Table) -> pd.DataFrame:
    """Return rows of two nodes for which a table has all its columns."""
    known = {"table": table.name, "instrument": table.own.instrument, "joules": 1.0, "n": 6}
    lines = [{**known, "point": node, "node": node, "is_own": True} for node in ("a", "b")]
    return schema.typed("rows", pd.DataFrame(lines))


def warnings() -> str:
    """Every message by its code: an example of its words, with the remedy."""
    lines = ["# Warnings", "", "Each message appears with the values of an example.", ""]
    catalogue = messages.catalogue()
    rows: list[tuple[str, ...]] = []
    for heading, code in SECTION.findall(messages.CATALOGUE.read_text(encoding="utf-8")):
        if heading:
            lines += [*_message_table(rows), f"## {heading[0].upper()}{heading[1:]}", ""]
            rows = []
        else:
            values = dict(catalogue[code].get("example", {}))
            for name, value in values.items():
                if isinstance(value, list):
                    values[name] = tuple(value)
            shown = messages.message(code, **values)
            rows.append((f"`{code}`", _cell(shown.fact), _cell(shown.remedy)))
    return "\n".join([*lines, *_message_table(rows)])


def _message_table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [*_table(("code", "message", "cause or remedy"), rows), ""] if rows else []


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Words as a cell of a table: what Markdown would read as its own is escaped."""
    return re.sub(r"([|*_\[])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def tools() -> str:
    """Every reference tool: what it measures, and lines that get it."""
    lines = ["# Reference tools", "", "`peakmark doctor` lists those on a machine.", ""]
    for name, instrument in references().items():
        rows = [
            f"{SUBSYSTEMS[row.subsystem].title} {', '.join(row.workloads)}"
            for row in instrument.rows
        ]
        lines += [f"## {instrument.heading}", "", f"`{name}` measures {'; '.join(rows)}.", ""]
        ways = [(place, f"`{line}`") for place, line in doctor.ways(instrument)]
        lines += [*_table(("from", "line"), ways), ""]
    return "\n".join(lines)


def rows_files() -> str:
    """Return every column of the files in ``results/<campaign>/rows`` with its meaning."""
    lines = ["# Rows files", "", (DOCS / "rows.md.in").read_text(), ""]
    for name, file_columns in schema.FILES.items():
        cells = [(f"`{column.name}`", column.kind, column.meaning) for column in file_columns]
        lines += [f"## {name}.csv", "", *_table(("column", "kind", "meaning"), cells), ""]
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/configuration.md": configuration,
    "reference/columns.md": table_columns,
    "reference/rows.md": rows_files,
    "reference/warnings.md": warnings,
    "reference/tools.md": tools,
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, and the reports and bundles that ``make docs`` has made, to the site. MkDocs
    calls it.
    """
    from mkdocs.structure.files import File  # only the site has it

    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    for name, kind in SCHEMAS.items():
        text = json.dumps(schemas.schema(name, kind), indent=1)
        files.append(File.generated(config, f"schemas/{name}.schema.json", content=text))
    gallery = DOCS.parent / "build" / "docs" / "gallery"
    for path in sorted([*gallery.glob("*/report.*"), *gallery.glob("*.zip")]):
        name = path.parent.name if path.stem == "report" else path.stem
        source = str(path)
        files.append(File.generated(config, f"gallery/{name}{path.suffix}", abs_src_path=source))
    return files
