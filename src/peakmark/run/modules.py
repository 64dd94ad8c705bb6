"""Environment modules (Environment Modules or Lmod): what loading them changes, without changing
this process for good.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from peakmark.reasons import Unavailable

LIMIT_S = 60.0


def environment(names: Sequence[str]) -> dict[str, str]:
    """The environment with these modules loaded. Errors: Unavailable with the words of the module
    command.
    """
    import subprocess  # late, both: most cells have none

    from peakmark import data

    try:
        done = subprocess.run(
            ["bash", "-c", data.text("modules.sh"), "modules", *names],
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("modules-slow", names=" ".join(names), seconds=LIMIT_S) from None
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise Unavailable("modules", names=" ".join(names), said=said)
    pairs = (
        entry.split("=", 1)
        for entry in done.stdout.decode(errors="surrogateescape").split("\0")
        if "=" in entry
    )
    return {name: value for name, value in pairs if not name.startswith("BASH_FUNC_")}


@contextmanager
def loaded(names: Sequence[str]) -> Iterator[None]:
    """These modules in this process's environment while the block runs. Errors: Unavailable."""
    if not names:
        yield
        return
    before = dict(os.environ)
    with_them = environment(names)
    try:
        os.environ.clear()
        os.environ.update(with_them)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
