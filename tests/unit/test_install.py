"""envs/install.sh as a newcomer meets it; DPKG_ADMINDIR is empty: every package is missing."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests import mounts
from tests.programs import executable, path_without

from peakmark.resources import ROOT

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
NO_INDEX = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/",
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_RETRIES": "0",
}
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no dpkg")


def checkout_in(folder):
    """What install.sh reads, in a folder that everybody may write."""
    for name in ("dev", "envs", "src/peakmark/tools/programs"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md", "Snakefile"):
        shutil.copy(ROOT / name, folder)
    for parent in (folder, *folder.parents):
        if str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o755)
    folder.chmod(0o777)
    return folder


@pytest.fixture
def checkout(tmp_path):
    return checkout_in(tmp_path / "a checkout")


def programs(folder, scripts):
    """A folder of executable scripts."""
    for name, text in scripts.items():
        executable(folder / name, text)
    return str(folder)


def install(checkout, *words, front=None, **env):
    base = {"PATH": SYSTEM, "HOME": str(checkout), "LC_ALL": "C.UTF-8"}
    argv = [*(front or []), "bash", str(checkout / "envs" / "install.sh"), *words]
    nothing = subprocess.DEVNULL
    return subprocess.run(
        argv, env=base | env, stdin=nothing, capture_output=True, text=True, timeout=600
    )


def refusal(done):
    """The one line with which it ended."""
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def empty_dpkg(folder):
    (folder / "dpkg").mkdir(mode=0o755)
    (folder / "dpkg" / "status").touch()
    return str(folder / "dpkg")


@needs_dpkg
def test_a_user_without_rights_gets_a_command_to_paste(checkout, tmp_path):
    path = str(path_without(tmp_path / "bin", SYSTEM, {"sudo", "gcc", "cc"}))
    front = AS_NOBODY if os.getuid() == 0 else []
    done = install(checkout, "run", front=front, PATH=path, DPKG_ADMINDIR=empty_dpkg(tmp_path))
    assert "gcc;" in refusal(done)
    lines = [line.partition("to install them: ")[2] for line in done.stdout.splitlines()]
    (command,) = filter(None, lines)
    program, option, script = shlex.split(command)
    assert (program, option) == ("su", "-c")  # without a sudo here it is not named
    packages = shlex.split(script)
    assert packages[:3] == ["apt-get", "update", "&&"]
    assert {"gcc", "hpcc", "fio"} <= set(packages)
    assert "iozone3" not in packages  # in non-free, the whole command would fail by it
    assert "iozone3" in done.stdout and "envs/install.sh" in done.stdout
    assert not (checkout / ".venv").exists()  # said before anything is installed


def test_no_network_is_one_sentence_and_an_old_environment_moved_aside(checkout):
    shebang = "#!/home/jo/old/.venv/bin/python3\n"
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "notes.txt").write_text("of the user")
    pip = Path(programs(checkout / ".venv" / "bin", {"pip": shebang})) / "pip"
    front = ["unshare", "--net"] if os.getuid() == 0 else []
    done = install(checkout, front=front, **NO_INDEX)
    line = refusal(done)
    assert "package index" in line and "build/install/pip.log" in line
    assert (checkout / "build/install/pip.log").stat().st_size > 0
    assert str(checkout.resolve()) in pip.read_text()
    (aside,) = checkout.glob(".venv-*")
    assert (aside / "notes.txt").read_text() == "of the user"
    assert aside.name in done.stdout


@pytest.mark.skipif(os.getuid() != 0, reason="root alone can be a user without rights")
def test_a_checkout_of_another_user_is_said_with_what_its_owner_does(checkout):
    checkout.chmod(0o755)
    done = install(checkout, front=AS_NOBODY)
    assert done.returncode == 1 and not (checkout / ".venv").exists()
    said, command = done.stderr.splitlines()
    assert f"may not write into {checkout}" in said and "make setup kernels" in said
    assert f"--snakefile {checkout}/Snakefile" in command


def test_a_full_folder_of_temporary_files_is_said(checkout, tmp_path, own_mounts):
    with mounts.tmpfs(tmp_path / "full", "size=64k") as full:
        done = install(checkout, TMPDIR=str(full))
    assert f"temporary files cannot be written to {full}: it is full" in refusal(done)
