"""A Linux of our own that ends with what is done in it: for what the kernel here has not, or would
not do to this machine.

    call(directory, "module:function", argument, limit_s=60, modules=["sch_netem"])
    call(directory, "module:function", argument, limit_s=300,
         machine=Machine(sockets=2, cores=2, threads=2, nodes=2))

Its file system is this machine's, read-only; it needs no root. Without ``machine`` it is the
user-mode kernel, an ordinary process with one CPU, network emulation, quotas and a clock that can
be set; starting a process takes some 40 ms. With ``machine`` it has that machine's CPUs, sockets,
caches and NUMA nodes, and is slow: without KVM a boot takes some 5 s of a core.

usermode.py  the user-mode kernel      xstate.c  lets it run on CPUs with more vector state
emulated.py  machines under qemu       stage.c   their first program
init         the first process in it   inside.py calls the function
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.guest import common, emulated, usermode
from tests.guest.common import GuestError
from tests.guest.emulated import Machine

__all__ = ["GuestError", "Machine", "call", "why_not"]

TRIAL_S = 60.0
END_S = 10.0
ROOT = Path(__file__).resolve().parents[2]

# The guest makes itself a process group, of which each of its processes is one of this machine. The
# group is killed when the pipe is closed that `read` waits on, by us or because we are gone: no
# guest outlives who has started it. And when the guest has powered off, as some of its processes
# may be stopped then.
_SHELL = """
exec 3<&0 2>&1
"$@" </dev/null 3<&- &
guest=$!
{ read -r _ <&3; kill -s KILL -- "-$guest"; kill -s KILL "$guest"; } 2>/dev/null &
wait "$guest" 2>/dev/null
kill -s KILL -- "-$guest" 2>/dev/null
kill "$!"
"""


def why_not(machine: Machine | None = None) -> str | None:
    """Why there can be no such guest here, in a sentence, tried once a process; None if there can."""
    if machine is not None:
        reason = common.missing(emulated.NEEDED)
        return f"no emulated machine here ({reason})" if reason else None
    if reason := common.missing(usermode.NEEDED):
        return f"no user-mode kernel here ({reason})"
    return _why_it_does_not_boot(usermode.MEMORY_MIB)


@functools.cache
def _why_it_does_not_boot(_: int) -> str | None:
    """Some kernels, CPUs and sandboxes keep it from starting; only its console says which."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _call(Path(folder).resolve(), "builtins:int", "1", TRIAL_S)
        except GuestError as error:
            return f"no user-mode kernel here: {str(error).splitlines()[-1]}"
    return None


def call(
    directory: Path,
    function: str,
    argument: Any = None,
    *,
    limit_s: float,
    machine: Machine | None = None,
    modules: Sequence[str] = (),
    path: Sequence[Path] = (),
    shown: Sequence[Path] = (),
) -> Any:
    """Boot a guest, call a function as root in it, and return what that returns.

    Args:
        directory: the guest can write here, and its files stay. No blanks in its name.
        function: "module:function", which takes the argument.
        argument: whatever JSON can hold; so is the result.
        limit_s: seconds from start to end; then the guest is killed.
        machine: its shape, under qemu; None: the user-mode kernel.
        modules: of the guest's kernel, loaded before.
        path: folders with Python modules, with the checkout's own.
        shown: other folders of this machine that the function reads.

    Raises:
        GuestError: when there can be no such guest here, after the deadline, or with the
            function's error.
    """
    if reason := why_not(machine):
        raise GuestError(reason)
    directory = directory.resolve()
    if any(letter.isspace() or letter in "\"'," for letter in str(directory)):
        raise GuestError(
            f"a guest's folder may have no blanks, quotes or commas in its name: {directory}"
        )
    return _call(directory, function, argument, limit_s, machine, modules, [*path], [*shown])


def _call(
    directory: Path, function: str, argument: Any, limit_s: float, machine: Machine | None = None,
    modules: Sequence[str] = (), path: Sequence[Path] = (), shown: Sequence[Path] = (),
) -> Any:  # fmt: skip
    (directory / "order.json").write_text(json.dumps({"function": function, "argument": argument}))
    (directory / "result.json").unlink(missing_ok=True)
    if machine is None:
        own, load = usermode.OWN, usermode.load(modules)
        argv, environment = usermode.argv(directory), usermode.environment(directory)
    else:
        own, load, environment = emulated.OWN, ":", dict(os.environ)
        argv = emulated.argv(directory, machine, modules)
    _prepare(directory, own, load, path, shown)
    end = _boot(argv, environment, directory, limit_s)
    try:
        answer: dict[str, Any] = json.loads((directory / "result.json").read_text())
    except (OSError, ValueError) as error:
        raise GuestError(f"the guest's kernel ended without a result{end}") from error
    if "error" in answer:
        raise GuestError(f"in the guest: {answer['error']}")
    return answer["result"]


def _prepare(
    directory: Path, own: str, load: str, path: Sequence[Path], shown: Sequence[Path]
) -> None:
    """What ``init`` reads; folders that its tmpfs on /tmp and /run would hide are mounted again."""
    init = directory / "init"
    shutil.copyfile(Path(__file__).with_name("init"), init)
    init.chmod(0o755)
    python_path = [str(one) for one in (ROOT, ROOT / "src", *path)]
    folders: list[Path] = [ROOT, Path(sys.prefix), Path(sys.base_prefix), *path, *shown]
    seen = {str(one.resolve()) for one in folders}
    covered = ("/tmp/", "/run/")
    hidden = sorted(one for one in seen if one.startswith(covered) and one != str(directory))
    settings = {
        "PATH": f"{Path(sys.executable).parent}:{common.SYSTEM_PATH}",
        "PYTHONPATH": ":".join(python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    lines += [
        f"PYTHON={shlex.quote(sys.executable)}",
        f"own() {{ {own}; }}",
        f"load() {{ {load}; }}",
    ]
    lines += ["shown() {", *(f"    show {shlex.quote(one)}" for one in hidden), "    :", "}"]
    (directory / "settings").write_text("\n".join(lines) + "\n")


def _boot(
    argv: Sequence[str], environment: Mapping[str, str], directory: Path, limit_s: float
) -> str:
    """The last lines of its console, once it has powered off. GuestError after the deadline."""
    console = directory / "console"
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
            raise GuestError(
                f"the guest did not end within {limit_s:g} s{_tail(console)}"
            ) from None
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait(END_S)
    return _tail(console)


def _tail(console: Path) -> str:
    """The reason of a panic; else the last lines that the kernel and its programs have said."""
    lines = console.read_text(errors="replace").replace("\r", "").strip().splitlines()
    panic = [line for line in lines if line.startswith("Kernel panic")]
    return ": " + " | ".join(panic[:1] or lines[-12:]) if lines else ""
