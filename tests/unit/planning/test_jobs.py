"""What jobs ask for, which nodes are chosen, and what is made of the states that Slurm tells."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data

from peakmark import files, slurm
from peakmark.cell import Cell
from peakmark.errors import ConfigError
from peakmark.planning import cluster, jobs, plan, plan_text
from peakmark.planning.cluster import Cluster
from peakmark.running import failures, status
from peakmark.storage import records
from peakmark.storage.results import Results

DATA = campaign_data.DATA / "slurm"
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


def test_small_nodes_are_left_to_cells_that_fit_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [{"cpus": 1, "memory": 8000, "nodes": ["n1"]}, {"cpus": 2, "memory": 300, "nodes": ["n2", "n3"]}]
    kinds += [{"cpus": 4, "memory": 4000, "nodes": ["n4"]}]
    there = where(cpus=1, memory=300, kinds=kinds)
    cpu = {"workloads": ["DP"], "concurrency": [1, 2, 128]}
    one = made(tmp_path, monkeypatch, there, cpu=[cpu], disk=[DISK], network=[NETWORK])

    def left_out(cells: list[Cell]) -> list[str]:
        return [word for word in jobs.options(cells, one, {}) if word.startswith("--exclude")]

    found = {cell.concurrency: left_out([cell]) for cell in one.cells if cell.subsystem == "cpu"}
    assert found == {1: ["--exclude=n[2-3]"], 2: ["--exclude=n[1-3]"], 128: ["--exclude=n[1-3]"]}
    assert left_out([cell for cell in one.cells if cell.subsystem == "cpu"]) == ["--exclude=n[1-3]"]
    assert not left_out([cell for cell in one.cells if cell.subsystem == "network"]), (
        "it takes two, whatever their size"
    )
    assert there.too_small(4, 8000) == [], "no node has both: Slurm chooses"
    threads = {cell.concurrency: jobs.threads([cell], there) for cell in one.cells if cell.subsystem == "cpu"}
    assert threads == {1: 1, 2: 2, 128: 4}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("n1", "n1"),
        ("n1 n2 n3 n5", "n[1-3,5]"),
        ("n8 n9 n10 n11", "n[8-9,10-11]"),
        ("n008 n009 n010 n1", "n[1,008-010]"),
        ("gpu r1c1 r1c2 r2c1 login", "gpu,login,r1c[1-2],r2c1"),
        ("", ""),
    ],
)
def test_many_nodes_are_written_as_slurm_writes_them(names: str, text: str) -> None:
    assert slurm.hostlist(names.split()) == text


def test_the_small_nodes_of_a_large_cluster_are_a_short_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [
        {"cpus": 1, "memory": 8000, "nodes": [f"cn{number:05}" for number in range(1, 5001) if number % 100]},
        {"cpus": 2, "memory": 8000, "nodes": [f"cn{number:05}" for number in range(1, 5001) if not number % 100]},
    ]
    there = where(nodes=tuple(kinds[0]["nodes"]), kinds=kinds)  # type: ignore[arg-type] # the names are a list
    one = made(tmp_path, monkeypatch, where(cpus=1, kinds=kinds), cpu=[CPU])
    (word,) = (
        word
        for cell in one.cells
        for word in jobs.options([cell], one, {})
        if word.startswith("--exclude") and cell.concurrency == 128
    )
    assert len(word) < 1000 and word.startswith("--exclude=cn[00001-00099,00101-00199,")
    # What a process is started with may be 128 KiB a word, and the names alone are more.
    monkeypatch.setenv(cluster.VARIABLE, "")
    cluster.to_environment(there)
    assert cluster.from_environment() == there
    subprocess.run(["true"], check=True)


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


def asked(one: plan.Plan, **given: Any) -> dict[str, list[str]]:
    return {cell.subsystem: jobs.options([cell], one, given) for cell in one.cells}


def test_only_what_is_shared_beyond_the_node_waits_for_its_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[CPU], disk=[DISK], network=[NETWORK])
    words = asked(one)
    assert "--nodelist=n1" in words["cpu"] and "--nodes=1" in words["cpu"] and "--nodes=2" in words["network"]
    assert {name for name, found in words.items() if "--dependency=singleton" in found} == {"network"}
    (network,) = (cell for cell in one.cells if cell.subsystem == "network")
    assert jobs.name(one, [network], {}) == "c.pair", "singleton goes by the name"


def test_an_exclusive_job_takes_all_of_its_node_and_a_site_may_forbid_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    words = asked(one)["cpu"]
    assert "--exclusive" in words and "--mem=0" in words and not any("cpus" in word for word in words)
    shared = asked(one, exclusive=False)["cpu"]
    assert "--exclusive" not in shared and "--cpus-per-task=8" in shared and "--mem=660M" in shared
    assert "--mem-per-cpu=83M" in asked(one, memory="per_cpu")["cpu"]
    assert not [word for word in asked(one, memory="none")["cpu"] if "mem" in word]
    assert "--account=a" in asked(one, account="a")["cpu"]


def test_both_ends_of_a_pair_are_in_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = ("n1", "n2", "n3")
    ring, fixed, chance = (
        made(tmp_path, monkeypatch, where(nodes=nodes), network=[NETWORK], peers=how)
        for how in ("ring", "fixed", "random")
    )
    assert ring.peers == {"n1": "n2", "n2": "n3", "n3": "n1"}
    assert fixed.peers == {"n1": "n2", "n2": "n1", "n3": "n1"}
    assert set(chance.peers) == set(chance.peers.values()) == set(nodes)
    assert all(node != peer for node, peer in chance.peers.items())
    lists = {word for cell in ring.cells for word in jobs.options([cell], ring, {}) if word.startswith("--nodelist")}
    assert lists == {"--nodelist=n1,n2", "--nodelist=n2,n3", "--nodelist=n3,n1"}
    lanes = {cell.node: jobs.name(ring, [cell], {"pairs": 2}) for cell in ring.cells}
    assert lanes == {"n1": "c.pair0", "n2": "c.pair1", "n3": "c.pair0"}


def test_a_comment_has_the_cell_and_changes_with_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU], disk=[DISK])
    comments = [jobs.comment(one, [cell]) for cell in one.cells]
    assert [comment.partition(" ")[0] for comment in comments] == [f"c/{cell.id}" for cell in one.cells]
    longer = made(tmp_path, monkeypatch, cpu=[CPU], disk=[DISK], seconds=9)
    assert not {jobs.comment(longer, [cell]) for cell in longer.cells} & set(comments)
    elsewhere = jobs.comment(one, one.cells[:1], tmp_path / "other")
    assert elsewhere != comments[0], "a job of another checkout is no job of this one"


def test_batches_hold_so_many_cells_in_running_order_and_rows_that_decide_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = {"workloads": ["DP", "SP", "HP"], "concurrency": [1]}
    one = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[grid], repetitions=3, fan_out={"batch": 4})
    assert [len(cells) for cells in one.jobs.values()] == [4, 4, 1]
    assert [cell for cells in one.jobs.values() for cell in cells] == list(one.cells)
    narrow = {**grid, "repetitions": {"min": 6, "max": 8, "until": "2%"}}
    two = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[narrow], fan_out={"batch": 4})
    assert [{cell.row for cell in cells} for cells in two.jobs.values()] and len(two.jobs) == 3
    assert all(len({cell.row for cell in cells}) == 1 for cells in two.jobs.values())


def test_the_plan_names_nodes_that_are_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [
        {"cpus": 2, "memory": 500, "nodes": ["n1", "n2"]},
        {"cpus": 256, "memory": 64000, "nodes": ["n3"]},
    ]
    memory = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "concurrency": [1], "pool": "1GiB"}
    one = made(tmp_path, monkeypatch, where(kinds=kinds), cpu=[CPU], memory=[memory])
    (line,) = (line for line in plan_text.describe(one).splitlines() if line.startswith("too small"))
    assert "n1, n2: 2 CPUs for up to 128 threads" in line and "of memory for up to" in line and "n3" not in line


@pytest.mark.parametrize(
    ("config", "nodes", "count", "told"),
    [
        ({"repetitions": 2}, ("any",), 3, True),
        ({"repetitions": 1}, ("any",), 3, False),
        ({"repetitions": 2}, ("any",), 1, False),
        ({"repetitions": 2}, ("n1", "n2"), 3, False),
        ({"repetitions": 2, "fan_out": "node"}, ("any",), 3, False),
        ({"repetitions": 2, "fan_out": {"batch": 3}}, ("any",), 3, True),
    ],
)
def test_the_plan_says_where_rows_may_mix_nodes(
    config: dict[str, Any],
    nodes: tuple[str, ...],
    count: int,
    told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = made(tmp_path, monkeypatch, where(nodes=nodes, count=count), cpu=[CPU], **config)
    assert ("may mix nodes, and nothing is claimed" in plan_text.describe(one)) is told


@pytest.mark.parametrize("state", sorted(slurm.ENDED_BADLY))
def test_every_bad_end_becomes_an_attempt_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    cell = one.cells[0]
    details = {"BatchHost": "node7.site", "ExitCode": "9:0", "StdOut": "/logs/5"}
    path = failures.keep(one, [cell], "5", state, details, NOW)
    assert path is not None
    record = records.read(path)
    assert (record["status"], record["context"]["host"], record["context"]["job_id"]) == ("failed", "node7", "5")
    assert record["reason"].startswith(f"Slurm ended job 5: {state}")
    assert failures.keep(one, [cell], "5", state, details, NOW) is None, (
        "a job that wrote its own attempt gets no second"
    )


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
        "BatchHost": "node7",
        "ExitCode": "1:0",
        "StdOut": str(DATA / log),
        "MinMemoryNode": "300M",
    }
    path = failures.keep(one, one.cells[:1], "5", "FAILED", details, NOW)
    assert path is not None
    record = records.read(path)
    assert record["reason"].startswith(f"Slurm ended job 5: {words}")
    assert record["context"]["slurm"]["state"] == "FAILED", "what Slurm calls it stays on record"
    failure = status.last_failure(Results(one.directory, {}), one.cells[0])
    assert failure is not None and failure.job_log == DATA / log


def test_a_job_that_had_its_whole_node_is_not_told_to_ask_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    details = {"MinMemoryNode": "0", "TRES": "cpu=2,mem=4G,node=1,billing=2", "BatchHost": "n1"}
    path = failures.keep(one, one.cells[:1], "5", "OUT_OF_MEMORY", details, NOW)
    assert path is not None
    reason = records.read(path)["reason"]
    assert "granted (4G), all that Slurm gives of its node: a smaller pool:" in reason and "memory_factor" not in reason


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
    ((name, cells),) = one.jobs.items()
    assert name == "n1.own" and failures.keep(one, cells, "5", "NODE_FAIL", {}, NOW) is None
    files.write_text(one.directory / "nodes" / "n1.own.now", one.cells[1].id + "\n")
    path = failures.keep(one, cells, "5", "NODE_FAIL", {}, NOW)
    assert path is not None and Cell.from_json(records.read(path)["cell"]) == one.cells[1]


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


@pytest.mark.parametrize(
    "cluster", [{"nodes": ["n9"]}, 5, ["asked"], {"asked": "all", "partition": "main", "nodes": 5}]
)
def test_a_damaged_plan_keeps_no_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"cluster": cluster}))
    assert chooser(monkeypatch, nodes("n1", "n2"))("all", path).nodes == ("n1", "n2")


def test_cells_are_what_their_paths_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    cell: Cell = one.cells[0]
    assert one.record_name(cell) == f"results/c/cells/{cell.id}.json"
