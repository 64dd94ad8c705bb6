"""Environment modules (Environment Modules or Lmod): what loading them changes, without changing this process for good."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from peakmark.errors import Unavailable

LIMIT_S = 60.0

# The function `module` is usually exported by the login shell; a job's shell may have to look for it.
_SCRIPT = """
if ! type module > /dev/null 2>&1; then
  for init in "$MODULESHOME/init/bash" "$LMOD_PKG/init/bash" /etc/profile.d/modules.sh /etc/profile.d/lmod.sh \
      /usr/share/modules/init/bash /usr/share/lmod/lmod/init/bash; do
    if [ -r "$init" ]; then . "$init" > /dev/null 2>&1; type module > /dev/null 2>&1 && break; fi
  done
fi
type module > /dev/null 2>&1 || { echo "there is no command module" >&2; exit 3; }
for name in "$@"; do
  said=$(module load "$name" 2>&1) && module load "$name" > /dev/null 2>&1
  case $? in 0) ;; *) echo "$said" >&2; exit 4 ;; esac
  case "$said" in *ERROR*|*"unknown module"*) echo "$said" >&2; exit 4 ;; esac
done
exec env -0
"""


def environment(names: Sequence[str]) -> dict[str, str]:
    """The environment with these modules loaded. Errors: Unavailable with the words of the module command."""
    import subprocess  # late: most cells have none

    try:
        done = subprocess.run(
            ["bash", "-c", _SCRIPT, "modules", *names],
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"loading the modules {' '.join(names)} took longer than {LIMIT_S:.0f} s") from None
    if done.returncode:
        words = " ".join(done.stderr.decode(errors="replace").split())
        raise Unavailable(f"cannot load the modules {' '.join(names)}: {words}; module avail lists them")
    pairs = (entry.split("=", 1) for entry in done.stdout.decode(errors="surrogateescape").split("\0") if "=" in entry)
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
