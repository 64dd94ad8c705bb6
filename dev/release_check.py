"""Check that this checkout can be released (make release-check), and publish nothing.

It builds the source archive, and the wheel from that archive, in a temporary folder. It prints all
faults, each in a sentence, and ends with 1 if there is one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
TWINE = ROOT / "build" / "release" / "bin" / "twine"
"""Program that the Makefile installs."""
HELD = {
    "Snakefile": "peakmark/checkout/Snakefile",
    "config": "peakmark/checkout/config",
    "docs/kernels.md": "peakmark/checkout/docs/kernels.md",
    "envs/requirements.txt": "peakmark/checkout/envs/requirements.txt",
    "local": "peakmark/checkout/local",
    "profiles": "peakmark/checkout/profiles",
    "reports": "peakmark/checkout/reports",
    "rules": "peakmark/checkout/rules",
    "slurm": "peakmark/checkout/slurm",
    "src/kernels": "peakmark/checkout/src/kernels",
    "src/peakmark": "peakmark",
    "src/snakemake_executor_plugin_peakmark": "snakemake_executor_plugin_peakmark",
    "src/snakemake_logger_plugin_peakmark": "snakemake_logger_plugin_peakmark",
}
"""File or folder of the checkout -> its place in the wheel. The wheel holds nothing else."""
PACKAGE = "peakmark"
PLUGINS = ("snakemake-executor-plugin-peakmark", "snakemake-logger-plugin-peakmark")
"""Names under which users would look for the plugins, which are part of the package."""
URLS = ("Repository", "Documentation", "Issues", "Changelog")
"""Addresses that a published package states, as keys of [project.urls] in pyproject.toml."""
HEADING = re.compile(r"^## (\d\S*) - (\S+)$", re.MULTILINE)
"""A heading of CHANGELOG.md: version and date."""
SHOWN = 3
"""Most files that a sentence names."""


# -- what the files of the checkout say


def version_faults(version: str, changelog: str, citation: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each file that states another version, or another date of it.

    Args:
        version: of the package.
        changelog: text of CHANGELOG.md.
        citation: content of CITATION.cff.
    """
    newest = HEADING.search(changelog)
    if newest is None:
        yield "CHANGELOG.md has no heading such as '## 1.0.0 - 2026-11-23': write one."
        return
    _, _, unreleased = changelog[: newest.start()].partition("## Unreleased\n")
    if unreleased.strip():
        yield (
            "CHANGELOG.md has changes under Unreleased: move them below a heading with the new version and the date, "
            "and state both in src/peakmark/__init__.py and CITATION.cff."
        )
    heading, date = newest.groups()
    if version != heading:
        yield (
            f"src/peakmark/__init__.py states version {version}, and the newest heading of CHANGELOG.md {heading}: "
            "state the same in both."
        )
    for key, wanted in (("version", heading), ("date-released", date)):
        stated = citation.get(key)
        if str(stated) != wanted:
            yield f"CITATION.cff has {key} {stated}, and CHANGELOG.md {wanted}: write '{key}: {wanted}' into CITATION.cff."


def metadata_faults(project: Mapping[str, Any], citation: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each part of the metadata that is missing or differs from CITATION.cff.

    Args:
        project: table ``project`` of pyproject.toml.
        citation: content of CITATION.cff.
    """
    cited = [author_name(author) for author in citation["authors"]]
    packaged = [author["name"] for author in project["authors"]]
    if cited != packaged:
        yield (
            f"the authors of pyproject.toml are {', '.join(packaged)}, and those of CITATION.cff {', '.join(cited)}: "
            "state the same in both."
        )
    urls = project.get("urls", {})
    lacking = [name for name in URLS if not urls.get(name)]
    if lacking:
        yield f"[project.urls] in pyproject.toml lacks {', '.join(lacking)}: fill them in there."
    repository = urls.get("Repository")
    if repository and citation.get("repository-code") != repository:
        yield f"CITATION.cff lacks the repository: write 'repository-code: {repository}' into it."


def author_name(author: Mapping[str, str]) -> str:
    """Return the name of an author in CITATION.cff, who is a person or an organisation."""
    if "name" in author:
        return author["name"]
    return f"{author['given-names']} {author['family-names']}"


# -- the archives


def expected_names(tracked: Iterable[str]) -> set[str]:
    """Return the names that the wheel must have, of the files that git tracks."""
    names = set()
    for path in tracked:
        for folder, place in HELD.items():
            if path == folder or path.startswith(f"{folder}/"):
                names.add(place + path.removeprefix(folder))
    return names


def content_faults(packed: Iterable[str], expected: set[str]) -> Iterator[str]:
    """Yield a sentence on the files that the wheel lacks, and one on those that it must not hold."""
    held = {name for name in packed if ".dist-info/" not in name}
    lacking = sorted(expected - held)
    if lacking:
        yield f"the wheel lacks {shown(lacking)}: see [tool.hatch.build.targets.wheel] in pyproject.toml."
    foreign = sorted(held - expected)
    if foreign:
        yield f"the wheel holds {shown(foreign)}, which git does not track or users do not need: remove it, or leave it out in pyproject.toml."


def shown(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    text = ", ".join(names[:SHOWN])
    if len(names) > SHOWN:
        text += f" and {len(names) - SHOWN} more"
    return text


def build(folder: Path) -> list[Path]:
    """Build the source archive, and the wheel from it. Returns both paths.

    Raises:
        SystemExit: one cannot be built.
    """
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)])
    (source,) = folder.glob("*.tar.gz")
    words = ["wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    run([*PIP, *words, "--wheel-dir", str(folder), str(source)])
    (wheel,) = folder.glob("*.whl")
    return [source, wheel]


def run(argv: Sequence[str]) -> str:
    """Run a command in the checkout, and return its output.

    Raises:
        SystemExit: it fails.
    """
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"release-check: '{' '.join(argv)}' failed: {last_line(done)}")
    return done.stdout


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a command printed."""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode} and printed nothing"


def twine_faults(archives: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence for each archive whose metadata or description an index would refuse."""
    for path in archives:
        argv = [str(TWINE), "--no-color", "check", "--strict", str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield f"'twine check --strict' refuses {path.name}: {last_line(done)}"


# -- the package index


def published(name: str) -> list[str]:
    """Return the versions of a package in the index that pip is configured with."""
    words = ["index", "versions", "--pre", "--ignore-requires-python", name]
    done = subprocess.run([*PIP, *words], capture_output=True, text=True, check=False)
    line = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    return line[1].split(", ") if line else []


def name_faults(
    published_versions: Mapping[str, Sequence[str]], version: str, own: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each name that somebody else has, or if this version is published already.

    Args:
        published_versions: name -> its versions in the index.
        version: of this checkout.
        own: versions of CHANGELOG.md.
    """
    for name, versions in published_versions.items():
        others = list(versions)
        if name == PACKAGE:
            if version in versions:
                yield f"pip's index has {name} {version} already: raise the version."
            others = [each for each in versions if each not in own]
        if others:
            yield f"pip's index has a package {name} of somebody else ({shown(others)}): choose another name."


def installation_faults(wheel: Path, version: str, folder: Path) -> Iterator[str]:
    """Yield a sentence for each step that fails for a user: installing the wheel, version and doctor."""
    environment = folder / "environment"
    home = folder / "home"
    home.mkdir()
    venv.create(environment, with_pip=False)
    python = str(environment / "bin" / "python")
    argv = [*PIP, "--python", python, "install", "--quiet", str(wheel)]
    done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"the wheel cannot be installed into a new environment: {last_line(done)}"
        return
    variables = {"HOME": str(home), "PATH": f"{environment / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"}
    for words, wanted in (("--version", version), ("doctor", "ready: ")):
        argv = [python, "-m", "peakmark", words]
        done = subprocess.run(
            argv, cwd=home, env=variables, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or wanted not in done.stdout:
            yield f"'peakmark {words}' fails in a new environment: {last_line(done)}"


def main() -> None:
    """Check everything, and print all faults."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()
    version = run([sys.executable, "-m", "hatchling", "version"]).strip()
    faults = [*version_faults(version, changelog, citation), *metadata_faults(project, citation)]
    with tempfile.TemporaryDirectory() as name:
        faults += archive_faults(Path(name), version, changelog)
    for fault in faults:
        print(f"release-check: {fault}", file=sys.stderr)
    if faults:
        number = f"{len(faults)} reason{'s' * (len(faults) > 1)}"
        sys.exit(f"release-check: peakmark {version} cannot be released yet, for {number}")
    print(f"release-check: peakmark {version} can be released")


def archive_faults(folder: Path, version: str, changelog: str) -> list[str]:
    """Build the archives in a folder, and return the faults of their content, names and installation."""
    print(f"release-check: builds and checks peakmark {version}", flush=True)
    source, wheel = build(folder)
    faults = list(twine_faults([source, wheel]))
    expected = expected_names(run(["git", "ls-files"]).splitlines())
    with zipfile.ZipFile(wheel) as archive:
        faults += content_faults(archive.namelist(), expected)
    print("release-check: asks pip's index for the names", flush=True)
    if not published("pip"):
        unreachable = "pip's index does not answer, so that names and installation are not checked: see the network and 'pip config list'."
        return [*faults, unreachable]
    versions = {name: published(name) for name in (PACKAGE, *PLUGINS)}
    own = [heading for heading, _ in HEADING.findall(changelog)]
    faults += name_faults(versions, version, own)
    print("release-check: installs the wheel into a new environment", flush=True)
    faults += installation_faults(wheel, version, folder)
    return faults


if __name__ == "__main__":
    main()
