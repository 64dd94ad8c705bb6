"""envs/install.sh as a newcomer meets it; DPKG_ADMINDIR is empty: every package is missing."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.programs import executable

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
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="makes namespaces and mounts as root")


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


def path_without(folder, *names):
    """A PATH with all programs of this machine but some, without the environment's Python."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            if program.name not in names and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
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
    path = path_without(tmp_path / "bin", "sudo", "gcc", "cc")
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


@needs_dpkg
def test_what_could_not_be_had_is_told_once(checkout, tmp_path):
    path, empty = path_without(tmp_path / "bin", "sudo", "gcc", "apt-get"), empty_dpkg(tmp_path)
    first, second, repeated = (
        install(checkout, *words, PATH=path, DPKG_ADMINDIR=empty)
        for words in (["run"], ["run"], ["run", "again"])
    )
    assert "fio columns" in first.stdout
    assert second.stdout == ""
    assert repeated.stdout == first.stdout


@pytest.mark.parametrize(
    "name", ["it's", 'a "quoted" one', "$HOME", "back`tick", "back\\slash", "a:colon"]
)
def test_names_that_cannot_work_are_told_before_anything_is_done(tmp_path, name):
    folder = checkout_in(tmp_path / name)
    assert "move it" in refusal(install(folder))
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "Snakefile", "dev", "envs", "pyproject.toml", "src",
    ]  # fmt: skip


def mounted(script, *argv):
    """The start of a command line in a namespace with a mount of its own."""
    front = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    return [*front, f'{script} && exec "$@"', *map(str, argv)]


@needs_root
@pytest.mark.parametrize(("options", "reason"), [
    ("ro", "may not write into"), ("noexec", "mounted noexec, where nothing can be run"),
])  # fmt: skip
def test_a_folder_that_cannot_be_written_or_run_from_is_told(checkout, options, reason):
    script = f'mount --bind "$0" "$0" && mount -o remount,bind,{options} "$0"'
    done = install(checkout, front=mounted(script, checkout))
    assert done.returncode == 1
    assert reason in done.stderr and len(done.stderr.splitlines()) <= 2
    assert "--directory FOLDER" in done.stderr or options == "noexec"
    assert not (checkout / ".venv").exists()


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


def test_after_ctrl_c_the_next_run_goes_on(checkout):
    begun = checkout / ".venv" / "pyvenv.cfg"
    argv = ["bash", str(checkout / "envs" / "install.sh"), "run"]
    env = {**os.environ, **NO_INDEX}
    with subprocess.Popen(
        argv, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
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
def test_a_full_temporary_folder_is_named(checkout, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    front = mounted('mount -t tmpfs -o size=8k none "$0"', full)
    line = refusal(install(checkout, front=front, TMPDIR=str(full)))
    assert str(full) in line and "TMPDIR" in line and "libc6-dev" not in line


def test_a_locale_without_the_letters_of_the_folder(tmp_path):
    """Until 3.12 Python reads files of paths in the locale's encoding."""
    checkout = checkout_in(tmp_path / "ü")
    (checkout / "envs" / "requirements.txt").write_text("")
    shutil.copy(ROOT / "src/peakmark/__init__.py", checkout / "src/peakmark")
    done = install(checkout, LC_ALL="C")
    if "cannot be reached" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    for locale in ("C", "C.UTF-8"):
        argv = [checkout / ".venv/bin/python", "-c", "import peakmark"]
        subprocess.run(argv, env={"LC_ALL": locale}, cwd="/", check=True, timeout=60)


OTHER_PYTHON = (
    'python=$PWD/another; printf "#!/bin/sh\\necho Python 3.12.9\\n" >another; chmod +x another;'
)


def test_an_environment_is_whole_for_its_folder_and_python(checkout, tmp_path):
    """By its stamp, which another folder or Python changes."""

    def stamp(folder, change=""):
        main = f"main() {{ python=$(find_python); {change} stamp_of; }}"
        script = f'set -- run && {main}; eval "$(sed /^main/,/^}}/d envs/install.sh)"'
        argv = ["bash", "-c", script, "envs/install.sh"]
        return subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    first = stamp(checkout)
    assert first.startswith(".venv/peakmark-")
    assert stamp(checkout) == first
    assert stamp(checkout, OTHER_PYTHON) != first
    assert stamp(checkout_in(tmp_path / "elsewhere")) != first


CLUSTER = {"slurm-wlm", "slurmdbd", "mariadb-server", "munge"}
PACKAGE_TOOLS = {
    "apt-get": """#!/bin/sh
for word; do case $word in DPkg::Path=*) first=${word#*=}; ls "${first%%:*}" >"$CALLS.services" ;; esac; done
echo "$*" >>"$CALLS"
""",
    "apt-cache": "#!/bin/sh\nshift; printf 'Package: %s\\n' \"$@\"\n",
}
"""They install nothing, keep their arguments, and what stands before the programs that packages
call.
"""
SLURM = ("sinfo", "slurmd", "slurmctld")


@needs_dpkg
@needs_root
@pytest.mark.parametrize("sign", ["nothing", "SLURM_CONF", "programs", "configuration"])
def test_where_a_slurm_is_no_package_of_one_comes(checkout, tmp_path, sign):
    slurm = dict.fromkeys(SLURM, "#!/bin/sh\nexit 1\n") if sign == "programs" else {}
    front = programs(tmp_path / "own", PACKAGE_TOOLS | slurm)
    path = path_without(tmp_path / "bin", *SLURM)
    # The machine's own /etc but for its Slurm, which it may have.
    subprocess.run(["cp", "-a", "/etc", tmp_path / "etc"], check=True)
    for name in ("slurm", "slurm-llnl"):
        (tmp_path / "etc" / name / "slurm.conf").unlink(missing_ok=True)
    if sign == "configuration":
        (tmp_path / "etc/slurm").mkdir(exist_ok=True)
        (tmp_path / "etc/slurm/slurm.conf").touch()
    calls = tmp_path / "calls"
    env = {"SLURM_CONF": "/opt/slurm.conf"} if sign == "SLURM_CONF" else {}
    env |= {"PATH": f"{front}:{path}", "CALLS": str(calls), "DPKG_ADMINDIR": empty_dpkg(tmp_path)}
    namespace = mounted('mount --bind "$0" /etc', tmp_path / "etc")
    done = install(checkout, "packages", "test", front=namespace, **env)
    assert done.returncode == 0, done.stderr
    lines = [line for line in calls.read_text().splitlines() if " install " in line]
    packages = {word for line in lines for word in line.split()}
    assert {"fio", "libcmocka-dev", "shellcheck"} <= packages  # all else is installed
    assert packages & CLUSTER == (CLUSTER if sign == "nothing" else set())
    assert ("a Slurm is here" in done.stdout) == (sign != "nothing")
    assert sign == "nothing" or all(name in done.stdout for name in CLUSTER)
    before = set(Path(f"{calls}.services").read_text().split())
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
UNIT = (
    "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
)


@needs_dpkg
@pytest.mark.parametrize("known", [False, True])
def test_services_that_come_new_are_not_enabled(tmp_path, known):
    if shutil.which("deb-systemd-helper", path="/usr/bin") is None:
        pytest.skip("deb-systemd-helper is not here")
    root, started = tmp_path / "root", tmp_path / "started"
    for folder in ("lib/systemd/system", "usr/lib"):
        (root / folder).mkdir(parents=True)
    (root / "usr/lib/systemd").symlink_to("../../lib/systemd")
    (root / "lib/systemd/system/x.service").write_text(UNIT)
    off = (ROOT / "envs/units-stay-off").read_text()
    services = programs(
        tmp_path / "services", dict.fromkeys(("deb-systemd-helper", "invoke-rc.d"), off)
    )
    (tmp_path / "services/installed").write_text("x\n" if known else "other\n")
    bin_ = programs(tmp_path / "bin", {"invoke-rc.d": f"#!/bin/sh\ntouch {started}\n"})
    env = {
        "PATH": f"{services}:{bin_}:{SYSTEM}",
        "DPKG_ROOT": str(root),
        "DPKG_MAINTSCRIPT_PACKAGE": "x",
    }
    subprocess.run(["sh", "-ec", SNIPPET], env=env, check=True, timeout=60)
    link = root / "etc/systemd/system/multi-user.target.wants/x.service"
    assert (link.is_symlink(), started.exists()) == (known, known)
    state = root / "var/lib/systemd/deb-systemd-helper-enabled/x.service.dsh-also"
    assert state.exists()  # the next version of the package takes it for switched off, not for new
