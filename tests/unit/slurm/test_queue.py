"""Jobs in Slurm: submitted, waited for, given up; with the messages of real Slurms, and no Slurm."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.plan.planned import CPU, made, where
from tests.unit.slurm.conftest import NO_ANSWER, Site, refusal

from peakmark import files, slurm
from peakmark.plan import jobs
from peakmark.run import job
from peakmark.slurm import queue as queues
from peakmark.storage import records

FAILED = "sbatch: error: Batch job submission failed:"
LIMIT = f"sbatch: error: QOSMaxSubmitJobPerUserLimit {FAILED} Job violates accounting/QOS policy"


def reasons(site, place):
    """Of the attempts of a cell."""
    paths = records.attempts(site.plan.directory, site.plan.cells[place])
    return [records.read(path).reason for path in paths]


def measured(site, place):
    files.write_text(site.plan.results.record_path(site.plan.cells[place]), "{}")


def comments(site):
    """Of the jobs of all cells, in the order of the plan."""
    return [jobs.comment(site.plan, [cell]) for cell in site.plan.cells]


def test_jobs_go_in_the_order_of_the_plan_with_their_cell_as_comment(site):
    queue = site.queue(max_jobs=3)
    assert queue.may_submit
    site.steps(1)
    assert queue.waiting and not queue.may_submit  # three are in the queue
    assert list(site.comments.values()) == comments(site)[:3]
    site.states["1"] = ("COMPLETED", "None")
    (ended,) = site.steps(3)
    assert ended.task.cells == site.plan.cells[:1] and ended.why is None
    assert list(site.comments.values()) == comments(site)  # one has ended: room for the last


def test_jobs_of_two_nodes_follow_those_of_one_in_whichever_order_they_come(site):
    two = {"nodes": ("n1", "n2"), "node_count": 2}
    queue = site.queue(site.task(0), site.task(2, **two), site.task(3, **two))
    site.steps(1)
    assert not queue.may_submit
    queue.add(site.task(1))
    site.steps(5)
    assert list(site.comments.values()) == comments(site)


def test_jobs_of_several_cells_name_the_present_one(tmp_path, monkeypatch):
    nodes = where(nodes=("n1", "n2"))
    planned = made(tmp_path, monkeypatch, nodes, cpu=[CPU], repetitions=3, fan_out="node")
    site = Site(planned, monkeypatch)
    tasks = []
    for place, (name, cells) in enumerate(planned.jobs.items()):
        present = job.current_path(planned.directory, name)
        files.write_text(present, f"{cells[2].id}\n")
        task = site.task(place, cells=tuple(cells), present=present)
        task.output = job.output_path(planned.directory, name)
        task.comment = jobs.comment(planned, cells)
        tasks.append(task)
    queue = site.queue(*tasks, retries=0)
    site.steps(3)
    site.all_are("RUNNING")
    site.steps(2)
    site.states["1"] = ("NODE_FAIL", "None")
    (ended,) = site.steps(2)
    (path,) = records.attempts(planned.directory, ended.task.cells[2])
    assert "NODE_FAIL" in records.read(path).reason
    assert [task.present.exists() for task in tasks if task.present] == [False, True]
    queue.cancel()
    assert not any(task.present.exists() for task in tasks if task.present)


def test_the_end_is_no_error_while_slurm_does_not_answer(site, monkeypatch):
    """Ctrl-C while sbatch waits for the controller, and more submissions wait for sbatch."""
    monkeypatch.setattr(queues, "CANCEL_S", 0.01)
    begun, answers = threading.Event(), threading.Event()

    def hangs(options, script):
        begun.set()
        answers.wait(60)
        return site.submit(options, script)

    monkeypatch.setattr(slurm, "submit", hangs)
    queue = site.queue()
    with ThreadPoolExecutor(1) as thread:
        step = thread.submit(queue.step)
        assert begun.wait(60)
        queue.cancel()
        answers.set()
        assert step.result(60) == []
    # What was not handed over yet is not.
    assert len(site.submitted) == 1 and len(queue.waiting) == 3


def test_a_limit_of_submissions_is_waited_for_and_said_once(site):
    pending = ("PENDING", "Priority")
    site.refuses = lambda _: LIMIT if list(site.states.values()).count(pending) >= 2 else None
    queue = site.queue()
    assert site.steps(10) == []
    assert (len(site.submitted), len(site.messages)) == (2, 1)
    # Nobody asks again and again meanwhile, beside what is measured.
    assert queue.waiting and not queue.may_submit
    site.all_are("COMPLETED")
    assert len(site.steps(10)) == 2 and len(site.submitted) == 4
    assert not reasons(site, 3)  # that is no failure


def test_the_node_hours_of_ended_jobs_are_those_that_slurm_counts(site):
    site.plan.directory.mkdir(parents=True)
    site.queue(site.task(0), site.task(1, node_count=2))
    site.steps(10)
    site.all_are("COMPLETED")
    site.steps(5)
    assert (site.plan.directory / "jobs.csv").read_text() == "1,1,1\n2,2,1\n"
    assert site.plan.results.node_seconds == [1, 2]
    assert [slurm.seconds(text) for text in ("1-02:00:05", "3:07", "UNLIMITED")] == [
        93605,
        187,
        None,
    ]
    # The last line is cut off, and a file that cannot be read counts nothing.
    counted = site.plan.directory / "jobs.csv"
    counted.write_text("1,1,30\n2,2")
    assert dataclasses.replace(site.plan.results).node_seconds == [30]
    counted.unlink()
    counted.mkdir()
    assert dataclasses.replace(site.plan.results).node_seconds == []


@pytest.mark.parametrize("lost", ["2", None])
def test_a_submission_that_was_not_answered_is_not_repeated(site, lost):
    """slurmctld took it and answered too late: what sbatch says then, and the job is in the queue."""

    def answers_late(options, script):
        number = site.submit(options, script)
        if lost is None:
            raise NO_ANSWER
        if number == lost:
            site.silent = True
            raise refusal(f"{FAILED} Socket timed out on send/recv operation")
        return number

    slurm.submit = answers_late  # put back by the fixture's monkeypatch
    queue = site.queue()
    if lost is None:
        queue.step()
        assert not queue.active
        queue.cancel()
        assert sorted(site.cancelled) == ["1", "2", "3", "4"]
        assert queue.step() == [] and len(site.submitted) == 4  # nothing is submitted afterwards
        return
    site.steps(10)
    assert len(queue.active) == 3 and len(site.submitted) == 4  # whether it is there is not known
    site.silent = False
    site.steps(10)
    assert sorted(queue.active) == ["1", "2", "3", "4"] and len(site.submitted) == 4


def test_a_refusal_is_an_attempt_like_any_failure(site):
    site.refuses = lambda _: f"{FAILED} Invalid account"
    queue = site.queue()
    assert len(site.steps(2)) == 4 and not queue.waiting and not queue.active
    for place in range(4):
        (reason,) = reasons(site, place)
        assert "Invalid account" in reason and "slurm.account" in reason and "sbatch" not in reason


def test_a_forgotten_job_is_known_by_what_it_made(site):
    queue = site.queue()
    site.steps(2)
    measured(site, 0)
    site.states = {"4": ("RUNNING", "None")}
    ended = {end.task.cells[0]: end.why for end in site.steps(4)}
    assert ended[site.plan.cells[0]] is None
    assert "forgotten job 2" in ended[site.plan.cells[1]]
    assert set(queue.active) == {"4"}


@pytest.mark.parametrize("state", sorted(slurm.ENDED_BADLY))
def test_every_bad_end_is_an_attempt_unless_the_record_is_there(site, state):
    site.queue(retries=0)
    site.steps(1)
    site.states["1"] = site.states["2"] = (state, "None")
    measured(site, 1)
    failed, whole = site.steps(2)
    assert state in failed.why and len(reasons(site, 0)) == 1
    assert whole.why is None and not reasons(site, 1)


@pytest.mark.parametrize(
    "reason", ["Priority", "ReqNodeNotAvail, UnavailableNodes:n1", "JobHeldAdmin"]
)
def test_a_job_is_given_up_when_its_node_stays_down_and_never_for_slurms_reason(site, reason):
    queue = site.queue(give_up_s=30.0)
    site.steps(2)
    site.all_are("PENDING", reason)
    assert site.steps(100) == [] and not site.messages  # its node is up
    site.nodes = {"n1": "DOWN (bad disk)"}
    assert site.steps(20) == []
    (message,) = site.messages
    assert "4 jobs" in message and "bad disk" in message
    site.nodes = {}
    assert site.steps(20) == []
    site.nodes = {"n1": "DOWN (bad disk)"}
    assert site.steps(20) == []  # the time counts anew
    assert len(site.steps(30)) == 4
    assert sorted(site.cancelled) == ["1", "2", "3", "4"] and not queue.active
    assert all("bad disk" in reason for reason in reasons(site, 1))


def test_a_job_of_any_node_waits_while_enough_of_its_class_are_up(site):
    three = ("n1", "n2", "n3")
    pair = site.task(0, nodes=three, node_count=2)
    site.queue(pair, *(site.task(place, nodes=three) for place in (1, 2, 3)), give_up_s=30.0)
    site.nodes = {"n1": "DOWN", "n2": "DRAIN"}
    (ended,) = site.steps(60)
    assert ended.task is pair and len(site.messages) == 1


@pytest.mark.parametrize("state", sorted(slurm.NODE_LOST))
def test_a_job_whose_node_was_lost_is_submitted_again(site, state):
    site.queue(retries=2)
    site.steps(1)
    for number in ("1", "5", "6"):
        site.states[number] = (state, "None")
        ended = site.steps(2)
    assert len(ended) == 1 and state in ended[0].why
    assert (len(site.submitted), len(site.messages)) == (6, 2)
    assert len(reasons(site, 0)) == 3  # each is on record


def test_the_jobs_of_an_earlier_run_are_taken_over(site):
    site.states = {"77": ("RUNNING", "None")}
    queue = site.queue(adopted={jobs.comment(site.plan, site.plan.cells[:1]): "77"})
    site.steps(2)
    assert len(site.submitted) == 3 and "77" in queue.active
