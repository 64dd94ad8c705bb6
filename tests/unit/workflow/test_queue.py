"""Jobs in Slurm: handed over, waited for, given up; with the words that real Slurms say, and no
Slurm.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plan.planned import CPU, made, where
from tests.unit.workflow.slurm_site import ACCOUNT, LIMIT, NO_ANSWER, Site, filled, refusal, steps

from peakmark import slurm
from peakmark.plan import jobs, plan
from peakmark.run import job
from peakmark.storage import records
from peakmark.workflow import progress
from peakmark.workflow import queue as queues
from peakmark.workflow.queue import Queue
from peakmark.workflow.task import Task


@pytest.fixture
def four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> plan.Plan:
    return made(tmp_path, monkeypatch, cpu=[{**CPU, "workloads": ["DP", "SP"]}])


def test_jobs_go_in_the_order_of_the_plan_with_their_cell_as_comment(
    four: plan.Plan, site: Site
) -> None:
    queue, _ = filled(four, site, max_jobs=3)
    assert queue.hands_over
    steps(queue, site, 1)
    assert queue.waiting and not queue.hands_over, "three are there"
    assert [words[-1] for words in site.submitted] == [
        f"--comment={jobs.comment(four, [cell])}" for cell in four.cells[:3]
    ]
    site.states["1"] = ("COMPLETED", "None")
    (ended,) = steps(queue, site, 3)
    assert ended.task.cells == four.cells[:1] and ended.why is None
    assert len(site.submitted) == 4  # one has ended, so there is room for the last


def test_jobs_of_two_nodes_follow_those_of_one_however_snakemake_tells_of_them(
    four: plan.Plan, site: Site
) -> None:
    queue = Queue(four, clock=lambda: site.now)
    # The plan's order is one, one, pair, pair; Snakemake has told of the first and the last two so far.
    tasks = [
        Task(
            place,
            (cell,),
            Path(four.record_name(cell)),
            jobs.comment(four, [cell]),
            (f"--comment={place}",),
            "",
        )
        for place, cell in enumerate(four.cells)
    ]
    for place in (2, 3):
        tasks[place].nodes, tasks[place].node_count = ("n1", "n2"), 2
    for place in (0, 2, 3):
        queue.add(tasks[place])
    steps(queue, site, 1)
    assert not queue.hands_over
    queue.add(tasks[1])
    steps(queue, site, 5)
    assert [words[0] for words in site.submitted] == [f"--comment={place}" for place in range(4)]


def test_a_job_of_several_cells_tells_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    one = made(
        tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[CPU], repetitions=3, fan_out="node"
    )
    ((name, cells),) = one.jobs.items()
    output = job.output_path(one.directory, name)
    for what in ("steps", "behind"):
        monkeypatch.setattr(progress, what, {})
    progress.steps[str(output)] = {cell.id: 1.0 for cell in cells}
    queue = Queue(one, clock=lambda: site.now)
    queue.add(Task(0, tuple(cells), output, jobs.comment(one, cells), (), "#!/bin/bash\n"))
    steps(queue, site, 2)
    now = job.present_path(one.directory, name)
    now.parent.mkdir(parents=True)
    now.write_text(f"{cells[2].id}\n")
    steps(queue, site, 2)
    assert progress.cells() == (0, len(cells))  # what an earlier job has left there tells nothing
    site.states["1"] = ("RUNNING", "None")
    steps(queue, site, 2)
    assert progress.cells() == (2, len(cells))


def test_a_killed_job_of_several_cells_measures_none_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    one = made(
        tmp_path, monkeypatch, where(nodes=("n1", "n2")), cpu=[CPU], repetitions=3, fan_out="node"
    )
    queue = Queue(one, clock=lambda: site.now, retries=0)
    presents = []
    for place, (name, cells) in enumerate(one.jobs.items()):
        output = job.output_path(one.directory, name)
        queue.add(Task(place, tuple(cells), output, jobs.comment(one, cells), (), ""))
        presents.append(job.present_path(one.directory, name))
        presents[-1].parent.mkdir(parents=True, exist_ok=True)
        presents[-1].write_text(f"{cells[2].id}\n")
    steps(queue, site, 2)
    site.states = {"1": ("NODE_FAIL", "None"), "2": ("RUNNING", "None")}
    (ended,) = steps(queue, site, 2)
    (path,) = records.attempts(one.directory, ended.task.cells[2])
    assert "NODE_FAIL" in records.read(path)["reason"]  # the cell that it was measuring is known
    assert not presents[0].exists() and presents[1].exists()
    queue.cancel()
    assert not presents[1].exists()


def test_the_end_is_no_error_while_slurm_does_not_answer(
    four: plan.Plan, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while sbatch waits for the controller, and more submissions wait for sbatch."""
    monkeypatch.setattr(queues, "CANCEL_S", 0.01)
    asked, answers = threading.Event(), threading.Event()
    real = site.submit

    def hangs(options: Any, script: str) -> str:
        asked.set()
        answers.wait(60)
        return real(options, script)

    monkeypatch.setattr(slurm, "submit", hangs)
    queue, _ = filled(four, site)
    with ThreadPoolExecutor(1) as thread:
        step = thread.submit(queue.step)
        assert asked.wait(60)
        queue.cancel()
        answers.set()
        assert step.result(60) == []
    # What was not handed over yet is not.
    assert len(site.submitted) == 1 and len(queue.waiting) == 3


def test_one_late_answer_does_not_keep_the_end_of_a_job_for_an_hour(
    four: plan.Plan, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty times as long as the answer took would be hours where the machine had stood still for
    some minutes.
    """
    queue, _ = filled(four, site)
    steps(queue, site, 2)

    def late(_states: str = "") -> list[slurm.Job]:
        site.now += 300.0
        monkeypatch.setattr(slurm, "jobs", site.jobs)
        return site.jobs()

    monkeypatch.setattr(slurm, "jobs", late)
    assert steps(queue, site, 2) == []
    site.states = dict.fromkeys(site.states, ("FAILED", "NonZeroExitCode"))
    assert len(steps(queue, site, 70)) == 4


def test_a_limit_of_submissions_is_waited_for_and_told_once(four: plan.Plan, site: Site) -> None:
    site.refuses = lambda _: (
        LIMIT if len([1 for s, _ in site.states.values() if s == "PENDING"]) >= 2 else None
    )
    queue, said = filled(four, site)
    assert steps(queue, site, 10) == []
    assert (len(site.submitted), len(said)) == (2, 1)
    # Nobody asks again and again meanwhile, beside what is measured.
    assert queue.waiting and not queue.hands_over
    site.states = dict.fromkeys(site.states, ("COMPLETED", "None"))
    assert len(steps(queue, site, 10)) == 2 and len(site.submitted) == 4
    assert not list(records.attempts(four.directory, four.cells[3]))  # that is no failure


def test_a_job_whose_submission_was_not_answered_is_not_handed_over_twice(
    four: plan.Plan, site: Site
) -> None:
    """slurmctld took it and answered too late: what sbatch says then, and the job is in the queue."""
    queue, _ = filled(four, site)
    late = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    real = site.submit

    def answers_late(options: Any, script: str) -> str:
        number = real(options, script)
        if number == "2":
            site.silent = True
            raise refusal(late)
        return number

    slurm.submit = answers_late  # put back by the fixture's monkeypatch
    steps(queue, site, 10)
    assert len(queue.active) == 3 and len(site.submitted) == 4  # whether it is there is not known
    site.silent = False
    steps(queue, site, 10)
    assert sorted(queue.active) == ["1", "2", "3", "4"] and len(site.submitted) == 4


def test_jobs_of_lost_submissions_are_ended_too(four: plan.Plan, site: Site) -> None:
    queue, _ = filled(four, site)
    real = site.submit

    def never_answers(options: Any, script: str) -> str:
        real(options, script)
        raise NO_ANSWER

    slurm.submit = never_answers
    queue.step()
    assert not queue.active
    queue.cancel()
    assert sorted(site.cancelled) == ["1", "2", "3", "4"]
    assert queue.step() == [] and len(site.submitted) == 4  # nothing is submitted afterwards


def test_a_refusal_is_an_attempt_like_any_failure(four: plan.Plan, site: Site) -> None:
    site.refuses = lambda _: ACCOUNT
    queue, _ = filled(four, site)
    ended = steps(queue, site, 2)
    assert len(ended) == 4 and not queue.waiting and not queue.active
    for cell in four.cells:
        (path,) = records.attempts(four.directory, cell)
        reason = records.read(path)["reason"]
        assert "Invalid account" in reason and "slurm.account" in reason
        assert "sbatch" not in reason


def test_a_controller_that_is_away_ends_no_job(four: plan.Plan, site: Site) -> None:
    queue, said = filled(four, site)
    steps(queue, site, 2)
    site.silent = True
    assert steps(queue, site, 60) == [] and len(queue.active) == 4
    assert len(said) == 1
    site.silent = False
    site.states = dict.fromkeys(site.states, ("COMPLETED", "None"))
    assert len(steps(queue, site, 30)) == 4


def test_a_forgotten_job_is_known_by_what_it_made(four: plan.Plan, site: Site) -> None:
    queue, _ = filled(four, site)
    steps(queue, site, 2)
    made_it = Path(four.record_name(four.cells[0]))
    made_it.parent.mkdir(parents=True)
    made_it.write_text("{}")
    site.states = {"4": ("RUNNING", "None")}
    ended = {one.task.cells[0]: one.why for one in steps(queue, site, 4)}
    assert ended[four.cells[0]] is None and "forgotten job 2" in ended[four.cells[1]].text
    assert set(queue.active) == {"4"}


@pytest.mark.parametrize("state", sorted(slurm.ENDED_BADLY))
def test_every_bad_end_is_told(four: plan.Plan, site: Site, state: str) -> None:
    queue, _ = filled(four, site, retries=0)
    steps(queue, site, 1)
    site.states["1"] = (state, "None")
    (ended,) = steps(queue, site, 2)
    assert (
        state in ended.why.text and len(list(records.attempts(four.directory, four.cells[0]))) == 1
    )


def test_a_record_that_was_finished_counts_whatever_became_of_its_job(
    four: plan.Plan, site: Site
) -> None:
    queue, _ = filled(four, site)
    steps(queue, site, 1)
    path = Path(four.record_name(four.cells[0]))
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    site.states["1"] = ("NODE_FAIL", "None")
    (ended,) = steps(queue, site, 2)
    assert ended.why is None and not list(records.attempts(four.directory, four.cells[0]))


@pytest.mark.parametrize("few", [64, 1])
def test_who_has_made_a_record_is_not_asked_for(
    four: plan.Plan, site: Site, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(queues, "FEW", few)
    queue, _ = filled(four, site)
    steps(queue, site, 2)
    site.states["2"] = ("RUNNING", "None")
    steps(queue, site, 2)
    site.silent = True
    path = Path(four.record_name(four.cells[1]))
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    (ended,) = steps(queue, site, 1)
    assert (
        ended.why is None and ended.task.cells == (four.cells[1],) and progress.started is not None
    )
    assert set(queue.active) == {"1", "3", "4"}


@pytest.mark.parametrize(
    "reason", ["Priority", "ReqNodeNotAvail, UnavailableNodes:n1", "JobHeldAdmin"]
)
def test_a_job_is_given_up_when_its_node_stays_away_and_never_for_slurms_reason(
    four: plan.Plan, site: Site, reason: str
) -> None:
    queue, said = filled(four, site, give_up_s=30.0)
    steps(queue, site, 2)
    site.states = dict.fromkeys(site.states, ("PENDING", reason))
    assert steps(queue, site, 100) == [] and not said  # its node is up
    site.nodes = {"n1": "DOWN (bad disk)"}
    assert steps(queue, site, 20) == [] and len(said) == 1
    assert "4 jobs" in said[0] and "bad disk" in said[0]
    site.nodes = {}
    assert steps(queue, site, 20) == []
    site.nodes = {"n1": "DOWN (bad disk)"}
    assert steps(queue, site, 20) == []  # the time counts anew
    ended = steps(queue, site, 30)
    assert len(ended) == 4 and sorted(site.cancelled) == ["1", "2", "3", "4"] and not queue.active
    (path,) = records.attempts(four.directory, four.cells[1])
    assert "bad disk" in records.read(path)["reason"]


def test_a_job_of_any_node_waits_while_enough_of_its_class_are_up(
    four: plan.Plan, site: Site
) -> None:
    queue, said = filled(four, site, give_up_s=30.0)
    for task in queue.waiting:
        task.nodes = ("n1", "n2", "n3")
    queue.waiting[0].node_count = 2
    site.nodes = {"n1": "DOWN", "n2": "DRAIN"}
    ended = steps(queue, site, 60)
    assert len(ended) == 1 and ended[0].task.node_count == 2 and len(said) == 1


def test_who_waits_for_long_hears_what_slurm_says(four: plan.Plan, site: Site) -> None:
    queue, said = filled(four, site)
    steps(queue, site, 2)
    site.states = dict.fromkeys(site.states, ("PENDING", "JobHeldAdmin"))
    assert steps(queue, site, 700) == [] and len(said) == 1
    assert "JobHeldAdmin" in said[0] and not site.cancelled


@pytest.mark.parametrize("state", sorted(slurm.NODE_LOST))
def test_a_job_whose_node_was_lost_is_submitted_again(
    four: plan.Plan, site: Site, state: str
) -> None:
    queue, said = filled(four, site, retries=2)
    steps(queue, site, 1)
    for number in ("1", "5", "6"):
        site.states[number] = (state, "None")
        ended = steps(queue, site, 2)
    assert len(ended) == 1 and state in ended[0].why.text
    assert (len(site.submitted), len(said)) == (6, 2)
    assert len(list(records.attempts(four.directory, four.cells[0]))) == 3  # each is on record


def test_the_jobs_of_an_earlier_run_are_taken_over(four: plan.Plan, site: Site) -> None:
    site.states = {"77": ("RUNNING", "None")}
    queue, _ = filled(four, site, adopted={jobs.comment(four, four.cells[:1]): "77"})
    steps(queue, site, 2)
    assert len(site.submitted) == 3 and "77" in queue.active
