"""The description of a bundle as RO-Crate 1.1 (https://w3id.org/ro/crate/1.1): JSON-LD that says
what each file is.

Also a Process Run Crate 0.5: the measuring and the reporting are actions, with the programs that
did them.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from peakmark import data
from peakmark.config import inputs
from peakmark.report import document
from peakmark.resources import version
from peakmark.storage.results import Results
from peakmark.tools import references

NAME = "ro-crate-metadata.json"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
HOME = "#peakmark"
Entity = dict[str, Any]

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
    program: page
    for tool in references().values()
    for program, page in zip(tool.executables, tool.homes, strict=True)
}
"""Program, as its records call it -> where it comes from."""
_PARTS = {line["part"]: (line["name"], line["description"]) for line in data.table("bundle")}
"""File or folder of a bundle -> what it is called, and what it is."""


def describe(
    results: Results,
    files: Mapping[str, bytes],
    licence: str | None = None,
) -> dict[str, Any]:
    """The JSON-LD of a bundle of ``files`` (POSIX path -> content); ``licence``: an SPDX identifier
    or an address.
    """
    folders: dict[str, list[str]] = {}
    for path in files:
        head, _, rest = path.partition("/")
        if rest:
            folders.setdefault(head, []).append(path)
    top = [path for path in files if "/" not in path]
    persons = _persons(results)
    authors = [_ref(entity["@id"]) for entity in persons if entity["@type"] == "Person"]
    publisher = str(results.report_config.get("publisher") or "")
    description = (
        f"Campaign {results.name} of peakmark: how close a machine comes to the limits of its processor, memory, disk and "
        f"network. {len(results.records)} of {len(results.cells)} planned cells are on record."
    )
    root = _entity(
        "./",
        "Dataset",
        str(results.report_config.get("title") or "Performance report"),
        description=description,
        datePublished=_time(document.newest(results)),
        license=_ref(_licence(licence)["@id"]),
        conformsTo=_ref(PROFILE),
        hasPart=_refs([quote(path) for path in [*top, *(f"{folder}/" for folder in folders)]]),
        mentions=[_ref("#measuring"), _ref("#reporting")],
        author=_one_or_all(authors),
        publisher=_ref(_organisation(publisher)["@id"]) if publisher else None,
    )
    graph = [
        _entity(
            NAME, "CreativeWork", about=_ref("./"), conformsTo=_ref("https://w3id.org/ro/crate/1.1")
        ),
        root,
        _licence(licence),
        _entity(PROFILE, "CreativeWork", "Process Run Crate", version="0.5"),
        *persons,
        *_programs(results),
        *_actions(results, files, folders, authors),
    ]
    for folder, members in folders.items():
        name, text = _PARTS.get(folder, (folder, f"Files below {folder}."))
        parts = _refs([quote(path) for path in members])
        graph.append(_entity(f"{quote(folder)}/", "Dataset", name, description=text, hasPart=parts))
    graph += [_file(path, content) for path, content in files.items()]
    return {"@context": CONTEXT, "@graph": graph}


def _entity(identifier: str, kind: str, name: str | None = None, **properties: Any) -> Entity:
    """One entity of the graph; properties that are None are left out."""
    every = {"@id": identifier, "@type": kind, "name": name, **properties}
    return {key: value for key, value in every.items() if value is not None}


def _persons(results: Results) -> list[Entity]:
    """The authors, by ORCID where they have one, then the organisations they and the publisher are."""
    report = results.report_config
    persons: dict[str, Entity] = {}
    names = [author.affiliation or "" for author in inputs.authors(report)] + [
        str(report.get("publisher") or "")
    ]
    for number, author in enumerate(inputs.authors(report), 1):
        identifier = f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{number}"
        home = _ref(_organisation(author.affiliation)["@id"]) if author.affiliation else None
        persons[identifier] = _entity(identifier, "Person", author.name, affiliation=home)
    for organisation in (_organisation(name) for name in names if name):
        persons[organisation["@id"]] = organisation
    return list(persons.values())


def _organisation(name: str) -> Entity:
    return _entity(f"#{quote(name, safe='')}", "Organization", name)


def _ref(identifier: str) -> dict[str, str]:
    return {"@id": identifier}


def _refs(identifiers: Iterable[str]) -> Any:
    return _one_or_all(list(map(_ref, identifiers))) or []


def _one_or_all(references: list[dict[str, str]]) -> Any:
    """A list, or the one there is, as the specification wants no lists of one; None without any."""
    return references[0] if len(references) == 1 else references or None


def _time(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


def _licence(given: str | None) -> Entity:
    if given is None:
        advice = "Ask the author before using these data elsewhere."
        return _entity("#licence", "CreativeWork", "No licence was stated", description=advice)
    address = given if "://" in given else f"https://spdx.org/licenses/{quote(given)}"
    return _entity(address, "CreativeWork", given)


def _file(path: str, content: bytes) -> Entity:
    name, text = _PARTS.get(path, (path, None))
    kind = _KINDS.get(PurePosixPath(path).suffix, "text/plain")
    digest = hashlib.sha256(content).hexdigest()
    size = str(len(content))
    return _entity(
        quote(path),
        "File",
        name,
        encodingFormat=kind,
        contentSize=size,
        sha256=digest,
        description=text,
    )


def _programs(results: Results) -> Iterable[Entity]:
    """peakmark, and every version of each program that measured."""
    purpose = "Tells how close a machine comes to its physical limits."
    yield _entity(
        HOME, "SoftwareApplication", "peakmark", description=purpose, softwareVersion=version()
    )
    for identifier, (name, number) in _measured_with(results).items():
        yield _entity(
            identifier, "SoftwareApplication", name, softwareVersion=number, url=HOMES.get(name)
        )


def _measured_with(results: Results) -> dict[str, tuple[str, str]]:
    tools = [record.data["context"]["tool"] for record in results.records if record.ok]
    pairs = sorted({(str(tool["name"]), str(tool["version"])) for tool in tools if tool})
    return {f"#{quote(name)}-{quote(number, safe='')}": (name, number) for name, number in pairs}


def _actions(
    results: Results,
    files: Mapping[str, bytes],
    folders: Collection[str],
    authors: list[dict[str, str]],
) -> Iterable[Entity]:
    contexts = [record.data["context"] for record in results.records]
    starts = [datetime.fromisoformat(str(context["started"])) for context in contexts]
    lengths = [timedelta(seconds=float(context["seconds"] or 0)) for context in contexts]
    known = [name for name in ("plan.json", "config.json") if name in files]
    measured = [f"{folder}/" for folder in ("cells", "attempts", "machine") if folder in folders]
    outputs = [name for name in ("report.pdf", "report.html") if name in files] + ["tables/"] * (
        "tables" in folders
    )
    yield _entity(
        "#measuring",
        "CreateAction",
        f"Measuring campaign {results.name}",
        description="Every planned cell was measured by its program; what could not be measured is on record too.",
        instrument=_refs([HOME, *_measured_with(results)]),
        object=_refs(known),
        result=_refs(measured),
        startTime=_time(min(starts)) if starts else None,
        endTime=_time(max(map(operator.add, starts, lengths))) if starts else None,
        agent=_one_or_all(authors),
    )
    yield _entity(
        "#reporting",
        "CreateAction",
        f"Reporting campaign {results.name}",
        description="Tables and report were made from the records; peakmark report makes them again.",
        instrument=_ref(HOME),
        object=_refs([*known, *measured]),
        result=_refs(outputs),
        endTime=_time(document.newest(results)),
        agent=_one_or_all(authors),
    )
