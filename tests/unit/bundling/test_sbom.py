"""The bill of materials: valid CycloneDX, and it names what is really here."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from peakmark.bundling import sbom
from peakmark.resources import ROOT

KERNELS = ROOT / "build" / "kernels"
WHEN = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture(scope="module")
def text() -> str:
    return sbom.make(KERNELS, WHEN)


def test_it_is_valid_under_the_schema(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    broken = json.loads(text)
    broken["components"][0]["type"] = "thing"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(broken)) is not None


def test_packages_kernels_and_tools_are_named_with_their_versions(text: str) -> None:
    components = {one["bom-ref"]: one for one in json.loads(text)["components"]}
    assert f"pkg:pypi/numpy@{metadata.version('numpy')}" in components
    digest = hashlib.sha256((KERNELS / "cpubench").read_bytes()).hexdigest()
    assert components["kernel:cpubench"]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    if shutil.which("fio") == "/usr/bin/fio":
        assert components["tool:fio"]["purl"].startswith("pkg:deb/debian/fio@")


def test_the_same_installation_gives_the_same_text(text: str) -> None:
    assert sbom.make(KERNELS, WHEN) == text
    assert "tool:fio" not in sbom.make(KERNELS, WHEN, {"fio": False})


def test_it_says_nothing_of_this_machine(text: str) -> None:
    import socket

    assert str(Path.home()) not in text
    assert f'"{socket.gethostname()}"' not in text
