"""A campaign copied to another folder with nothing but what its report needs; texts may be replaced
on the way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.config import inputs
from peakmark.errors import RecordError
from peakmark.formatting import mapped
from peakmark.storage import decisions, planfile, records
from peakmark.storage.results import Results, StoredRecord

Replace = Callable[[str], str]
"""What every text of a copied campaign passes through: values in JSON files, raw outputs, parts of
paths.
"""


def copy(results: Results, target: Path, replace: Replace | None = None) -> list[str]:
    """Plan, configuration, facts, records, raw outputs and the files that the configuration names,
    below ``target``.

    With ``replace`` all of them are rewritten, and the checksums in the records are those of the
    rewritten outputs. Returns the POSIX paths written, sorted. Errors: RecordError when a raw
    output is missing or is not what its record says; ConfigError for a file that the configuration
    names and that is not there.
    """
    written: list[str] = []

    def text(name: str) -> str:
        return name if replace is None else "/".join(replace(part) for part in name.split("/"))

    def put(name: str, content: bytes) -> None:
        place = files.below(target, text(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        written.append(text(name))

    def put_json(name: str) -> None:
        where = results.directory / name
        if replace is None:
            put(name, files.read_bytes(where))
            return
        try:
            put(name, dump(mapped(files.read_json(where), replace)).encode())
        except ValueError as error:
            raise RecordError(f"{where} is damaged ({error})", planfile.ANEW) from error

    def put_known(name: str, known: Mapping[str, Any], **changed: Any) -> None:
        """A file whose content is known: as it is, or without the names in it."""
        if replace is None:
            put_json(name)
        else:
            put(name, records.text_of({**mapped(known, replace), **changed}).encode())

    put_json("plan.json")
    if (results.directory / "config.json").is_file():
        put_json("config.json")
    for node, known in results.facts.items():
        put_known(f"machine/{node}.json", known)
    # Decisions on how often rows are repeated: without them spared cells would look missing.
    for path in sorted((results.directory / decisions.FOLDER).glob("*.json")):
        put_json(f"{decisions.FOLDER}/{path.name}")
    for record in (*results.records, *results.attempts):
        digests = {}
        for name, original in raw_outputs(results, record):
            content = original
            if replace is not None:
                content = replace(content.decode("utf-8", "surrogateescape")).encode(
                    "utf-8", "surrogateescape"
                )
            digests[text(name)] = hashlib.sha256(content).hexdigest()
            put(f"{record.path.rpartition('/')[0]}/{name}", content)
        put_known(record.path, record.data, raw=digests)
    section = results.config.get("report") or {}
    for name, path in inputs.collect(results.directory, section):
        put(name, files.read_bytes(path))
    index = inputs.index(section)
    if index:
        put(inputs.INDEX, dump(index if replace is None else mapped(index, replace)).encode())
    return sorted(written)


def raw_outputs(results: Results, record: StoredRecord) -> list[tuple[str, bytes]]:
    """Name beside the record and content of each raw output. Errors: RecordError when one is
    missing or was changed.
    """
    outputs = []
    folder = (results.directory / record.path).parent
    for name, digest in sorted(record.data["raw"].items()):
        path = folder / name
        try:
            content = files.read_bytes(files.below(folder, name))
        except OSError as error:
            raise RecordError(
                f"the raw output {path} cannot be read ({error.strerror}): put it back, or move its record "
                f"{results.directory / record.path} away and run the campaign again to measure this cell anew"
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise RecordError(f"the raw output {path} is not as it was written", records.AGAIN)
        outputs.append((name, content))
    return outputs


def dump(value: Any) -> str:
    """JSON as the plan is written."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
