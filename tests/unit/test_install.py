"""envs/install.sh as a newcomer meets it: what is missing, folders that cannot be used, no network,
services that stay off.

dpkg is asked with an empty database of its own (DPKG_ADMINDIR), so that every package is missing.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from peakmark.resources import ROOT

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
NO_INDEX = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/",
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_RETRIES": "0",
}
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no dpkg")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="makes namespaces and mounts as root")


def checkout_in(folder: Path) -> Path:
    """What install.sh reads, in a folder that everybody may write."""
    for name in ("envs", "pyproject.toml", "src/peakmark/tools/programs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, folder / name)
    for one in (folder, *folder.parents):
        if str(one).startswith("/tmp/"):
            one.chmod(one.stat().st_mode | 0o755)
    folder.chmod(0o777)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return checkout_in(tmp_path / "a checkout")


def path_without(folder: Path, *names: str) -> str:
    """A PATH with all programs of this machine's but some; the environment's Python is not on it."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            if program.name not in names and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return str(folder)


def install(
    checkout: Path, *words: str, front: list[str] | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(checkout), "LC_ALL": "C.UTF-8"}
    argv = [*(front or []), "bash", str(checkout / "envs" / "install.sh"), *words]
    nothing = subprocess.DEVNULL
    return subprocess.run(
        argv, env=base | env, stdin=nothing, capture_output=True, text=True, timeout=600
    )


def empty_dpkg(folder: Path) -> str:
    (folder / "dpkg").mkdir()
    (folder / "dpkg" / "status").touch()
    (folder / "dpkg").chmod(0o755)
    return str(folder / "dpkg")


@needs_dpkg
def test_a_user_without_rights_gets_a_command_to_paste_and_the_needed_in_one_line(
    checkout: Path, tmp_path: Path
) -> None:
    path = path_without(tmp_path / "bin", "sudo", "gcc", "cc")
    front = AS_NOBODY if os.getuid() == 0 else []
    done = install(checkout, "run", front=front, PATH=path, DPKG_ADMINDIR=empty_dpkg(tmp_path))
    assert done.returncode == 1
    (command,) = (
        line.partition("to install them: ")[2]
        for line in done.stdout.splitlines()
        if "to install them" in line
    )
    words = shlex.split(command)
    assert words[:2] == ["su", "-c"]  # without a sudo here it is not named
    packages = shlex.split(words[2])
    assert packages[:3] == ["apt-get", "update", "&&"]
    assert {"gcc", "hpcc", "fio"} <= set(packages)
    assert "iozone3" not in packages  # in non-free, the whole command would fail by it
    assert "iozone3" in done.stdout and "envs/install.sh" in done.stdout
    (needed,) = done.stderr.splitlines()
    assert "gcc;" in needed
    assert not (checkout / ".venv").exists()  # said before anything is installed


@needs_dpkg
def test_what_could_not_be_had_is_told_once(checkout: Path, tmp_path: Path) -> None:
    path, empty = path_without(tmp_path / "bin", "sudo", "gcc", "apt-get"), empty_dpkg(tmp_path)
    first, second, asked = (
        install(checkout, *words, PATH=path, DPKG_ADMINDIR=empty)
        for words in (["run"], ["run"], ["run", "again"])
    )
    assert "fio columns" in first.stdout
    assert second.stdout == ""
    assert asked.stdout == first.stdout


@pytest.mark.parametrize(
    "name", ["it's", 'a "quoted" one', "$HOME", "back`tick", "back\\slash", "a:colon"]
)
def test_names_that_cannot_work_are_told_before_anything_is_done(tmp_path: Path, name: str) -> None:
    folder = checkout_in(tmp_path / name)
    done = install(folder)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "move it" in line
    assert sorted(one.name for one in folder.iterdir()) == ["envs", "pyproject.toml", "src"]


@needs_root
@pytest.mark.parametrize(
    ("options", "said"),
    [("ro", "may not write into"), ("noexec", "mounted noexec, where nothing can be run")],
)
def test_a_folder_that_cannot_be_written_or_run_from_is_told(
    checkout: Path, options: str, said: str
) -> None:
    mount = f'mount --bind "$0" "$0" && mount -o remount,bind,{options} "$0" && exec "$@"'
    front = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, str(checkout)]
    done = install(checkout, front=front)
    assert done.returncode == 1
    assert said in done.stderr and len(done.stderr.splitlines()) <= 2
    assert "--directory FOLDER" in done.stderr or options == "noexec"
    assert not (checkout / ".venv").exists()


@needs_root
def test_without_a_network_it_is_one_sentence_and_an_environment_from_elsewhere_is_made_anew(
    checkout: Path,
) -> None:
    old = write_old_environment(checkout)
    done = install(checkout, front=["unshare", "--net"])
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "package index" in line and "build/install/pip.log" in line
    assert (checkout / "build/install/pip.log").stat().st_size > 0
    assert str(checkout.resolve()) in old.read_text()


def write_old_environment(checkout: Path) -> Path:
    """An environment that was made in another folder, with a file of the user. Returns its pip."""
    pip = checkout / ".venv" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/home/jo/old/.venv/bin/python3\n")
    pip.chmod(0o755)
    (checkout / ".venv" / "notes.txt").write_text("of the user")
    return pip


def test_an_old_environment_is_moved_aside_and_named(checkout: Path) -> None:
    write_old_environment(checkout)
    done = install(checkout, **NO_INDEX)
    (aside,) = checkout.glob(".venv-*")
    assert (aside / "notes.txt").read_text() == "of the user"
    assert aside.name in done.stdout
    assert (checkout / ".venv" / "bin" / "pip").exists()


def test_ctrl_c_while_the_environment_is_made_is_one_line_and_the_next_run_goes_on(
    checkout: Path,
) -> None:
    begun = checkout / ".venv" / "pyvenv.cfg"
    argv = ["bash", str(checkout / "envs" / "install.sh"), "run"]
    with subprocess.Popen(
        argv,
        env={**os.environ, **NO_INDEX},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        for _ in range(600):
            if begun.exists():
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    (line,) = stderr.splitlines()
    assert "goes on" in line
    install(checkout, **NO_INDEX)
    assert (checkout / ".venv" / "bin" / "pip").exists()
    assert not list(checkout.glob(".venv-*"))


@needs_root
def test_a_full_temporary_folder_is_named(checkout: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mount = 'mount -t tmpfs -o size=8k none "$0" && exec "$@"'
    done = install(
        checkout, front=["unshare", "--mount", "sh", "-c", mount, str(full)], TMPDIR=str(full)
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(full) in line and "TMPDIR" in line and "libc6-dev" not in line


def test_a_locale_without_the_letters_of_the_folder(tmp_path: Path) -> None:
    """Until 3.12 Python reads files of paths in the locale's encoding. Only what installs peakmark
    itself is fetched.
    """
    checkout = checkout_in(tmp_path / "ü")
    (checkout / "envs" / "requirements.txt").write_text("")
    (checkout / "src" / "peakmark").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "src/peakmark/__init__.py", checkout / "src/peakmark")
    done = install(checkout, LC_ALL="C")
    if "cannot be reached" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    for locale in ("C", "C.UTF-8"):
        ask = [checkout / ".venv/bin/python", "-c", "import peakmark"]
        subprocess.run(ask, env={"LC_ALL": locale}, cwd="/", check=True, timeout=60)


def test_an_environment_is_whole_for_its_folder_and_python_only(
    checkout: Path, tmp_path: Path
) -> None:
    """The stamp of one that is whole: nothing is done; that of another folder or Python: not whole."""

    def stamp(folder: Path, said: str = "") -> str:
        words = f'main() {{ python=$(find_python); {said} stamp_of; }}; eval "$(sed /^main/,/^}}/d envs/install.sh)"'
        script = [
            "bash",
            "-c",
            f"cd {shlex.quote(str(folder))} && set -- run && {words}",
            "envs/install.sh",
        ]
        return subprocess.run(
            script, cwd=folder, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    here = stamp(checkout)
    assert here.startswith(".venv/peakmark-")
    assert stamp(checkout) == here
    other = 'python=$PWD/another; printf "#!/bin/sh\\necho Python 3.12.9\\n" >another; chmod +x another;'
    assert stamp(checkout, other) != here
    assert stamp(checkout_in(tmp_path / "elsewhere")) != here


CLUSTER = {"slurm-wlm", "slurmdbd", "mariadb-server", "munge"}
APT = """#!/bin/sh
for word; do case $word in DPkg::Path=*) first=${word#*=}; ls "${first%%:*}" >"$SAID.services" ;; esac; done
echo "$*" >>"$SAID"
"""
"""Installs nothing, keeps what it was told, and what stands before the programs that packages call.
"""


@needs_dpkg
@needs_root
@pytest.mark.parametrize("there", ["nothing", "SLURM_CONF", "programs", "configuration"])
def test_where_a_slurm_is_no_package_of_one_comes(
    checkout: Path, tmp_path: Path, there: str
) -> None:
    path, own, said = (
        path_without(tmp_path / "bin", "sinfo", "slurmd", "slurmctld"),
        tmp_path / "own",
        tmp_path / "said",
    )
    programs = {"apt-get": APT, "apt-cache": "#!/bin/sh\nshift; printf 'Package: %s\\n' \"$@\"\n"}
    if there == "programs":
        programs |= dict.fromkeys(("sinfo", "slurmd", "slurmctld"), "#!/bin/sh\nexit 1\n")
    own.mkdir()
    for name, text in programs.items():
        (own / name).write_text(text)
        (own / name).chmod(0o755)
    # The machine's own /etc but for its Slurm, which it may have.
    subprocess.run(["cp", "-a", "/etc", tmp_path / "etc"], check=True)
    for name in ("slurm", "slurm-llnl"):
        (tmp_path / "etc" / name / "slurm.conf").unlink(missing_ok=True)
    if there == "configuration":
        (tmp_path / "etc/slurm").mkdir(exist_ok=True)
        (tmp_path / "etc/slurm/slurm.conf").touch()
    bind = 'mount --bind "$0" /etc && exec "$@"'
    front = ["unshare", "--mount", "sh", "-c", bind, str(tmp_path / "etc")]
    env = {"SLURM_CONF": "/opt/slurm.conf"} if there == "SLURM_CONF" else {}
    env |= {"PATH": f"{own}:{path}", "SAID": str(said), "DPKG_ADMINDIR": empty_dpkg(tmp_path)}
    done = install(checkout, "packages", "test", front=front, **env)
    assert done.returncode == 0, done.stderr
    asked = {
        word
        for line in said.read_text().splitlines()
        if " install " in line
        for word in line.split()
    }
    assert {"fio", "libcmocka-dev", "shellcheck"} <= asked  # all else is installed
    if there == "nothing":
        assert asked >= CLUSTER
        assert "a Slurm is here" not in done.stdout
    else:
        assert not asked & CLUSTER
        assert "a Slurm is here" in done.stdout
        assert all(name in done.stdout for name in CLUSTER)
    before = set(Path(f"{said}.services").read_text().split())
    assert {"invoke-rc.d", "update-rc.d", "deb-systemd-helper", "deb-systemd-invoke"} <= before


SNIPPET = """
if deb-systemd-helper --quiet was-enabled x.service; then
    deb-systemd-helper enable x.service >/dev/null
else
    deb-systemd-helper update-state x.service >/dev/null
fi
invoke-rc.d x start
"""
"""What a package's script does when it is new, as debhelper writes it."""


@needs_dpkg
@pytest.mark.parametrize("known", [False, True])
def test_services_that_come_new_are_not_enabled(tmp_path: Path, known: bool) -> None:
    helper = shutil.which("deb-systemd-helper", path="/usr/bin")
    if helper is None:
        pytest.skip("deb-systemd-helper is not here")
    root, services = tmp_path / "root", tmp_path / "services"
    unit = root / "lib/systemd/system/x.service"
    unit.parent.mkdir(parents=True)
    (root / "usr/lib").mkdir(parents=True)
    (root / "usr/lib/systemd").symlink_to("../../lib/systemd")
    unit.write_text(
        "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
    )
    services.mkdir()
    for name in ("deb-systemd-helper", "invoke-rc.d"):
        shutil.copy(ROOT / "envs/units-stay-off", services / name)
    (services / "installed").write_text("x\n" if known else "other\n")
    started = tmp_path / "started"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/invoke-rc.d").write_text(f"#!/bin/sh\ntouch {started}\n")
    (tmp_path / "bin/invoke-rc.d").chmod(0o755)
    env = {
        "PATH": f"{services}:{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DPKG_ROOT": str(root),
        "DPKG_MAINTSCRIPT_PACKAGE": "x",
    }
    subprocess.run(["sh", "-ec", SNIPPET], env=env, check=True, timeout=60)
    link = root / "etc/systemd/system/multi-user.target.wants/x.service"
    assert (link.is_symlink(), started.exists()) == (known, known)
    state = root / "var/lib/systemd/deb-systemd-helper-enabled/x.service.dsh-also"
    assert state.exists()  # the next version of the package takes it for switched off, not for new
