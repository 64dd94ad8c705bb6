"""Fixtures: four real Slurm clusters for the session, put right again after every test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from testcluster import Cluster, why_not
from tests import mounts

from workflow import Workflow

CPUS = len(os.sched_getaffinity(0))
SIZES: dict[str, Any] = {"cpus": (1, min(2, CPUS)), "memory": (1200, 6000), "binding": True}
"""A small node and a larger one; jobs are held to their CPUs."""


def start(nodes: int = 2, **options: Any) -> Iterator[Cluster]:
    if reason := why_not(**options):
        pytest.skip(reason)
    # Jobs find the Python (and the Snakemake) that runs the tests: sbatch hands the environment on.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with Cluster.running(nodes, **options) as cluster:
        yield cluster


@pytest.fixture(scope="session", autouse=True)
def own_mounts() -> None:
    """What others on this machine mount meanwhile is nothing that a cluster has left behind."""
    if why_not() is None:
        mounts.take("shared")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes of different size, no slurmdbd: squeue is the only source about jobs."""
    yield from start(**SIZES)


@pytest.fixture(scope="session")
def equal() -> Iterator[Cluster]:
    """Two equal nodes, so that `nodes: any` means both, whose jobs those of partition `urgent` preempt."""
    yield from start(preemption=True)


@pytest.fixture(scope="session")
def fleet() -> Iterator[Cluster]:
    """Four equal nodes: a class that tells which of them is slow."""
    yield from start(nodes=4)


@pytest.fixture(scope="session")
def site() -> Iterator[Cluster]:
    """A stranger's: other names, slurmdbd, an account that must be said, five jobs at most in the
    queue, and fio on the login side only.
    """
    rules = {"account": True, "max_submit": 5}
    names = {"name": "hpc", "prefix": "gn", "without": ("fio",)}
    yield from start(**SIZES, **rules, **names, accounting=True)


@pytest.fixture
def workflow(cluster: Cluster, tmp_path: Path) -> Workflow:
    # With a space: paths reach no shell unquoted.
    return Workflow.make(cluster, tmp_path / "a checkout")


@pytest.fixture
def equal_workflow(equal: Cluster, tmp_path: Path) -> Workflow:
    return Workflow.make(equal, tmp_path / "checkout")


@pytest.fixture
def site_workflow(site: Cluster, tmp_path: Path) -> Workflow:
    return Workflow.make(site, tmp_path / "checkout")


@pytest.fixture(autouse=True)
def put_right(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test: jobs cancelled, killed daemons back, nodes idle."""
    yield
    for name in ("cluster", "equal", "fleet", "site"):
        if name in request.fixturenames:
            running: Cluster = request.getfixturevalue(name)
            running.reset()
