"""The published JSON schemas in ``config/schema`` are those of the types."""

import inspect
import json
import os
import re

import jsonschema
import msgspec
import pytest

from peakmark import yamlfile
from peakmark.bundle.export import ExportRow
from peakmark.config import types
from peakmark.config.layouts import Layout
from peakmark.config.types import Campaign, Site
from peakmark.resources import ROOT
from peakmark.storage.types import Facts, Record

TYPES = {
    "config": Campaign, "site": Site, "layout": Layout, "record": Record, "machine": Facts,
    "export": ExportRow,
}  # fmt: skip
FOLDER = ROOT / "config" / "schema"
FILES = {
    "config": ROOT / "config" / "presets",
    "site": ROOT / "config" / "sites",
    "layout": ROOT / "reports" / "layouts",
}


def schema(name):
    """The published schema of that name."""
    return json.loads((FOLDER / f"{name}.schema.json").read_text())


def generated(name):
    """The text of a schema: each property with what its type's docstring says below Attributes."""
    (_,), known = msgspec.json.schema_components([TYPES[name]])
    for title, part in known.items():
        summary, _, keys = inspect.cleandoc(part.get("description", "")).partition("\n\n")
        part["description"] = " ".join(summary.split())
        if hasattr(kind := getattr(types, title, None), "__total__"):  # in the order of the type
            part["properties"] = {key: part["properties"][key] for key in kind.__annotations__}
            part["additionalProperties"] = False
        for key, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", keys, re.MULTILINE):
            part["properties"][key]["description"] = " ".join(text.split())
    whole = known.pop(TYPES[name].__name__) | {"title": f"peakmark {name}", "$defs": known}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | whole, indent=1).replace("\\\\Z", "$") + "\n"


@pytest.mark.parametrize("name", TYPES)
def test_the_published_schema_is_that_of_the_type(name):
    path = FOLDER / f"{name}.schema.json"
    if os.environ.get("PEAKMARK_GOLDEN"):
        path.write_text(generated(name))
    assert path.read_text() == generated(name), "PEAKMARK_GOLDEN=1 pytest test_schemas.py"


def test_every_key_of_a_configuration_is_described():
    for part in (schema("config"), schema("config")["$defs"]["Report"]):
        for name, key in part["properties"].items():
            assert key.get("description"), name


@pytest.mark.parametrize("name", FILES)
def test_what_is_shipped_fits_the_published_schema(name):
    """For editors that check a file by it."""
    validator = jsonschema.Draft202012Validator(schema(name))
    for path in FILES[name].glob("*.yaml"):
        assert list(validator.iter_errors(yamlfile.read(path))) == [], path
