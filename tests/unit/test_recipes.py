"""Recipes for package managers have the version and the dependencies of the package."""

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location

import pytest

import peakmark
from peakmark.resources import ROOT
from peakmark.tools import references

ENVS = ROOT / "envs"
RECIPES = ["spack/package.py", "conda/recipe.yaml", "peakmark-1.0.0-foss-2026.1.eb", "peakmark.def"]
WHOLE = RECIPES[:2]
"""Recipes that name every dependency, not the bundles that hold some."""


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_the_version(name):
    assert f"{peakmark.__version__}" in (ENVS / name).read_text()


@pytest.mark.parametrize("name", WHOLE)
def test_a_recipe_has_every_dependency(name):
    """With its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ENVS / name).read_text()
    for wanted in project["dependencies"]:
        package, relation, version = re.split(r"([=<>]=)", wanted)
        conda = rf"{package}(-minimal|-base|-py)? {relation}{re.escape(version)}\n"
        spack = rf'"(py-)?{package}@{re.escape(version)}:?"'
        assert re.search(f"{conda}|{spack}", text), wanted


def test_the_offline_archive_names_the_packages_of_every_reference_tool():
    specification = spec_from_file_location("offline", ENVS / "offline.py")
    assert specification and specification.loader
    offline = module_from_spec(specification)
    specification.loader.exec_module(offline)
    lines = {words[0]: words[1:] for words in map(str.split, offline.packages().splitlines())}
    for name, tool in references().items():
        names = [tool.package, tool.fedora, tool.opensuse, tool.spack]
        assert lines.get(name) == ([each or "-" for each in names] if any(names) else None)
    assert lines["compiler"] == ["gcc"] * 4
