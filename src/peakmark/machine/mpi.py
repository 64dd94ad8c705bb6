"""Find the compiler of the MPI library, and check that it compiles MPI programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

PROGRAM = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n"
"""Smallest program that needs the headers and the library of MPI."""
REMEDY = "install an MPI library with its headers, or name its modules in the site file: mpi: {modules: [openmpi]}"
_LIMIT_S = 60.0
"""Longest time, in seconds, in which the smallest program must compile."""


def compiler(variables: Mapping[str, str]) -> str | None:
    """Return the path of mpicc, or None. ``variables`` are those of the site file."""
    return shutil.which("mpicc", path={**os.environ, **variables}.get("PATH"))


def why_not(variables: Mapping[str, str]) -> str:
    """Return why no MPI program can be compiled on this machine; empty if one can.

    Args:
        variables: variables of the site file, in addition to those of this process.
    """
    path = compiler(variables)
    if path is None:
        return f"mpicc not found; {REMEDY}"
    # The Makefile of the kernels compiles with gcc too, whatever compiler the library was built with.
    environment = {**os.environ, **variables, "OMPI_CC": "gcc", "MPICH_CC": "gcc", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [path, "-x", "c", "-", "-o", os.devnull],
            input=PROGRAM,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} does not compile an MPI program: {error}"
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    reason = errors[0].strip() if errors else f"exit code {done.returncode}"
    return f"{path} does not compile an MPI program ({reason}); {REMEDY}"
