"""The description of a bundle: RO-Crate 1.1.

Source: https://w3id.org/ro/crate/1.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from mimetypes import MimeTypes
from typing import Any
from urllib.parse import quote

from peakmark.config import inputs
from peakmark.report import document
from peakmark.storage.results import Results

NAME = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.1"
Entity = dict[str, Any]
_KINDS = MimeTypes()
"""Without those of this machine, so that a bundle has the same bytes everywhere."""


def describe(
    results: Results, content: Mapping[str, bytes], licence: str | None = None
) -> dict[str, Any]:
    """The JSON-LD of a bundle.

    Args:
        results: the campaign.
        content: POSIX path -> content of each file.
        licence: an SPDX identifier or an address.
    """
    config = results.report_config
    people = {entity["@id"]: entity for entity in _people(config)}
    authors = [name for name, entity in people.items() if entity["@type"] == "Person"]
    publisher = config.get("publisher")
    address = licence or "#licence"
    if licence and "://" not in licence:
        address = f"https://spdx.org/licenses/{quote(licence)}"
    measured = len(results.cells) - len(results.missing)
    dataset = {
        "@id": "./",
        "@type": "Dataset",
        "name": config.get("title") or "Performance report",
        "description": f"Campaign {results.name} of peakmark: how close a machine comes to the limits of its "
        f"processor, memory, disk and network. {measured} of {len(results.cells)} planned cells are on record.",
        "datePublished": document.newest(results).isoformat(timespec="seconds"),
        "license": {"@id": address},
        "hasPart": _references(map(quote, content)),
        "author": _references(authors),
        "publisher": _references([_organisation(publisher)["@id"]] if publisher else []),
    }
    about = {"about": {"@id": "./"}, "conformsTo": {"@id": CRATE}}
    graph = [
        {"@id": NAME, "@type": "CreativeWork", **about},
        {name: value for name, value in dataset.items() if value},
        {"@id": address, "@type": "CreativeWork", "name": licence or "No licence was stated"},
        *people.values(),
        *(_file(path, text) for path, text in content.items()),
    ]
    return {"@context": f"{CRATE}/context", "@graph": graph}


def _references(identifiers: Iterable[str]) -> list[Entity]:
    return [{"@id": identifier} for identifier in identifiers]


def _people(config: Mapping[str, Any]) -> Iterator[Entity]:
    """The authors, by ORCID where they have one, and organisations."""
    for number, author in enumerate(inputs.authors(config), 1):
        identifier = f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{number}"
        person: Entity = {"@id": identifier, "@type": "Person", "name": author.name}
        if author.affiliation:
            home = _organisation(author.affiliation)
            yield home
            person["affiliation"] = {"@id": home["@id"]}
        yield person
    if config.get("publisher"):
        yield _organisation(config["publisher"])


def _organisation(name: str) -> Entity:
    return {"@id": f"#{quote(name, safe='')}", "@type": "Organization", "name": name}


def _file(path: str, content: bytes) -> Entity:
    return {
        "@id": quote(path),
        "@type": "File",
        "name": path,
        "encodingFormat": _KINDS.guess_type(path)[0] or "text/plain",
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
