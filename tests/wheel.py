"""peakmark as `pip install` leaves it, measuring in an empty folder with an empty home."""

import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.checkout import LIMIT_S, ROOT, Checkout

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
OFFLINE = ["--no-index", "--no-deps"]


def build(folder: Path) -> Path:
    """Build the wheel with the build backend of the tests' environment. Returns its path."""
    argv = [*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(argv, check=True, timeout=LIMIT_S)
    (wheel,) = folder.glob("peakmark-*.whl")
    return wheel


@dataclass
class Installation(Checkout):
    """An empty folder, and the environment and home of the user who measures in it."""

    environment: Path
    home: Path

    @classmethod
    def make(cls, folder: Path) -> "Installation":
        """The wheel without its dependencies, which are those of the tests' environment."""
        installation = cls._empty(folder, sys.executable)
        installation.install(*OFFLINE)
        packages = sysconfig.get_path("purelib")
        (installation.packages / "dependencies.pth").write_text(packages)
        return installation

    @classmethod
    def resolved(cls, folder: Path, python: str, *constraints: str) -> "Installation":
        """The wheel with the dependencies that pip finds, as a user of this Python has them."""
        installation = cls._empty(folder, python)
        installation.install(*constraints)
        return installation

    @classmethod
    def _empty(cls, folder: Path, python: str) -> "Installation":
        installation = cls(folder / "work", folder / "environment", folder / "home")
        for path in (installation.directory, installation.home):
            path.mkdir(parents=True)
        argv = [python, "-m", "venv", "--without-pip", str(installation.environment)]
        subprocess.run(argv, check=True, timeout=LIMIT_S)
        return installation

    def install(self, *words: str) -> None:
        """Install the wheel of this checkout into the environment."""
        wheel = str(build(self.environment.parent))
        python = str(self.environment / "bin" / "python")
        argv = [*PIP, "--python", python, "install", *words, wheel]
        subprocess.run(argv, check=True, timeout=3 * LIMIT_S)

    @property
    def packages(self) -> Path:
        (packages,) = self.environment.glob("lib/python*/site-packages")
        return packages

    @property
    def variables(self) -> dict[str, str]:
        """Environment of a user's commands: nothing leads to the checkout or to another home."""
        path = f"{self.environment / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        home = {"HOME": str(self.home), "TMPDIR": str(self.home.parent)}
        return {"PATH": path, "PYTHONPATH": "", **home}

    def _environment(self, more: dict[str, str] | None) -> dict[str, str]:
        return {**self.variables, **(more or {})}
