"""JSON schemas are made from the types; that of a configuration is where the catalogue looks."""

import os

import jsonschema
import pytest
import schemas
import yaml

from peakmark import yamlfile
from peakmark.config.layouts import Layout
from peakmark.config.types import Campaign, Site
from peakmark.resources import ROOT

FILES = {
    "config": (Campaign, ROOT / "config" / "presets"),
    "site": (Site, ROOT / "config" / "sites"),
    "layout": (Layout, ROOT / "reports" / "layouts"),
}


@pytest.mark.parametrize(("name", "kind"), [("config", Campaign), ("site", Site)])
def test_the_published_schema_is_that_of_the_type(name, kind):
    path, text = ROOT / schemas.path(name), schemas.as_yaml(name, kind)
    if os.environ.get("PEAKMARK_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text, "PEAKMARK_GOLDEN=1 pytest test_schemas.py"
    assert yaml.safe_load(text) == schemas.schema(name, kind)


def test_every_key_of_a_configuration_is_described():
    whole = schemas.schema("config", Campaign)
    for part in (whole, whole["$defs"]["Report"]):
        for name, key in part["properties"].items():
            assert key.get("description"), name


@pytest.mark.parametrize("name", FILES)
def test_what_is_shipped_fits_the_published_schema(name):
    """For editors that check a file by it."""
    kind, folder = FILES[name]
    validator = jsonschema.Draft202012Validator(schemas.schema(name, kind))
    for path in folder.glob("*.yaml"):
        assert list(validator.iter_errors(yamlfile.read(path))) == [], path
