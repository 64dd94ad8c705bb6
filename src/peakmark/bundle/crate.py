"""The description of a bundle: RO-Crate 1.1 with the actions of a Process Run Crate 0.5.

Source: https://w3id.org/ro/crate/1.1 and https://w3id.org/ro/wfrun/process/0.5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from peakmark import data
from peakmark import files as filesystem
from peakmark.config import inputs
from peakmark.report import document
from peakmark.resources import version
from peakmark.storage.results import Results
from peakmark.tools import references

NAME = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
HOME = "#peakmark"
Entity = dict[str, Any]

_FORMATS = {
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
"""File or folder of a bundle -> its name and description."""


def describe(
    results: Results, content: Mapping[str, bytes], licence: str | None = None
) -> dict[str, Any]:
    """The JSON-LD of a bundle.

    Args:
        results: the campaign.
        content: POSIX path -> content of each file.
        licence: an SPDX identifier or an address.
    """
    folders = dict.fromkeys(f"{path.partition('/')[0]}/" for path in content if "/" in path)
    persons = _people(results)
    authors = [entity["@id"] for entity in persons if entity["@type"] == "Person"]
    publisher = str(results.report_config.get("publisher") or "")
    licence_entity = _licence(licence)
    programs = _programs(results)
    parts = [*content, *folders]
    dataset = _entity(
        "./",
        "Dataset",
        str(results.report_config.get("title") or "Performance report"),
        f"Campaign {results.name} of peakmark: how close a machine comes to the limits of its "
        f"processor, memory, disk and network. {len(results.cells) - len(results.missing)} of {len(results.cells)} "
        "planned cells are on record.",
        datePublished=_time(document.newest(results)),
        license=_refs([licence_entity["@id"]]),
        conformsTo=_refs([PROFILE]),
        hasPart=_refs(map(quote, parts)),
        mentions=_refs(["#measuring"]),
        author=_refs(authors),
        publisher=_refs([_organisation(publisher)["@id"]]) if publisher else None,
    )
    graph = [
        _entity(NAME, "CreativeWork", about=_refs(["./"]), conformsTo=_refs([CRATE])),
        dataset,
        licence_entity,
        _entity(PROFILE, "CreativeWork", "Process Run Crate", version="0.5"),
        *persons,
        *programs,
        _measuring(results, parts, [program["@id"] for program in programs], authors),
        *(_entity(quote(folder), "Dataset", *_part(folder)) for folder in folders),
        *(_file(path, text) for path, text in content.items()),
    ]
    return {"@context": f"{CRATE}/context", "@graph": graph}


def version_in(folder: Path) -> str:
    """The version of peakmark that made an unpacked bundle."""
    try:
        graph = filesystem.read_json(folder / NAME)["@graph"]
        return str(next(entity["softwareVersion"] for entity in graph if entity["@id"] == HOME))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return "an unknown version"


def _entity(
    identifier: str,
    kind: str,
    name: str | None = None,
    description: str | None = None,
    **properties: Any,
) -> Entity:
    """One entity of the graph; properties that are None are left out."""
    entity = {"@id": identifier, "@type": kind, "name": name, "description": description}
    return {key: value for key, value in {**entity, **properties}.items() if value is not None}


def _refs(identifiers: Iterable[str]) -> Any:
    """A list of references; one alone is no list, as the specification wants; None without any."""
    references = [{"@id": identifier} for identifier in identifiers]
    return references[0] if len(references) == 1 else references or None


def _time(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


def _part(path: str) -> tuple[str, str | None]:
    """Name and description of a file or folder."""
    return _PARTS.get(path.rstrip("/"), (path, None))


def _people(results: Results) -> list[Entity]:
    """The authors, by ORCID where they have one, then organisations."""
    entities: dict[str, Entity] = {}
    authors = inputs.authors(results.report_config)
    names = [*(author.affiliation for author in authors), results.report_config.get("publisher")]
    for number, author in enumerate(authors, 1):
        identifier = f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{number}"
        home = _refs([_organisation(author.affiliation)["@id"]]) if author.affiliation else None
        entities[identifier] = _entity(identifier, "Person", author.name, affiliation=home)
    for name in filter(None, names):
        entity = _organisation(str(name))
        entities[entity["@id"]] = entity
    return list(entities.values())


def _organisation(name: str) -> Entity:
    return _entity(f"#{quote(name, safe='')}", "Organization", name)


def _licence(licence: str | None) -> Entity:
    if licence is None:
        advice = "Ask the author before using these data elsewhere."
        return _entity("#licence", "CreativeWork", "No licence was stated", advice)
    address = licence if "://" in licence else f"https://spdx.org/licenses/{quote(licence)}"
    return _entity(address, "CreativeWork", licence)


def _file(path: str, content: bytes) -> Entity:
    return _entity(
        quote(path),
        "File",
        *_part(path),
        encodingFormat=_FORMATS.get(PurePosixPath(path).suffix, "text/plain"),
        contentSize=str(len(content)),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _programs(results: Results) -> list[Entity]:
    """peakmark, and every version of each program that measured."""
    purpose = "Tells how close a machine comes to its physical limits."
    kind = "SoftwareApplication"
    programs = {HOME: _entity(HOME, kind, "peakmark", purpose, softwareVersion=version())}
    tools = [record.data["context"]["tool"] for record in results.records if record.ok]
    for name, number in sorted({(tool["name"], tool["version"]) for tool in tools if tool}):
        identifier = f"#{quote(name)}-{quote(number, safe='')}"
        home = HOMES.get(name)
        programs[identifier] = _entity(identifier, kind, name, softwareVersion=number, url=home)
    return list(programs.values())


def _measuring(
    results: Results, parts: Iterable[str], programs: list[str], authors: list[str]
) -> Entity:
    """The action that measured, with its programs, files and people."""
    contexts = [record.data["context"] for record in results.records]
    starts, ends = [], []
    for context in contexts:
        start = datetime.fromisoformat(str(context["started"]))
        starts.append(start)
        ends.append(start + timedelta(seconds=float(context["seconds"] or 0)))
    planned = {"plan.json", "config.json"}
    measured = {"cells/", "attempts/", "machine/"}
    return _entity(
        "#measuring",
        "CreateAction",
        f"Measuring campaign {results.name}",
        "Every planned cell was measured by its program; what could not be measured is on record "
        "too. peakmark report makes tables and report from the records.",
        instrument=_refs(programs),
        object=_refs(part for part in parts if part in planned),
        result=_refs(part for part in parts if part in measured),
        startTime=_time(min(starts)) if starts else None,
        endTime=_time(max(ends)) if ends else None,
        agent=_refs(authors),
    )
