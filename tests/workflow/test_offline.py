"""The archive for machines without a network, installed and run in a namespace that has none."""

import os
import subprocess
import sys

import pytest
from tests.checkout import LIMIT_S, ROOT, TINY
from tests.wheel import Installation

HIDE = 'ip link set lo up; for gcc in $(type -ap gcc); do mount --bind /dev/null "$gcc"; done'
ALONE = ["unshare", "--net", "--mount", "bash", "-c", f'{HIDE}; exec "$@"', "bash"]
"""A network of its own with the loopback interface and no route; and no compiler."""


@pytest.mark.packages
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace as root")
def test_an_archive_is_installed_and_measures_without_a_network(tmp_path):
    argv = [sys.executable, str(ROOT / "dev/offline.py"), "--folder", str(tmp_path)]
    subprocess.run(argv, check=True, timeout=2 * LIMIT_S)
    (path,) = tmp_path.glob("*.tar")
    subprocess.run(["tar", "-xf", path, "-C", tmp_path], check=True)
    folder = path.with_suffix("")
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    installed = Installation(work, work / ".venv", home)
    install = [*ALONE, "sh", str(folder / "install.sh")]
    python = {"PYTHON": sys.executable}

    names = folder / "packages.txt"
    text = names.read_text()
    names.write_text("damaged")
    refused = installed.run(*install, env=python)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [f"{names} is damaged: copy the archive again"]
    names.write_text(text)

    done = installed.run(*install, env=python, limit_s=3 * LIMIT_S)
    assert done.returncode == 0, done.stderr
    config = installed.write_config("tiny.yaml", TINY)
    done = installed.run(*ALONE, "peakmark", "run", config.name, limit_s=2 * LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert (work / "results/tiny/report.pdf").is_file()
