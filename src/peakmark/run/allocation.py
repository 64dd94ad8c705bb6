"""Find the hosts of the job that this process belongs to, under schedulers other than Slurm.

They come from environment variables:

- PBS: ``PBS_NODEFILE`` names a file with a host in each line.
- LSF: ``LSB_HOSTS`` has a host for each slot.
- Flux: ``flux getattr hostlist`` prints the hosts of the instance at ``FLUX_URI``.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from peakmark import files
from peakmark.errors import MeasurementError, Unavailable
from peakmark.slurm import hostlists

_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "MODULEPATH", "PYTHONPATH", "TMPDIR")
"""Variables that the server needs on the other host, where ssh begins with a login's environment."""
FLUX_S = 10.0
"""Longest time, in seconds, that ``flux getattr`` may take."""
CONNECT_S = 20
"""Longest time, in seconds, that ssh may take to connect."""
NO_CONNECTION = 255
"""Exit code of ssh if it did not reach the other host. Otherwise it has the command's exit code."""


def both_hosts(stated: Sequence[str]) -> tuple[str, str]:
    """Return this host and the other host of the job, as the scheduler or the site file names them.

    Args:
        stated: key ``hosts`` of the site file, for schedulers that list no hosts.

    Raises:
        MeasurementError: this job has no other host, or its list cannot be read. A later job may have both.
        Unavailable: neither the scheduler nor the site file names hosts.
    """
    names = list(dict.fromkeys(_allocated() or stated))
    if not names:
        raise Unavailable(
            "nothing lists the hosts of this job",
            "PBS_NODEFILE, LSB_HOSTS and FLUX_URI are not set in it: write hosts: [HOST, HOST] into the site file",
        )
    here = _short(socket.gethostname())
    others = [name for name in names if _short(name) != here]
    if not others:
        raise MeasurementError(
            f"this job has only the host {here}, and two are needed",
            "let the submit command ask for {resources.nodes} hosts",
        )
    return here, others[0]


def _short(name: str) -> str:
    return name.partition(".")[0]


def _allocated() -> list[str]:
    """Return the hosts of this job, with repetitions; empty if no scheduler lists them.

    Raises:
        MeasurementError: the scheduler's list cannot be read. A later job may read it.
    """
    path = os.environ.get("PBS_NODEFILE")
    if path:
        try:
            return files.read_text(Path(path)).split()
        except (OSError, UnicodeDecodeError) as error:
            raise MeasurementError(f"PBS_NODEFILE cannot be read: {error}") from error
    listed = os.environ.get("LSB_HOSTS")
    if listed:
        return listed.split()
    if os.environ.get("FLUX_URI"):
        argv = ["flux", "getattr", "hostlist"]
        try:
            text = subprocess.check_output(argv, text=True, timeout=FLUX_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise MeasurementError(f"Flux does not list the hosts of this job: {error}") from error
        return hostlists.hostnames(text.strip())
    return []


def on_host(host: str, command: Iterable[str]) -> list[str]:
    """Return the ssh command that runs a command on another host, in this folder.

    It asks for no password, and passes on the variables by which programs and modules are found.
    """
    variables = [
        f"{name}={value}"
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("PEAKMARK_")
    ]
    here = shlex.join(["cd", str(Path.cwd())])
    there = shlex.join(["exec", "env", *variables, *command])
    options = ["-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}"]
    return ["ssh", *options, host, f"{here} && {there}"]
