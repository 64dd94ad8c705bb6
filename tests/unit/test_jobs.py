"""What jobs ask for, which nodes are chosen, and what is made of the states that Slurm tells."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.errors import ConfigError
from peakmark.planning import cluster, jobs, plan
from peakmark.planning.cluster import Cluster
from peakmark.running import failures, status, watch
from peakmark.storage import records
from peakmark.storage.campaign import Campaign

DATA = Path(__file__).parent / "data" / "slurm"
NOW = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)


def where(**changes: Any) -> Cluster:
    values: dict[str, Any] = {
        "partition": "main",
        "asked": "any",
        "nodes": ("any",),
        "cpus": 8,
        "memory": 4000,
        "limit": 60,
        "count": 3,
    }
    return Cluster(**{**values, **changes})


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: Cluster | None = None, **config: Any) -> plan.Plan:
    monkeypatch.chdir(tmp_path)
    empty: dict[str, Any] = {"campaign": "c", "cpu": [], "memory": [], "disk": [], "network": []}
    return plan.make({**empty, "repetitions": 1, **config}, there or where())


CPU = {"workloads": ["DP"], "concurrency": [1, 128]}
DISK = {"workloads": ["WS"], "blocks": ["4KiB"], "concurrency": [1], "size": "1MiB"}
NETWORK = {"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1]}


def test_many_threads_do_not_ask_for_more_cpus_than_a_node_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = made(tmp_path, monkeypatch, cpu=[CPU]).cells
    assert {cell.concurrency: jobs.threads([cell], where()) for cell in cells} == {1: 1, 128: 8}
    assert jobs.megabytes(cells, made(tmp_path, monkeypatch, where(memory=100), cpu=[CPU])) == 100


def test_memory_of_jobs_can_be_made_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site.yaml").write_text("{schema: 1, name: here, slurm: {memory_factor: 1.5}}")
    plain, more = (made(tmp_path, monkeypatch, cpu=[CPU], **site) for site in ({}, {"site": "site.yaml"}))
    assert jobs.megabytes(more.cells, more) == pytest.approx(1.5 * jobs.megabytes(plain.cells, plain), abs=2)


def test_the_limit_lies_between_two_minutes_and_that_of_the_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = made(tmp_path, monkeypatch, cpu=[CPU], seconds=0.1)
    assert jobs.minutes(short.cells[:1], short) == 2
    long = made(tmp_path, monkeypatch, cpu=[CPU], seconds=3600)
    assert jobs.minutes(long.cells[:1], long) == 60
    unlimited = made(tmp_path, monkeypatch, where(limit=None), cpu=[CPU], seconds=3600)
    assert jobs.minutes(unlimited.cells[:1], unlimited) > 180


def test_only_what_is_shared_beyond_the_node_waits_for_its_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[CPU], disk=[DISK], network=[NETWORK])
    extra = {cell.subsystem: jobs.extra([cell], one) for cell in one.cells}  # noqa: S610 - no Django here
    assert extra["cpu"] == "--exclusive --nodelist=n1" == extra["disk"]
    assert extra["network"] == "--exclusive --nodelist=n1 --dependency=singleton"
    parts = {part for _, part in jobs.groups(one)}
    assert parts == {"own", "pair"}


def test_a_comment_leads_back_to_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU], disk=[DISK])
    comments = [jobs.comment("c", cell) for cell in one.cells]
    assert len(set(comments)) == len(one.cells)
    for cell, comment in zip(one.cells, comments, strict=True):
        assert failures.cell_of(one, comment) == cell
    assert failures.cell_of(one, "rule_measure_wildcards_other_cpu") is None


@pytest.mark.parametrize("state", sorted(slurm.ENDED_BADLY))
def test_every_bad_end_becomes_an_attempt_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    cell = one.cells[0]
    details = {"Comment": jobs.comment("c", cell), "BatchHost": "node7.site", "ExitCode": "9:0", "StdOut": "/logs/5"}
    path = failures.keep(one, "5", state, details, NOW)
    assert path is not None
    record = records.read(path)
    assert (record["status"], record["context"]["host"], record["context"]["job_id"]) == ("failed", "node7", "5")
    assert record["reason"].startswith(f"Slurm ended job 5: {state}")
    assert failures.keep(one, "5", state, details, NOW) is None, "a job that wrote its own attempt gets no second"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "over-memory-kill.log",
            "OUT_OF_MEMORY: it used more memory than it had been granted (300M); memory_factor in",
        ),
        ("cgroup.log", "OUT_OF_MEMORY: it used more memory than it had been granted (300M); memory_factor in"),
        ("exit-code.log", "FAILED, exit code 1"),
        ("none.log", "FAILED, exit code 1"),
    ],
)
def test_a_step_without_memory_fails_its_job_and_only_the_log_tells_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, words: str
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    details = {
        "Comment": jobs.comment("c", one.cells[0]),
        "BatchHost": "node7",
        "ExitCode": "1:0",
        "StdOut": str(DATA / log),
        "MinMemoryNode": "300M",
    }
    path = failures.keep(one, "5", "FAILED", details, NOW)
    assert path is not None
    record = records.read(path)
    assert record["reason"].startswith(f"Slurm ended job 5: {words}")
    assert record["context"]["slurm"]["state"] == "FAILED", "what Slurm calls it stays on record"
    failure = status.last_failure(Campaign(one.directory, {}), one.cells[0])
    assert failure is not None and failure.job_log == DATA / log


def test_what_scontrol_tells_of_a_job_may_hold_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "JobId=2 JobName=0b9 UserId=root(0) Comment=rule_measure_wildcards_c_x Reason=NonZeroExitCode NodeList=node1 "
        "NumCPUs=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=848M,node=1,billing=2 Socks/Node=* MinMemoryNode=848M "
        "WorkDir=/tmp/a checkout StdErr=/tmp/a checkout/.snakemake/2.log StdIn=/dev/null "
        "StdOut=/tmp/a checkout/.snakemake/2.log Power= \n"
    )
    monkeypatch.setattr(slurm, "ask", lambda *_: text)
    found = slurm.job("2")
    assert found["StdOut"] == "/tmp/a checkout/.snakemake/2.log"
    assert (found["JobId"], found["NodeList"], found["MinMemoryNode"], found["Power"]) == ("2", "node1", "848M", "")
    assert found["TRES"] == "cpu=2,mem=848M,node=1,billing=2"
    assert found["Socks/Node"] == "*" and found["WorkDir"] == "/tmp/a checkout"


def test_of_a_job_for_a_node_the_cell_it_was_at_is_the_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[CPU], fan_out="node")
    comment = jobs.node_comment("c", "n1", "own")
    assert failures.cell_of(one, comment) is None
    records.write_file(one.directory / "nodes" / "n1.own.now", one.cells[1].id + "\n")
    assert failures.cell_of(one, comment) == one.cells[1]


def nodes(*names: str, state: str = "idle") -> list[slurm.Node]:
    return [slurm.Node(name, "main", 8, 4000, state, None, frozenset()) for name in names]


def chooser(monkeypatch: pytest.MonkeyPatch, found: list[slurm.Node]) -> Callable[..., Cluster]:
    monkeypatch.setattr(slurm, "nodes", lambda _partition: found)

    def choose(asked: Any, earlier: Path | None = None, seed: int = 1) -> Cluster:
        return cluster.find({"nodes": asked, "seed": seed}, None, earlier)

    return choose


def test_nodes_are_any_a_list_all_or_a_seeded_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [*nodes("n1", "n2", "n10"), *nodes("n3", state="down*")]
    choose = chooser(monkeypatch, found)
    assert choose("any").nodes == ("any",)
    assert choose(["n10", "n1"]).nodes == ("n10", "n1")
    everything = choose("all")
    assert set(everything.nodes) == {"n1", "n2", "n10"}
    assert everything.left_out == {"n3": "down*"}
    assert choose({"sample": 2}).nodes == choose({"sample": 2}).nodes
    assert {choose({"sample": 2}, seed=seed).nodes for seed in range(20)} == {
        ("n1", "n2"),
        ("n1", "n10"),
        ("n2", "n10"),
    }


def test_a_choice_that_cannot_be_met_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = chooser(monkeypatch, nodes("n1", "n2"))
    with pytest.raises(ConfigError, match="nodes has 'n9': partition main has n1, n2"):
        choose(["n9"])
    with pytest.raises(ConfigError, match=r"nodes\.sample is 3: partition main has 2 nodes"):
        choose({"sample": 3})
    with pytest.raises(ConfigError, match="no node of partition main can be used now"):
        chooser(monkeypatch, nodes("n1", state="drained"))("all")


def test_a_second_run_keeps_the_nodes_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = chooser(monkeypatch, nodes("n1", "n2"))("all")
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"cluster": first.to_json()}))
    later = [*nodes("n1", "n3"), *nodes("n2", state="down")]
    assert chooser(monkeypatch, later)("all", path).nodes == ("n1", "n2")
    assert set(chooser(monkeypatch, later)({"sample": 2}, path).nodes) == {"n1", "n3"}, "another choice is a new one"


@pytest.fixture
def looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[watch.Watch, list[tuple[str, str]]]:
    """A watch on jobs 1, 2 and 3, and what it keeps."""
    one = watch.Watch(made(tmp_path, monkeypatch, cpu=[CPU]))
    for number in ("1", "2", "3"):
        one.submitted(number)
    kept: list[tuple[str, str]] = []
    monkeypatch.setattr(one, "_keep", lambda number, state: kept.append((number, state)))
    return one, kept


def test_a_query_that_failed_ends_no_job(looking: tuple[watch.Watch, list[tuple[str, str]]]) -> None:
    one, kept = looking
    assert one.corrected(None) == {}
    assert set(one.waiting) == {"1", "2", "3"}
    assert kept == []


def test_a_job_that_slurm_forgot_is_looked_for_by_its_outputs(
    looking: tuple[watch.Watch, list[tuple[str, str]]],
) -> None:
    one, _ = looking
    assert "3" not in one.corrected({"1": "RUNNING", "2": "PENDING"}), "it may only be too new to be in the answer"
    assert one.corrected({"1": "RUNNING", "2": "PENDING"})["3"] == "UNKNOWN"
    assert set(one.waiting) == {"1", "2"}


def test_a_preempted_job_counts_as_ended_and_is_kept(looking: tuple[watch.Watch, list[tuple[str, str]]]) -> None:
    one, kept = looking
    states = one.corrected({"1": "PREEMPTED", "2": "COMPLETED", "3": "OUT_OF_MEMORY"})
    assert states == {"1": "CANCELLED", "2": "COMPLETED", "3": "OUT_OF_MEMORY"}
    assert sorted(kept) == [("1", "PREEMPTED"), ("3", "OUT_OF_MEMORY")]
    assert one.waiting == {}


def test_cells_are_what_their_paths_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    cell: Cell = one.cells[0]
    assert str(one.record_path(cell)) == one.record_name(cell) == f"results/c/cells/{cell.id}.json"
