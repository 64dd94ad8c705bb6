"""What jobs ask for, which nodes are chosen, and what is made of the states that Slurm tells."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plan.planned import CPU, DISK, NETWORK, asked, where

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.plan import cluster, jobs, plan

Planned = Callable[..., plan.Plan]


def test_many_threads_do_not_ask_for_more_cpus_than_a_node_has(planned: Planned) -> None:
    one = planned(cpu=[CPU])
    assert {cell.concurrency: jobs.threads([cell], one) for cell in one.cells} == {1: 1, 128: 8}
    assert jobs.megabytes(one.cells, planned(where(memory=100), cpu=[CPU])) == 100


SMALL = {"cpus": 2, "memory": 8000, "nodes": ["n1", "n2", "n3"]}
LARGE = {"cpus": 128, "memory": 64000, "nodes": ["n4", "n5"]}
SINGLE = {"cpus": 256, "memory": 64000, "nodes": ["n6"]}


@pytest.mark.parametrize(
    ("kinds", "concurrency", "excluded", "pair_excluded"),
    [
        ([SMALL, LARGE], 2, "n[4-5]", "n[4-5]"),  # both hold all rows: the larger class
        ([SMALL, LARGE], 64, "n[1-3]", "n[1-3]"),
        # None has so many: the nearest; two nodes of any class.
        ([SMALL, LARGE, SINGLE], 512, "n[1-5]", ""),
        ([SMALL], 512, "", ""),
        ([{**SMALL, "usable": 0}, LARGE], 2, "n[1-3]", "n[1-3]"),
        ([SMALL, {**LARGE, "chosen": True}], 2, "n[1-3]", "n[1-3]"),  # an earlier run has chosen it
        ([SMALL, {**LARGE, "memory": 100}], 64, "n[1-3]", "n[1-3]"),  # CPUs before memory
    ],
)
def test_any_node_is_one_of_the_class_that_holds_all_rows(
    kinds: list[dict[str, Any]],
    concurrency: int,
    excluded: str,
    pair_excluded: str,
    planned: Planned,
) -> None:
    cpu = {"workloads": ["DP"], "concurrency": [1, concurrency]}
    one = planned(where(cpus=2, kinds=kinds), cpu=[cpu], disk=[DISK], network=[NETWORK])

    def exclude(cell: Cell) -> str:
        words = (word for word in jobs.options([cell], one, {}) if word.startswith("--exclude="))
        return next(words, "").removeprefix("--exclude=")

    assert {exclude(cell) for cell in one.cells if not plan.two_nodes(cell)} == {excluded}
    assert {exclude(cell) for cell in one.cells if plan.two_nodes(cell)} == {pair_excluded}
    for cell in one.cells:
        nodes, count = jobs.eligible([cell], one)
        assert len(nodes) >= count and not set(nodes) & set(cluster_names(exclude(cell)))


def cluster_names(text: str) -> list[str]:
    """``n[1-3]`` -> n1, n2, n3."""
    first, last = text.removeprefix("n[").removesuffix("]").split("-") if text else ("1", "0")
    return [f"n{number}" for number in range(int(first), int(last) + 1)]


def test_jobs_that_need_two_free_nodes_come_last(planned: Planned) -> None:
    """While such a job waits, one of its nodes is idle."""
    one = planned(cpu=[CPU], network=[NETWORK], disk=[DISK], repetitions=3)
    order = [plan.two_nodes(cell) for cell in one.cells]
    assert order == sorted(order) and set(order) == {False, True}


def test_a_word_asks_for_the_memory_of_all_cpus_of_a_node(planned: Planned) -> None:
    """How many threads it means on the machine that plans says nothing of the nodes."""
    memory = {"workloads": ["RWS"], "variants": ["block"], "blocks": ["64MiB"]}
    memory["concurrency"] = ["cores"]
    kinds = [{"cpus": 128, "memory": 256000, "nodes": ["n1"]}]
    one = planned(where(cpus=2, kinds=kinds), memory=[memory])
    assert jobs.megabytes(one.cells, one) == pytest.approx(128 * 129 * 1.048576 / 0.9 + 512, abs=2)
    assert jobs.threads(one.cells, one) == 128


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


def test_the_small_nodes_of_a_large_cluster_are_a_short_option(
    monkeypatch: pytest.MonkeyPatch, planned: Planned
) -> None:
    names = [f"cn{number:05}" for number in range(1, 5001)]
    large = names[99::100]
    small = [name for name in names if name not in large]
    kinds = [
        {"cpus": 1, "memory": 8000, "nodes": small},
        {"cpus": 2, "memory": 8000, "nodes": large},
    ]
    there = where(nodes=tuple(kinds[0]["nodes"]), kinds=kinds)  # type: ignore[arg-type] # the names are a list
    one = planned(where(cpus=1, kinds=kinds), cpu=[CPU])
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


def test_memory_of_jobs_can_be_made_more(planned: Planned) -> None:
    Path("site.yaml").write_text("{schema: 1, name: here, slurm: {memory_factor: 1.5}}")
    plain, more = (planned(cpu=[CPU], **site) for site in ({}, {"site": "site.yaml"}))
    assert jobs.megabytes(more.cells, more) == pytest.approx(
        1.5 * jobs.megabytes(plain.cells, plain), abs=2
    )


def test_the_limit_lies_between_two_minutes_and_that_of_the_partition(planned: Planned) -> None:
    short = planned(cpu=[CPU], seconds=0.1)
    assert jobs.minutes(short.cells[:1], short) == 2
    long = planned(cpu=[CPU], seconds=3600)
    assert jobs.minutes(long.cells[:1], long) == 60
    unlimited = planned(where(limit=None), cpu=[CPU], seconds=3600)
    assert jobs.minutes(unlimited.cells[:1], unlimited) > 180


def test_the_limit_has_room_for_the_jobs_that_share_the_node(planned: Planned) -> None:
    Path("site.yaml").write_text("{schema: 1, name: here, slurm: {exclusive: false}}")
    cpu = [{**CPU, "concurrency": [1, 16]}]
    one = planned(where(cpus=16, limit=None), cpu=cpu, seconds=60, site="site.yaml")
    few, many = sorted(one.cells, key=lambda cell: cell.concurrency)[:: len(one.cells) - 1]
    assert jobs.minutes([few], one) > 8 * jobs.minutes([many], one)


def test_only_what_is_shared_beyond_the_node_waits_for_its_like(planned: Planned) -> None:
    one = planned(where(nodes=("n1",)), cpu=[CPU], disk=[DISK], network=[NETWORK])
    words = asked(one)
    assert {"--nodelist=n1", "--nodes=1"} <= {*words["cpu"]} and "--nodes=2" in words["network"]
    alone = {name for name, found in words.items() if "--dependency=singleton" in found}
    assert alone == {"network"}
    (network,) = (cell for cell in one.cells if cell.subsystem == "network")
    assert jobs.name(one, [network], {}) == "c.pair"  # singleton goes by the name


def test_an_exclusive_job_takes_all_of_its_node_and_a_site_may_forbid_it(planned: Planned) -> None:
    one = planned(cpu=[CPU])
    words = asked(one)["cpu"]
    assert "--exclusive" in words and "--mem=0" in words
    assert not any("cpus" in word for word in words)
    shared = asked(one, exclusive=False)["cpu"]
    assert "--exclusive" not in shared and "--cpus-per-task=8" in shared and "--mem=662M" in shared
    assert "--mem-per-cpu=83M" in asked(one, memory="per_cpu")["cpu"]
    assert not [word for word in asked(one, memory="none")["cpu"] if "mem" in word]
    assert "--account=a" in asked(one, account="a")["cpu"]


def test_a_comment_has_the_cell_and_changes_with_what_is_measured(planned: Planned) -> None:
    one = planned(cpu=[CPU], disk=[DISK])
    comments = [jobs.comment(one, [cell]) for cell in one.cells]
    firsts = [comment.partition(" ")[0] for comment in comments]
    assert firsts == [f"c/{cell.id}" for cell in one.cells]
    longer = planned(cpu=[CPU], disk=[DISK], seconds=9)
    assert not {jobs.comment(longer, [cell]) for cell in longer.cells} & set(comments)
    elsewhere = jobs.comment(one, one.cells[:1], Path("other"))
    assert elsewhere != comments[0]  # a job of another checkout is no job of this one


def test_batches_hold_so_many_cells_in_running_order_and_rows_that_decide_whole(
    planned: Planned,
) -> None:
    grid = {"workloads": ["DP", "SP", "HP"], "concurrency": [1]}
    one = planned(where(nodes=("n1",)), cpu=[grid], repetitions=3, fan_out={"batch": 4})
    assert [len(cells) for cells in one.jobs.values()] == [4, 4, 1]
    assert [cell for cells in one.jobs.values() for cell in cells] == list(one.cells)
    narrow = {**grid, "repetitions": {"min": 6, "max": 8, "until": "2%"}}
    two = planned(where(nodes=("n1",)), cpu=[narrow], fan_out={"batch": 4})
    assert [{cell.row for cell in cells} for cells in two.jobs.values()] and len(two.jobs) == 3
    assert all(len({cell.row for cell in cells}) == 1 for cells in two.jobs.values())


@pytest.mark.parametrize(("node", "whole"), [("any", True), ("n1", False)])
def test_where_slurm_chooses_the_node_a_job_has_rows_whole_with_the_programs_beside_them(
    node: str, whole: bool, planned: Planned
) -> None:
    grid = {"workloads": ["DP", "SP"], "concurrency": [1, 2], "references": {"likwid-bench": {}}}
    changes = {"repetitions": 3, "reference_repetitions": 3, "fan_out": {"batch": 4}}
    one = planned(where(nodes=(node,)), cpu=[grid], **changes)
    jobs_of: dict[str, set[str]] = {}
    for name, cells in one.jobs.items():
        assert cells == [cell for cell in one.cells if cell in cells]  # in the plan's order
        for cell in cells:
            jobs_of.setdefault(plan.same_node_key(cell), set()).add(name)
    assert len(one.jobs) > 1 and all(len(names) == 1 for names in jobs_of.values()) is whole


def test_a_program_that_fills_several_rows_holds_them_on_one_node(planned: Planned) -> None:
    """IOZone measures all patterns of a record in one go, ping and qperf stand beside every number
    of streams.
    """
    tools = {name: f"/{name}" for name in ("iozone", "qperf", "ping")}
    disk = {"workloads": ["RS", "WR"], "blocks": ["4KiB", "1MiB"], "concurrency": [1, 2]}
    disk["size"] = "8MiB"  # type: ignore[assignment]
    network = {"workloads": ["LAT-TCP", "LAT-UDP"], "blocks": ["1B"], "concurrency": [1, 2]}

    def groups(references: dict[str, Any], **changes: Any) -> list[set[str]]:
        on = {"disk": [{**disk, "references": references.get("disk", {})}]}
        on["network"] = [{**network, "references": references.get("network", {})}]
        one = planned(tools=tools, **on, **changes)
        found: dict[str, set[str]] = {}
        for cell in one.cells:
            found.setdefault(plan.same_node_key(cell, plan.multi_row_tools(one.cells)), set()).add(
                cell.row
            )
        in_job = {cell.id: name for name, cells in one.jobs.items() for cell in cells}
        for rows in found.values():
            assert len({in_job.get(cell.id) for cell in one.cells if cell.row in rows}) == 1
        return sorted(found.values(), key=lambda rows: (len(rows), sorted(rows)))

    assert {len(rows) for rows in groups({})} == {1}
    fan_out = {"batch": 2}
    *by_record, latency = groups(
        {"disk": {"iozone": {}}, "network": {"ping": {}, "qperf": {}}}, fan_out=fan_out
    )
    own = {f"netbench/LAT-{name}_1B_x{streams}" for name in ("TCP", "UDP") for streams in (1, 2)}
    both = {*own, "ping/LAT-ICMP_none_x1", "qperf/ALL_1B_x1"}
    assert len(by_record) == 4 and latency == {f"network/{name}/any" for name in both}
    assert {
        "disk/diskbench/RS-psync_4KiB_x2/any",
        "disk/diskbench/WR-psync_4KiB_x2/any",
        "disk/iozone/ALL-psync_4KiB_x2/any",
    } in by_record
