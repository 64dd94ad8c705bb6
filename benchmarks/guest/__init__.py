"""A Linux kernel of our own as an ordinary process: for what the kernel here has not, or would not do to this machine.

Debian's package user-mode-linux is a whole Linux kernel that runs as a program, without root and without a virtual
machine. Its file system is this machine's, read-only. It has one CPU, network emulation, quotas, and a clock that can be
set; what happens in it ends with it. Its processor time is near the machine's, starting a process takes some 40 ms.

    call(directory, "module:function", argument, limit_s=60, modules=["sch_netem"])

__init__.py  boots it, waits with a deadline, brings back what the function returned
init         the first process in it
inside.py    calls the function
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peakmark.errors import PeakmarkError

PROGRAM = "linux.uml"
NEEDED = {PROGRAM: "user-mode-linux", "modprobe": "kmod", "ip": "iproute2"}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MEMORY_MIB = 1024
END_S = 10.0
ROOT = Path(__file__).resolve().parents[2]

# The guest makes itself a process group, of which each of its processes is one of this machine. The group is killed when
# the pipe is closed that `read` waits on, by us or because we are gone: no guest outlives who has started it. And when the
# guest has powered off, as some of its processes may be stopped then.
_SHELL = """
exec 3<&0 2>&1
"$@" </dev/null 3<&- &
guest=$!
{ read -r _ <&3; kill -s KILL -- "-$guest"; kill -s KILL "$guest"; } 2>/dev/null &
wait "$guest" 2>/dev/null
kill -s KILL -- "-$guest" 2>/dev/null
kill "$!"
"""


class GuestError(PeakmarkError):
    """The guest, or the function in it, did not come to its end."""


def why_not() -> str | None:
    """Why there can be no guest here, in a sentence; None where there can."""
    missing = [name for name in NEEDED if shutil.which(name, path=SYSTEM_PATH) is None]
    if missing:
        packages = " ".join(NEEDED[name] for name in missing)
        return f"no user-mode kernel here ({', '.join(missing)} not found): install {packages}"
    return None


def call(
    directory: Path,
    function: str,
    argument: Any = None,
    *,
    limit_s: float,
    modules: Sequence[str] = (),
    path: Sequence[Path] = (),
    shown: Sequence[Path] = (),
) -> Any:
    """Boot a guest, call ``module:function`` with the argument as root in it, and return what it returns.

    directory  the guest can write here; what the function writes stays. No blanks in its name
    argument   and the result: whatever JSON can hold
    limit_s    from start to end; then the guest is killed
    modules    of the guest's kernel, loaded before
    path       folders with Python modules, beside the checkout's own
    shown      other folders of this machine that the function reads

    Errors: GuestError when there is no user-mode kernel, after the deadline, or with the words of the function's error.
    """
    if reason := why_not():
        raise GuestError(reason)
    directory = directory.resolve()
    if any(letter.isspace() or letter in "\"'," for letter in str(directory)):
        raise GuestError(f"a guest's folder may have no blanks, quotes or commas in its name: {directory}")
    (directory / "order.json").write_text(json.dumps({"function": function, "argument": argument}))
    (directory / "result.json").unlink(missing_ok=True)
    _prepare(directory, modules, path, shown)
    argv = [
        shutil.which(PROGRAM, path=SYSTEM_PATH) or PROGRAM,
        *("rootfstype=hostfs", "rootflags=/", "ro", f"init={directory}/init", f"GUEST={directory}"),
        *(f"mem={MEMORY_MIB}M", f"uml_dir={directory}/", "umid=uml", "con=null", "con0=fd:0,fd:1", "quiet"),
    ]
    said = _boot(argv, directory, limit_s)
    try:
        answer: dict[str, Any] = json.loads((directory / "result.json").read_text())
    except (OSError, ValueError) as error:
        raise GuestError(f"the user-mode kernel ended without a result{said}") from error
    if "error" in answer:
        raise GuestError(f"in the user-mode kernel: {answer['error']}")
    return answer["result"]


def _prepare(directory: Path, modules: Sequence[str], path: Sequence[Path], shown: Sequence[Path]) -> None:
    """What ``init`` reads. A folder that its tmpfs on /tmp and /run would hide is mounted again, read-only."""
    init = directory / "init"
    shutil.copyfile(Path(__file__).with_name("init"), init)
    init.chmod(0o755)
    python_path = [str(one) for one in (ROOT, ROOT / "src", *path)]
    folders: list[Path] = [ROOT, Path(sys.prefix), Path(sys.base_prefix), *path, *shown]
    seen = {str(one.resolve()) for one in folders}
    hidden = sorted(one for one in seen if one.startswith(("/tmp/", "/run/")) and one != str(directory))  # noqa: S108
    settings = {
        "PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}",
        "PYTHONPATH": ":".join(python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    lines += [f"MODULES={shlex.quote(' '.join(modules))}", f"PYTHON={shlex.quote(sys.executable)}"]
    lines += ["shown() {", *(f"    show {shlex.quote(one)}" for one in hidden), "    :", "}"]
    (directory / "settings").write_text("\n".join(lines) + "\n")


def _boot(argv: Sequence[str], directory: Path, limit_s: float) -> str:
    """Until it has powered off; the last lines of its console. Errors: GuestError after the deadline."""
    console = directory / "console"
    environment = {**os.environ, "TMPDIR": str(_memory_folder(directory)), "HOME": str(directory)}
    with (
        console.open("wb") as stream,
        subprocess.Popen(
            ["sh", "-c", _SHELL, "sh", *argv],
            stdin=subprocess.PIPE,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise GuestError(f"the user-mode kernel did not end within {limit_s:g} s{_tail(console)}") from None
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait(END_S)
    return _tail(console)


def _memory_folder(directory: Path) -> Path:
    """Where the guest's memory lies, in a file without a name: in memory where there is room and programs may run."""
    memory = Path("/dev/shm")  # noqa: S108
    try:
        room = shutil.disk_usage(memory).free > MEMORY_MIB << 20
        if room and not os.statvfs(memory).f_flag & os.ST_NOEXEC and os.access(memory, os.W_OK):
            return memory
    except OSError:
        pass
    return directory


def _tail(console: Path) -> str:
    lines = console.read_text(errors="replace").replace("\r", "").strip().splitlines()[-12:]
    return ": " + " | ".join(lines) if lines else ""
