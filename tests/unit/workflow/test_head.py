"""What the process that runs a campaign looks at before its first job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.plan.planned import CPU, DISK, NETWORK, made, where
from tests.unit.workflow.slurm_site import refusal

from peakmark import slurm
from peakmark.errors import PeakmarkError
from peakmark.plan import jobs
from peakmark.plan.cluster import Cluster
from peakmark.workflow import head


def three(*nodes: str) -> Cluster:
    kinds = [{"cpus": 8, "memory": 4000, "nodes": ["n1", "n2", "n3"]}]
    return where(nodes=nodes, kinds=kinds)


@pytest.mark.parametrize(
    ("nodes", "own", "refused"),
    [
        (("any",), ["n1"], None),
        (("any",), ["n1", "n2"], "n[1-2]"),  # a network cell takes two, and one is left
        (("n2", "n3"), ["n1"], None),
        (("n1", "n2"), ["n1"], "n1"),
        (("n1", "n2", "n3"), ["x7"], None),  # of another partition
    ],
)
def test_a_campaign_inside_a_job_does_not_wait_for_its_own_nodes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nodes: tuple[str, ...],
    own: list[str],
    refused: str | None,
) -> None:
    one = made(tmp_path, monkeypatch, three(*nodes), cpu=[CPU], network=[NETWORK])
    head.check_allocation_overlap(one)  # no job
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(slurm, "job_nodes", lambda number: own if number == "7" else [])
    if refused is None:
        head.check_allocation_overlap(one)
        return
    with pytest.raises(PeakmarkError, match="inside job 7, which holds") as told:
        head.check_allocation_overlap(one)
    assert str(told.value).count(refused) == 2


def test_cells_that_share_their_nodes_may_share_them_with_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.yaml").write_text("{schema: 1, name: here, slurm: {exclusive: false}}")
    one = made(tmp_path, monkeypatch, three("n1", "n2"), cpu=[CPU], site="site.yaml")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(slurm, "job_nodes", lambda _: ["n1"])
    head.check_allocation_overlap(one)


HUNG_UP = """
import os, signal, sys
from pathlib import Path
from peakmark.workflow import head
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup
head.ignore_sighup(Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGHUP)
print("goes on", flush=True)
"""


@pytest.mark.parametrize("place", ["logs/hangup.log", "a file/hangup.log"])
def test_a_run_goes_on_without_its_terminal_wherever_its_words_can_go(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "a file").touch()  # as a full disk, no folder can be made there
    log = tmp_path / place
    argv = [sys.executable, "-c", HUNG_UP, log]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stdout, done.stderr
    if log.exists():
        first, last = log.read_text().splitlines()
        assert "terminal" in first and last == "goes on"
    else:
        assert "a file" in place


ACCOUNT = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
DRAINED = "allocation failure: Required node not available (down, drained or reserved)"


def test_slurm_is_asked_once_for_each_kind_of_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve cells on three nodes, of which those of one node and those of two ask for something
    else.
    """
    nodes = ("n1", "n2", "n3")
    grids = {"cpu": [CPU], "disk": [DISK], "network": [NETWORK]}
    one = made(tmp_path, monkeypatch, three(*nodes), **grids, repetitions=1)
    assert len(one.cells) == 12
    asked: list[tuple[str, ...]] = []

    def ask(*argv: str, **_: object) -> str:
        if argv[0] == "sbatch":
            asked.append(argv)
        return ""

    monkeypatch.setattr(slurm, "ask", ask)
    head.check(one, {}, lambda _: False)
    assert [argv[1] for argv in asked] == ["--test-only"] * 2
    words = {word for argv in asked for word in argv if word.startswith("--nodes")}
    assert words == {"--nodes=1", "--nodes=2"}
    longest = max(jobs.minutes([cell], one) for cell in one.cells if cell.subsystem != "network")
    assert f"--time={longest}" in next(argv for argv in asked if "--nodes=1" in argv)
    asked.clear()
    head.check(one, {}, lambda cell: cell.subsystem != "network")
    assert len(asked) == 1  # what is measured asks for nothing


@pytest.mark.parametrize(("words", "refused"), [(ACCOUNT, True), (DRAINED, False)])
def test_what_slurm_would_never_take_is_one_sentence_before_the_first_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, refused: bool
) -> None:
    one = made(tmp_path, monkeypatch, three("n1", "n2"), cpu=[CPU])

    def ask(*_: str, **__: object) -> str:
        raise refusal(words)

    monkeypatch.setattr(slurm, "ask", ask)
    if not refused:  # a node that is mended one day
        head.check(one, {}, lambda _: False)
        return
    with pytest.raises(
        slurm.SlurmError,
        match=r"Slurm takes no such job: .*Invalid account.*slurm.account in the site file",
    ):
        head.check(one, {}, lambda _: False)


@pytest.mark.parametrize(("limit", "told"), [(1, True), (600, False)])
def test_a_job_that_its_partition_ends_too_soon_is_told_before_the_first_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limit: int,
    told: bool,
) -> None:
    there = where(limit=limit)
    one = made(tmp_path, monkeypatch, there, cpu=[{**CPU, "seconds": 100.0}])
    monkeypatch.setattr(slurm, "ask", lambda *_, **__: "")
    head.check(one, {}, lambda _: False)
    assert ("MaxTime" in capsys.readouterr().err) == told
