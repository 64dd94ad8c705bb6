"""A software bill of materials, CycloneDX 1.6 as JSON: Python packages, own kernels, reference
tools, libraries.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from peakmark.errors import PeakmarkError
from peakmark.instruments import REGISTRY
from peakmark.measuring import build
from peakmark.resources import version

SPECIFICATION = "1.6"
MEDIA_TYPE = "application/vnd.cyclonedx+json"
ASK_S = 10.0
MIT = [{"license": {"id": "MIT"}}]
Component = dict[str, Any]


def make(
    kernels: Path = build.BUILD,
    when: datetime | None = None,
    tools: Mapping[str, Any] | None = None,
) -> str:
    """The bill of materials of this installation as JSON text.

    kernels  folder of the compiled kernels
    when     time that it states; default now
    tools    configured paths of reference tools, by instrument name; False leaves one out
    The same installation and time give the same text.
    """
    components = [*_packages(), *_kernels(kernels), *_tools(tools or {}), *_system()]
    components = [
        component for component in components if component["bom-ref"] != "pkg:pypi/peakmark"
    ]
    components.sort(key=lambda component: str(component["bom-ref"]))
    unique = {component["bom-ref"]: component for component in components}
    own = _program("peakmark", "peakmark", version(), licenses=MIT)
    stamp = (when or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {"timestamp": stamp, "component": own},
        "components": list(unique.values()),
        "dependencies": [
            {"ref": "peakmark", "dependsOn": sorted(unique)},
            *({"ref": name} for name in sorted(unique)),
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return (
        json.dumps({**body, "serialNumber": f"urn:uuid:{number}"}, indent=1, sort_keys=True) + "\n"
    )


def _program(reference: str, name: str, number: str, **more: Any) -> Component:
    return {"type": "application", "bom-ref": reference, "name": name, "version": number, **more}


def _packages() -> Iterator[Component]:
    """Python packages of this environment; requirements.txt says with which hashes they were
    installed.
    """
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if not name or name.lower() == "peakmark":
            continue
        normal = name.lower().replace("_", "-").replace(".", "-")
        licence = (distribution.metadata.get_all("License-Expression") or [None])[0]
        purl = f"pkg:pypi/{normal}@{quote(distribution.version)}"
        licensed = {"licenses": [{"expression": licence}]} if licence else {}
        yield _program(purl, name, distribution.version, purl=purl, **licensed) | {
            "type": "library"
        }


def _kernels(folder: Path) -> Iterator[Component]:
    for program in build.programs(folder):
        path = Path(program)
        if path.is_file():
            digest = {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
            yield _program(
                f"kernel:{path.name}", path.name, version(), hashes=[digest], licenses=MIT
            )


def _tools(configured: Mapping[str, Any]) -> Iterator[Component]:
    """Reference tools found here: version by their own word, the Debian package if they are from
    one.
    """
    for name, instrument in sorted(REGISTRY.items()):
        choice = configured.get(name)
        if not instrument.reference or choice is False:
            continue
        path = instrument.on_path(str(choice) if choice else None)
        if path is None:
            continue
        try:
            tool = instrument.find(path)
        except PeakmarkError:
            continue
        known = {"properties": [{"name": "peakmark:instrument", "value": name}]}
        yield _program(f"tool:{name}", tool.name, tool.version, **known) | _debian(path).known


def _system() -> Iterator[Component]:
    """What the kernels and tools stand on: the C library and the compiler, where they are Debian
    packages.
    """
    for program, name in (("/usr/bin/gcc", "gcc"), ("/bin/sh", "sh"), ("/usr/bin/make", "make")):
        package = _debian(str(Path(program).resolve())) if Path(program).exists() else _Package()
        if package.name:
            yield _program(f"system:{name}", quote(package.name), package.version) | package.known


class _Package(NamedTuple):
    """A Debian package, empty where a file is of none."""

    name: str = ""
    version: str = ""

    @property
    def known(self) -> Component:
        """``purl`` and version."""
        purl = f"pkg:deb/debian/{quote(self.name)}@{quote(self.version)}"
        return {"purl": purl, "version": self.version} if self.name else {}


def _debian(path: str) -> _Package:
    """The Debian package that holds a file."""
    for candidate in dict.fromkeys([path, str(Path(path).resolve()), path.removeprefix("/usr")]):
        owner = _printed(["dpkg-query", "-S", candidate])
        if owner:
            package = owner.splitlines()[0].partition(": ")[0].partition(":")[0].split(",")[0]
            number = _printed(["dpkg-query", "-W", "-f", "${Version}", package])
            if number:
                return _Package(package, number)
    return _Package()


def _printed(argv: list[str]) -> str | None:
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
