"""Fixtures: a real Slurm cluster for the session, once without and once with accounting, put right again after every test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testcluster import Cluster, why_not


def start(accounting: bool) -> Iterator[Cluster]:
    if reason := why_not(accounting):
        pytest.skip(reason)
    # Jobs find the Python (and the Snakemake) that runs the tests: sbatch hands the environment on.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with Cluster.running(2, cpus=2, accounting=accounting) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes of two CPUs, no slurmdbd: squeue is the only source about jobs."""
    yield from start(accounting=False)


@pytest.fixture(scope="session")
def cluster_with_accounting() -> Iterator[Cluster]:
    """The same with slurmdbd on a private MariaDB, so that sacct works."""
    yield from start(accounting=True)


@pytest.fixture(autouse=True)
def put_right(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test: jobs cancelled, killed daemons back, nodes idle."""
    yield
    for name in ("cluster", "cluster_with_accounting"):
        if name in request.fixturenames:
            running: Cluster = request.getfixturevalue(name)
            running.reset()
