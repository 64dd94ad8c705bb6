"""Rows that stay on the node of their first repetition where Slurm chooses it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.planning.planned import made, where
from tests.unit.running.slurm_site import ACCOUNT, Site, filled, refusal, steps

from peakmark import slurm
from peakmark.planning import jobs, plan
from peakmark.running import binding
from peakmark.running.run import Run
from peakmark.running.task import Task
from peakmark.storage import integrity


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> plan.Plan:
    """Two rows, DP x1 and DP x2, of three repetitions, where Slurm chooses the nodes."""
    kinds = [{"cpus": 8, "memory": 8000, "nodes": ["n1", "n2"]}]
    cpu = {"workloads": ["DP"], "concurrency": [1, 2]}
    return made(tmp_path, monkeypatch, where(kinds=kinds), cpu=[cpu], repetitions=3)


def begin(site: Site, **on: str) -> None:
    for number, node in on.items():
        site.on[number[1:]] = node
        site.states[number[1:]] = ("RUNNING", "None")


def test_a_row_stays_on_the_node_that_its_first_repetition_got(rows: plan.Plan, site: Site) -> None:
    queue, _ = filled(rows, site)
    steps(queue, site, 5)
    assert site.wanted() == ["", ""], "one of each row: where the others go is not known yet"
    first = {one.number: one.cells[0].row for one in queue.active.values()}
    begin(site, _1="n2")
    steps(queue, site, 3)
    assert site.wanted() == ["", "", "n2", "n2"], "the other row still waits"
    assert {queue.active[number].cells[0].row for number in ("3", "4")} == {first["1"]}
    begin(site, _2="n1")
    steps(queue, site, 3)
    assert site.wanted()[4:] == ["n1", "n1"]
    site.states = dict.fromkeys(site.states, ("COMPLETED", "None"))
    assert len(steps(queue, site, 3)) == 6 and not site.cancelled


def test_a_first_job_that_ended_between_two_looks_tells_its_node_at_once(rows: plan.Plan, site: Site) -> None:
    queue, _ = filled(rows, site)
    steps(queue, site, 1)
    queue.interval = 60.0  # a controller that answers slowly
    for task in list(queue.active.values()):
        begin(site, **{f"_{task.number}": "n2"})
        site.states[str(task.number)] = ("COMPLETED", "None")
        task.output.parent.mkdir(parents=True, exist_ok=True)
        task.output.write_text("{}")
    assert len(steps(queue, site, 4)) == 2
    assert site.wanted() == ["", "", *["n2"] * 4]


@pytest.mark.parametrize(
    ("down", "state", "words"),
    [
        ({"n2": "drained: disk"}, ("PENDING", "Resources"), "n2 is drained: disk"),
        ({}, ("PENDING", "ReqNodeNotAvail, UnavailableNodes:n2"), "Slurm says ReqNodeNotAvail"),
        ({}, ("PENDING", "BadConstraints"), "Slurm says BadConstraints"),  # n2 is too small for a program of the row
        ({}, ("PENDING", "Priority"), "others have had n2 for 15 min"),
    ],
)
def test_a_row_leaves_a_node_that_takes_no_jobs_or_is_others(
    down: dict[str, str], state: tuple[str, str], words: str, rows: plan.Plan, site: Site
) -> None:
    queue, said = filled(rows, site)
    steps(queue, site, 1)
    begin(site, _1="n2")
    steps(queue, site, 3)
    assert site.wanted() == ["", "", "n2", "n2"]
    site.states |= {"1": ("COMPLETED", "None"), "3": state, "4": state}
    site.nodes = down
    steps(queue, site, int(binding.PATIENCE_S) + 20)
    assert sorted(site.cancelled) == ["3", "4"]
    assert site.wanted() == ["", "", "n2", "n2", "", ""], "two anywhere, and the other row still waits"
    assert len(said) == 1 and words in said[0] and "mix hosts" in said[0]


@pytest.mark.parametrize("reason", ["QOSMaxJobsPerUserLimit", "Dependency", "JobHeldAdmin"])
def test_who_waits_for_a_limit_keeps_the_node(reason: str, rows: plan.Plan, site: Site) -> None:
    queue, _ = filled(rows, site)
    steps(queue, site, 1)
    begin(site, _1="n2")
    steps(queue, site, 3)
    site.states |= {"1": ("COMPLETED", "None"), "3": ("PENDING", reason), "4": ("PENDING", reason)}
    steps(queue, site, int(binding.PATIENCE_S) + 20)
    assert not site.cancelled and site.wanted() == ["", "", "n2", "n2"]


def test_a_node_that_this_run_itself_keeps_busy_is_waited_for(rows: plan.Plan, site: Site) -> None:
    queue, _ = filled(rows, site)
    steps(queue, site, 1)
    begin(site, _1="n2")
    steps(queue, site, int(2 * binding.PATIENCE_S))
    assert not site.cancelled and site.wanted() == ["", "", "n2", "n2"]


def test_a_refused_node_is_left(rows: plan.Plan, site: Site) -> None:
    queue, said = filled(rows, site)
    steps(queue, site, 1)
    real = site.submit

    def submit(options: Any, script: str) -> str:
        if "--nodelist=n2" in options:
            raise refusal("sbatch: error: Invalid node name specified")
        return real(options, script)

    slurm.submit = submit  # put back by the fixture's monkeypatch
    begin(site, _1="n2")
    assert steps(queue, site, 5) == [] and len(queue.active) == 4
    assert site.wanted() == ["", "", "", ""] and "mix hosts" in said[0]


def test_a_first_job_that_fails_decides_nothing(rows: plan.Plan, site: Site) -> None:
    queue, _ = filled(rows, site)
    steps(queue, site, 1)
    site.states["1"] = ("CANCELLED", "None")
    (ended,) = steps(queue, site, 3)
    assert ended.task.cells[0].concurrency in (1, 2)
    assert site.wanted() == ["", "", ""], "the next repetition is the first now"
    begin(site, _3="n1")
    steps(queue, site, 3)
    assert site.wanted() == ["", "", "", "n1"]


def test_a_row_that_waits_for_ever_is_given_up_whole(rows: plan.Plan, site: Site) -> None:
    site.nodes = {"n1": "down", "n2": "down"}
    queue, _ = filled(rows, site, give_up_s=30.0)
    steps(queue, site, 2)
    site.states = dict.fromkeys(site.states, ("PENDING", "Nodes required for job are DOWN, DRAINED or reserved"))
    assert len(steps(queue, site, 60)) == 6, "those too that stayed back, and not one after the other"


def test_a_refusal_ends_the_jobs_that_stay_back_too(rows: plan.Plan, site: Site) -> None:
    site.refuses = lambda _: ACCOUNT
    queue, _ = filled(rows, site)
    assert len(steps(queue, site, 3)) == 6 and not queue.rows.back()


def test_what_an_earlier_run_has_measured_binds_the_rest(rows: plan.Plan, site: Site) -> None:
    found = {cell.id: integrity.Finding(integrity.ABSENT) for cell in rows.cells}
    one, two = (cell for cell in rows.cells if cell.repetition == 0)
    for cell, host in ((one, "n2.site"), (two, "another-name")):
        found[cell.id] = integrity.Finding(integrity.GOOD, data={"context": {"host": host, "server_host": None}})
    queue, _ = filled(rows, site, rows=binding.Rows(rows.together, binding.known(rows, found)))
    steps(queue, site, 2)
    assert sorted(site.wanted()) == ["", "n2", "n2", "n2"]


def test_a_node_that_is_too_small_for_what_is_left_of_a_row_binds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row was measured there before a program that needs more was put beside it."""
    kinds = [{"cpus": 2, "memory": 1400, "nodes": ["n1"]}, {"cpus": 2, "memory": 64000, "nodes": ["n2"]}]
    memory = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "pool": "700MiB", "concurrency": [1]}

    def bound(**references: Any) -> dict[str, str]:
        grid = {**memory, "references": references}
        one = made(tmp_path, monkeypatch, where(kinds=kinds), memory=[grid], tools={"pmbw": "/p"})
        found = {cell.id: integrity.Finding(integrity.ABSENT) for cell in one.cells}
        own = next(cell for cell in one.cells if cell.instrument == "rambench")
        found[own.id] = integrity.Finding(integrity.GOOD, data={"context": {"host": "n1"}})
        return binding.known(one, found)

    assert list(bound().values()) == ["n1"]
    assert bound(pmbw={}) == {}


def test_a_program_that_fills_several_rows_follows_the_first_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    disk = {
        "workloads": ["RS", "WR"],
        "blocks": ["4KiB"],
        "concurrency": [1],
        "size": "8MiB",
        "references": {"iozone": {}},
    }
    kinds = [{"cpus": 8, "memory": 8000, "nodes": ["n1", "n2"]}]
    one = made(tmp_path, monkeypatch, where(kinds=kinds), disk=[disk], tools={"iozone": "/i"})
    nothing = dict.fromkeys((cell.id for cell in one.cells), integrity.Finding(integrity.ABSENT))
    queue = Run.queue(cast(Run, SimpleNamespace(plan=one, findings=nothing)), print)
    queue.clock = lambda: site.now
    for place, cell in enumerate(one.cells):
        queue.add(Task(place, (cell,), Path(one.record_name(cell)), jobs.comment(one, [cell]), (), "#!/bin/bash\n"))
    steps(queue, site, 3)
    assert site.wanted() == [""]
    begin(site, _1="n2")
    steps(queue, site, 3)
    assert site.wanted() == ["", "n2", "n2"]


def test_jobs_that_a_killed_run_left_decide_where_their_rows_run(rows: plan.Plan, site: Site) -> None:
    last = next(cell for cell in rows.cells if cell.repetition == 2)
    site.submitted.append(())
    site.states["1"] = ("PENDING", "Priority")
    queue, _ = filled(rows, site, adopted={jobs.comment(rows, [last]): "1"})
    steps(queue, site, 3)
    assert len(site.submitted) == 2, "the other row's first"
    begin(site, _1="n2")
    steps(queue, site, 3)
    assert site.wanted() == ["", "", "n2", "n2"]
