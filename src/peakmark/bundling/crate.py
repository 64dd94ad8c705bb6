"""The description of a bundle as RO-Crate 1.1 (https://w3id.org/ro/crate/1.1): JSON-LD that says what each file is.

Also a Process Run Crate 0.5: the measuring and the reporting are actions, with the programs that did them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from peakmark.config import people
from peakmark.reporting import document
from peakmark.resources import version
from peakmark.storage.results import Results

NAME = "ro-crate-metadata.json"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
HOME = "#peakmark"

_KINDS = {
    ".json": "application/json",
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".yaml": "application/yaml",
}
HOMES = {
    "hpcc": "https://hpcchallenge.org/hpcc/",
    "xhpl": "https://netlib.org/benchmark/hpl/",
    "pmbw": "https://panthema.net/2013/pmbw/",
    "likwid-bench": "https://github.com/RRZE-HPC/likwid",
    "iozone": "https://www.iozone.org/",
    "fio": "https://github.com/axboe/fio",
    "iperf3": "https://github.com/esnet/iperf",
    "qperf": "https://github.com/linux-rdma/qperf",
    "ping": "https://github.com/iputils/iputils",
}
"""Program, as its records call it -> where it comes from."""
_FOLDERS = {
    "cells": ("Records", "One record per cell that was measured, with what the program printed beside it."),
    "attempts": ("Failed attempts", "Records of attempts that failed, with what the program printed."),
    "machine": ("Machine", "Facts of each node, as any user of it can read them."),
    "repetitions": ("Repetitions", "What was decided after each round: which rows get another repetition, and why."),
    "inputs": ("Files of the configuration", "Copies of the files that the report's configuration names."),
    "tables": ("Tables", "Tables of the report as CSV, made from the records."),
}
_FILES = {
    "plan.json": (
        "Plan",
        "Every cell that was to be measured, the configuration with its defaults, the programs found.",
    ),
    "config.json": ("Configuration", "The configuration as it was given."),
    "report.pdf": ("Report", "Report of the campaign, made from the records."),
    "report.html": ("Report as a page", "The same report as one page with tables that sort and filter."),
    "SHA256SUMS": ("Checksums", "SHA-256 of every other file, as sha256sum --check reads them."),
}


@dataclass(frozen=True)
class Extra:
    """A file to add to a bundle: its path in it, what it is called, says, and holds, and its media type."""

    path: str
    name: str
    description: str
    content: bytes
    kind: str = "application/json"


def describe(
    results: Results, files: Mapping[str, bytes], extra: Sequence[Extra] = (), licence: str | None = None
) -> dict[str, Any]:
    """The JSON-LD of a bundle that holds ``files``: POSIX path below the bundle -> content. ``licence`` is an SPDX
    identifier or an address.
    """
    added = {entity.path: entity for entity in extra}
    folders: dict[str, list[str]] = {}
    for path in files:
        head, _, rest = path.partition("/")
        if rest:
            folders.setdefault(head, []).append(path)
    top = [path for path in files if "/" not in path]
    persons = _persons(results)
    authors = [_ref(entity["@id"]) for entity in persons if entity["@type"] == "Person"]
    publisher = str(results.report_config.get("publisher") or "")
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": str(results.report_config.get("title") or "Performance report"),
        "description": f"Campaign {results.name} of peakmark: how close a machine comes to the limits of its processor, "
        f"memory, disk and network. {len(results.records)} of {len(results.cells)} planned cells are on record.",
        "datePublished": _time(document.newest(results)),
        "license": _ref(_licence(licence)["@id"]),
        "conformsTo": _ref(PROFILE),
        "hasPart": _refs([_id(path) for path in [*top, *(f"{folder}/" for folder in folders)]]),
        "mentions": [_ref("#measuring"), _ref("#reporting")],
    }
    if authors:
        root["author"] = authors[0] if len(authors) == 1 else authors
    if publisher:
        root["publisher"] = _ref(_organisation(publisher)["@id"])
    graph: list[dict[str, Any]] = [
        {
            "@id": NAME,
            "@type": "CreativeWork",
            "about": _ref("./"),
            "conformsTo": _ref("https://w3id.org/ro/crate/1.1"),
        },
        root,
        _licence(licence),
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        *persons,
        *_programs(results),
        *_actions(results, files, folders, authors),
    ]
    for folder, members in folders.items():
        name, text = _FOLDERS.get(folder, (folder, f"Files below {folder}."))
        graph.append(
            {
                "@id": f"{_id(folder)}/",
                "@type": "Dataset",
                "name": name,
                "description": text,
                "hasPart": _refs([_id(path) for path in members]),
            }
        )
    graph += [_file(path, content, added.get(path)) for path, content in files.items()]
    return {"@context": CONTEXT, "@graph": graph}


def _persons(results: Results) -> list[dict[str, Any]]:
    """The authors, by ORCID where they have one, then the organisations they and the publisher are."""
    report = results.report_config
    persons: dict[str, dict[str, Any]] = {}
    names = [author.affiliation for author in people.authors(report)] + [str(report.get("publisher") or "")]
    for number, author in enumerate(people.authors(report), 1):
        identifier = f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{number}"
        home = {"affiliation": _ref(_organisation(author.affiliation)["@id"])} if author.affiliation else {}
        persons[identifier] = {"@id": identifier, "@type": "Person", "name": author.name, **home}
    for organisation in (_organisation(name) for name in names if name):
        persons[organisation["@id"]] = organisation
    return list(persons.values())


def _organisation(name: str) -> dict[str, Any]:
    return {"@id": f"#{quote(name, safe='')}", "@type": "Organization", "name": name}


def _ref(identifier: str) -> dict[str, str]:
    return {"@id": identifier}


def _refs(identifiers: Sequence[str]) -> dict[str, str] | list[dict[str, str]]:
    """A list, or the one there is: the specification wants no lists of one."""
    return _ref(identifiers[0]) if len(identifiers) == 1 else [_ref(identifier) for identifier in identifiers]


def _time(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


def _id(path: str) -> str:
    """A path as the relative address that JSON-LD wants."""
    return quote(path)


def _licence(given: str | None) -> dict[str, Any]:
    if given is None:
        return {
            "@id": "#licence",
            "@type": "CreativeWork",
            "name": "No licence was stated",
            "description": "Ask the author before using these data elsewhere.",
        }
    address = given if "://" in given else f"https://spdx.org/licenses/{quote(given)}"
    return {"@id": address, "@type": "CreativeWork", "name": given}


def _file(path: str, content: bytes, extra: Extra | None) -> dict[str, Any]:
    suffix = PurePosixPath(path).suffix
    name, text = _FILES.get(path, (path, ""))
    kind = _KINDS.get(suffix, "text/plain")
    if extra is not None:
        name, text, kind = extra.name, extra.description, extra.kind
    entity: dict[str, Any] = {
        "@id": _id(path),
        "@type": "File",
        "name": name,
        "encodingFormat": kind,
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return entity | ({"description": text} if text else {})


def _programs(results: Results) -> Iterable[dict[str, Any]]:
    """peakmark, and every version of each program that measured."""
    yield {
        "@id": HOME,
        "@type": "SoftwareApplication",
        "name": "peakmark",
        "description": "Tells how close a machine comes to its physical limits.",
        "softwareVersion": version(),
    }
    for identifier, (name, number) in _measured_with(results).items():
        home = {"url": HOMES[name]} if name in HOMES else {}
        yield {"@id": identifier, "@type": "SoftwareApplication", "name": name, "softwareVersion": number, **home}


def _measured_with(results: Results) -> dict[str, tuple[str, str]]:
    tools = [record.data["context"]["tool"] for record in results.records if record.ok]
    pairs = sorted({(str(tool["name"]), str(tool["version"])) for tool in tools if tool})
    return {f"#{quote(name)}-{quote(number, safe='')}": (name, number) for name, number in pairs}


def _actions(
    results: Results,
    files: Mapping[str, bytes],
    folders: Mapping[str, Sequence[str]],
    authors: Sequence[dict[str, str]],
) -> Iterable[dict[str, Any]]:
    agent = {"agent": authors[0] if len(authors) == 1 else list(authors)} if authors else {}
    starts = sorted(datetime.fromisoformat(str(record.data["context"]["started"])) for record in results.records)
    ends = sorted(
        datetime.fromisoformat(str(record.data["context"]["started"]))
        + timedelta(seconds=float(record.data["context"]["seconds"] or 0))
        for record in results.records
    )
    times = {"startTime": _time(starts[0]), "endTime": _time(ends[-1])} if starts else {}
    known = [name for name in ("plan.json", "config.json") if name in files]
    measured = [f"{folder}/" for folder in ("cells", "attempts", "machine") if folder in folders]
    actions = [
        *(name for name in ("report.pdf", "report.html") if name in files),
        *(["tables/"] if "tables" in folders else []),
    ]
    yield {
        "@id": "#measuring",
        "@type": "CreateAction",
        "name": f"Measuring campaign {results.name}",
        "description": "Every planned cell was measured by its program; what could not be measured is on record too.",
        "instrument": _refs([HOME, *_measured_with(results)]),
        "object": _refs(known),
        "result": _refs(measured),
        **times,
        **agent,
    }
    yield {
        "@id": "#reporting",
        "@type": "CreateAction",
        "name": f"Reporting campaign {results.name}",
        "description": "Tables and report were made from the records; peakmark report makes them again.",
        "instrument": _ref(HOME),
        "object": _refs([*known, *measured]),
        "result": _refs(actions),
        "endTime": _time(document.newest(results)),
        **agent,
    }
