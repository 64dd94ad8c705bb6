"""Build one archive from which peakmark is installed without a network (make offline).

It holds wheels for one version of Python and one platform, the kernels where that is the platform
of this machine, the sources, the names of packages that pip cannot bring, checksums and install.sh.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
REQUIREMENTS = {"requirements": "envs", "requirements-offline": "dev"}
"""Pinned requirements that an archive holds -> their folder."""
COPIED = {
    "offline-install.sh": "install.sh",
    "offline_check.py": "check.py",
}
"""File of this folder -> its name in the archive."""


def needed(text: str, python: str, machine: str) -> str:
    """The lines of a requirements file that this Python needs, without their conditions: pip would
    judge them by the Python that it runs in.
    """
    place = {"python_version": python, "python_full_version": f"{python}.0"}
    place |= {"platform_machine": machine, "sys_platform": "linux"}
    kept = []
    for entry in text.replace("\\\n", "").splitlines():
        words, *hashes = entry.split("    --hash=")
        requirement = Requirement(words)
        if requirement.marker is None or requirement.marker.evaluate(place):
            pinned = f"{requirement.name}{requirement.specifier}"
            kept.append(" ".join([pinned, *(f"--hash={value.strip()}" for value in hashes)]))
    return "\n".join(kept) + "\n"


def download(folder: Path, python: str, platforms: list[str]) -> None:
    """Put a wheel of each pinned package into a folder; what comes as source only is built here."""
    machine = "x86_64" if "x86_64" in platforms[0] else "aarch64"
    for name, source in REQUIREMENTS.items():
        path = folder / f"{name}.txt"
        path.write_text(needed((ROOT / source / f"{name}.txt").read_text(), python, machine))
        words = [
            "--no-deps",
            "--require-hashes",
            "--python-version",
            python,
            "--implementation",
            "cp",
        ]
        words += [word for platform in platforms for word in ("--platform", platform)]
        run("download", *words, "--dest", str(folder), "--requirement", str(path))
        path.unlink()
    for source in folder.glob("*.tar.gz"):
        build(folder, source)
        source.unlink()


def build(folder: Path, source: Path) -> None:
    """Build the wheel of a source into a folder.

    Raises:
        SystemExit: the wheel is only for the Python that builds it.
    """
    before = set(folder.glob("*.whl"))
    run("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    (made,) = set(folder.glob("*.whl")) - before
    if not made.name.endswith("-none-any.whl"):
        sys.exit(f"{source.name} has no wheel for this Python and platform: choose others")


def packages() -> str:
    """The names of packages that pip cannot bring; those of the reference tools are in their
    modules.
    """
    text = (ROOT / "envs" / "packages.txt").read_text()
    text += "\n# Reference tools: Debian, Ubuntu; Spack. Other distributions mostly have the same names.\n"
    for module in sorted((ROOT / "src/peakmark/tools/programs").glob("*.py")):
        fields = dict(re.findall(r'(?m)^    (\w+) = "(.+)"', module.read_text()))
        if fields.keys() & {"package", "spack"}:
            names = [fields.get(key, "-") for key in ("package", "spack")]
            text += " ".join([f"{fields['name']:<12}", *(f"{name:<21}" for name in names)]).rstrip()
            text += "\n"
    return text


def compile_kernels(folder: Path) -> None:
    """Compile the kernels into a folder, for machines without a compiler and its libraries."""
    with tempfile.TemporaryDirectory() as name:
        build = ["make", "-s", "-C", str(ROOT / "src/kernels"), f"BUILD={name}", "HAVE_LIBURING="]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        facts = Path(name) / "build.json"
        words = json.loads(facts.read_text())
        words["compiler"] += ", on the machine that made the archive"
        facts.write_text(json.dumps(words))
        folder.mkdir()
        for path in (facts, *Path(name).glob("*bench"), Path(name) / "up-to-date"):
            shutil.copy(path, folder)


def run(*words: str) -> None:
    """Run pip. Raises: SystemExit when it fails; it has said why."""
    if subprocess.run([*PIP, *words], check=False).returncode:
        sys.exit(f"pip {words[0]} failed")


def main() -> None:
    """Write FOLDER/peakmark-VERSION-PYTHON-PLATFORM.tar."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    machine = sysconfig.get_platform().rpartition("-")[2]
    usual = [f"manylinux_2_28_{machine}", f"manylinux_2_17_{machine}", f"manylinux2014_{machine}"]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=here, metavar="3.12", help=f"default {here}")
    parser.add_argument("--platform", nargs="+", default=usual, help="tags of wheels")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="default build")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        wheels = Path(name) / "wheels"
        wheels.mkdir()
        build(wheels, ROOT)
        (peakmark,) = wheels.iterdir()
        download(wheels, options.python, options.platform)
        if machine in options.platform[0]:
            compile_kernels(Path(name) / "kernels")
        sources = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
        subprocess.run([*sources, "--directory", name], cwd=ROOT, check=True)
        for own, copied in COPIED.items():
            shutil.copy(ROOT / "dev" / own, Path(name) / copied)
        (Path(name) / "packages.txt").write_text(packages())
        (Path(name) / "python").write_text(f"{options.python}\n")
        files = sorted(path for path in Path(name).rglob("*") if path.is_file())
        sums = [
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(name)}\n"
            for path in files
        ]
        (Path(name) / "SHA256SUMS").write_text("".join(sums))
        title = f"{peakmark.name.partition('-py3')[0]}-python{options.python}-{options.platform[0]}"
        target = options.folder / f"{title}.tar"
        target.parent.mkdir(exist_ok=True)
        with tarfile.open(target, "w") as archive:
            archive.add(name, arcname=title)
    print(f"{target}: {target.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    main()
