"""What make release-check asks of a release, and the description that a package index shows."""

import subprocess
import zipfile
from importlib.util import module_from_spec, spec_from_file_location

import pytest
import yaml
from tests import wheel

from peakmark.resources import ROOT

CHANGELOG = (
    "# Changelog\n\n## Unreleased\n{}\n## 1.2.0 - 2026-12-01\n\n- New.\n\n## 1.1.0 - 2026-11-01\n"
)
CITATION = {
    "authors": [{"given-names": "Ada", "family-names": "Byron"}, {"name": "The others"}],
    "version": "1.2.0",
    "date-released": "2026-12-01",
    "repository-code": "https://host/group/peakmark",
}
PROJECT = {
    "authors": [{"name": "Ada Byron"}, {"name": "The others"}],
    "urls": {
        "Repository": "https://host/group/peakmark",
        "Documentation": "https://host/docs",
        "Issues": "https://host/issues",
        "Changelog": "https://host/changes",
    },
}


def load(name):
    """A module of envs/, which is no package."""
    specification = spec_from_file_location(name, ROOT / "envs" / f"{name}.py")
    assert specification and specification.loader
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


check = load("release_check")


def test_a_release_states_one_version_and_date():
    assert list(check.version_faults("1.2.0", CHANGELOG.format(""), CITATION)) == []


@pytest.mark.parametrize(
    ("version", "unreleased", "citation", "words"),
    [
        ("1.1.0", "", {}, "states version 1.1.0, and the newest heading of CHANGELOG.md 1.2.0"),
        ("1.2.0", "- More.\n", {}, "changes under Unreleased"),
        ("1.2.0", "", {"version": "1.1.0"}, "write 'version: 1.2.0'"),
        ("1.2.0", "", {"date-released": None}, "write 'date-released: 2026-12-01'"),
    ],
)
def test_another_version_or_date_is_a_fault(version, unreleased, citation, words):
    changelog = CHANGELOG.format(unreleased)
    (fault,) = check.version_faults(version, changelog, {**CITATION, **citation})
    assert words in fault


def test_addresses_and_authors_are_stated():
    assert list(check.metadata_faults(PROJECT, CITATION)) == []
    (fault,) = check.metadata_faults({"authors": PROJECT["authors"]}, CITATION)
    assert "lacks Repository, Documentation, Issues, Changelog" in fault
    uncited = {**CITATION, "repository-code": None}
    (fault,) = check.metadata_faults(PROJECT, uncited)
    assert "write 'repository-code: https://host/group/peakmark'" in fault
    (fault,) = check.metadata_faults({**PROJECT, "authors": [{"name": "Ada"}]}, CITATION)
    assert "Ada Byron, The others" in fault


def test_the_authors_are_those_of_the_citation():
    project = check.tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert not [fault for fault in check.metadata_faults(project, citation) if "authors" in fault]


def test_the_wheel_holds_what_users_need_and_nothing_else(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout: what belongs to it is unknown")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    expected = check.expected_names(listed.stdout.splitlines())
    assert "peakmark/checkout/src/kernels/gpu/fp64.ptx" in expected
    with zipfile.ZipFile(wheel.build(tmp_path)) as archive:
        packed = archive.namelist()
    assert list(check.content_faults(packed, expected)) == []
    lost = [name for name in packed if not name.endswith(".ptx")]
    faults = list(check.content_faults([*lost, "tests/x.py", "results/quick/plan.json"], expected))
    assert "lacks peakmark/checkout/src/kernels/gpu/" in faults[0] and " more: " in faults[0]
    assert "holds results/quick/plan.json, tests/x.py" in faults[1]


def test_a_name_is_free_or_ours():
    own = ["1.2.0", "1.1.0"]
    assert list(check.name_faults({"peakmark": [], "plugin": []}, "1.2.0", own)) == []
    assert list(check.name_faults({"peakmark": ["1.1.0"]}, "1.2.0", own)) == []
    (fault,) = check.name_faults({"peakmark": ["1.2.0", "1.1.0"]}, "1.2.0", own)
    assert "has peakmark 1.2.0 already" in fault
    for name in ("peakmark", "plugin"):
        (fault,) = check.name_faults({name: ["0.9"]}, "1.2.0", own)
        assert f"a package {name} of somebody else (0.9)" in fault


def test_links_of_the_description_lead_into_the_repository():
    text = "![A](docs/a.png) [b](docs/b.md#c) [d](https://d) [e](#f)"
    made = load("description").with_absolute_links(text, "https://host/p")
    files = ("https://host/p/raw/HEAD/docs/a.png", "https://host/p/blob/HEAD/docs/b.md#c")
    assert made == f"![A]({files[0]}) [b]({files[1]}) [d](https://d) [e](#f)"
