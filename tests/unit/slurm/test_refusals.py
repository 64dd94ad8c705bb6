"""What sbatch says when it takes no job, and attempts of jobs that Slurm ended."""

import re

import pytest
from tests.unit.campaign_data import DATA
from tests.unit.cases import cases
from tests.unit.slurm.conftest import MINE, NO_ANSWER, printing, refusal

from peakmark import slurm
from peakmark.slurm import commands, failures
from peakmark.storage import records
from peakmark.workflow import status

PHRASES = {
    "failed": "sbatch: error: Batch job submission failed:",
    "allocation": "allocation failure:",
    "policy": "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
}
"""``policy``: what Slurm says of every limit of an account or a QOS."""
UNNAMED = "{failed} {policy}".format(**PHRASES)


def refused(words):
    return refusal(words.format(**PHRASES))


@pytest.mark.parametrize("has_jobs", [False, True])
@cases("slurm")
def test_a_refusal_for_ever_is_a_sentence_with_a_remedy(words, remedy, has_jobs):
    error = refused(words)
    assert not failures.is_temporary(error, has_jobs) and not failures.is_unanswered(error)
    sentence = failures.refusal(error)
    assert sentence and remedy in sentence
    assert not remedy or "sbatch" not in sentence


@pytest.mark.parametrize("begin", ["{failed}", "{allocation}"])
@cases("slurm")
def test_a_limit_of_a_size_names_its_remedy(limit, remedy, begin):
    error = refused(f"sbatch: error: {limit} {begin} {{policy}}")
    assert not failures.is_temporary(error) and not failures.is_unanswered(error)
    sentence = failures.refusal(error)
    assert remedy in sentence and limit in sentence and "sbatch" not in sentence


@cases("slurm")
def test_a_refusal_for_now_is_waited_for(words, is_lost):
    error = refused(words)
    assert failures.is_temporary(error, has_jobs=False)
    assert failures.is_unanswered(error) == is_lost


@cases("slurm")
def test_a_limit_without_jobs_in_the_queue_is_for_ever(words):
    error = refused(words)
    assert not failures.is_temporary(error, has_jobs=False) and failures.is_temporary(error)
    assert "sacctmgr" in failures.refusal(error)


def test_a_lost_answer_is_no_refusal():
    assert failures.is_temporary(NO_ANSWER, has_jobs=False) and failures.is_unanswered(NO_ANSWER)
    assert "60 s" in failures.text(NO_ANSWER)


@pytest.mark.parametrize(("queue", "is_temporary"), [("", False), (MINE, True)])
def test_a_check_shows_the_refusal(programs, queue, is_temporary):
    programs(sbatch=f'echo "{UNNAMED}" >&2; exit 1', squeue=printing(queue))
    found = failures.check({"time": "5", "nodes": "1"}, [])
    assert found.is_temporary == is_temporary and "Job violates" in found.text


@pytest.mark.parametrize(("state", "most", "nodes", "words"), [
    ("up", "1-1", "2", "MaxNodes of partition small is 1"), ("up", "1-1", "1", None),
    ("up", "1-infinite", "2", None), ("down", "1-4", "2", "partition small, which is down"),
])  # fmt: skip
def test_what_sbatch_does_not_enforce_is_found(programs, state, most, nodes, words):
    line = f"n1|small|{state}|{most}|1|1200|idle|1:00|1:1:1|(null)|a|none"
    programs(
        sinfo=printing(f"n1|large*|up|1-4|1|1200|idle|1:00|1:1:1|(null)|a|none\n{line}"),
        sbatch="true",
    )
    found = failures.check({"time": "5", "nodes": nodes, "partition": "small"}, [])
    assert words in found.text if words else found is None


@pytest.mark.parametrize(("pattern", "end"), [
    ("*large*", "(alone refused by: large)"), ("*", "sinfo lists them"),
])  # fmt: skip
def test_the_partition_of_a_list_that_refuses_is_named(programs, pattern, end):
    lines = [
        f"n1|{name}|up|1-4|1|1200|idle|1:00|1:1:1|(null)|a|none" for name in ("batch", "large")
    ]
    words = (
        "echo 'sbatch: error: Ask for less'; echo 'allocation failure: Requested node unavailable'"
    )
    refuses = f'case "$*" in {pattern}) ({words}) >&2; exit 1; esac'
    programs(sinfo=printing("\n".join(lines)), sbatch=refuses)
    wanted = {"time": "5", "nodes": "1", "partition": "batch,large"}
    found = failures.check(wanted, ["--partition=batch,large"])
    assert "Ask for less; allocation failure: Requested" in found.text and found.text.endswith(end)


@cases("slurm")
def test_a_job_that_would_wait_is_no_refusal(programs, words):
    programs(sbatch=f'echo "allocation failure: {words}" >&2; exit 1')
    assert failures.check({"time": "5", "nodes": "1"}, []) is None


def test_a_campaign_ends_cells_that_no_end_of_a_job_lets_in(site):
    """They are judged when the first job, which is in the queue meanwhile, has ended."""
    site.refuses = lambda count: UNNAMED if count else None
    queue = site.queue()
    assert site.steps(20) == [] and list(queue.active) == ["1"]
    site.states.clear()
    ended = site.steps(20)
    assert len(ended) == 4 and not queue.waiting
    assert sum("Job violates" in end.why for end in ended) == 3


@cases("slurm")
def test_of_several_lines_the_last_one_says_why(said, why, programs, peakmark, monkeypatch):
    monkeypatch.setattr(commands, "PAUSE_S", 0.0)
    programs(sinfo=f"exec >&2\n{printing(said)}\nexit 1")
    done = peakmark("doctor", "--slurm")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 4 and line.startswith(f"peakmark: sinfo failed: {why}")
    # What refusals are recognised by is whole.
    with pytest.raises(slurm.SlurmError) as caught:
        slurm.nodes(None)
    assert caught.value.reason == (" ".join(said.split()) or "exit code 1")


def kept(site, state, details):
    """The attempt of the first cell, whose job 5 ended so; it gets no second one."""
    cell = site.plan.cells[0]
    assert failures.keep(site.plan.directory, cell, "5", state, details)
    assert not failures.keep(site.plan.directory, cell, "5", state, details)
    (path,) = records.attempts(site.plan.directory, cell)
    return records.read(path)


@cases("slurm")
def test_out_of_memory_says_how_much_was_granted(site, details, words, advice):
    reason = kept(site, "OUT_OF_MEMORY", details).reason
    assert words in reason and advice in reason and "\n" not in reason
    # Who had the whole node cannot ask for more.
    assert advice != "pool" or "memory_factor" not in reason


@cases("slurm")
def test_a_step_without_memory_fails_its_job_and_only_the_log_tells_why(site, log, words):
    path = DATA / "slurm" / log
    details = {"BatchHost": "node7.site", "ExitCode": "1:0", "TRES": "mem=300M"}
    record = kept(site, "FAILED", details | {"StdOut": str(path)})
    assert re.match(f"Slurm ended job 5: {words}", record.reason)
    context = record.context
    assert (record.status, context.host, context.job_id) == ("failed", "node7", "5")
    assert not failures.keep(site.plan.directory, None, "6", "FAILED", {})  # nobody knows the cell
    failure = status.last_failure(site.plan.results, site.plan.cells[0])
    assert failure is not None and failure.job_log == path


@pytest.mark.parametrize(("state", "reason", "details", "drained", "found"), [
    ("CANCELLED", "None", "00:00:00 hpc-1", True, "LAUNCH_FAILED"),
    ("FAILED", "None", "00:00:00 hpc-1", True, "LAUNCH_FAILED"),
    ("CANCELLED", "None", "00:00:00 hpc-1", False, "CANCELLED"),
    ("CANCELLED", "None", "00:01:07 hpc-1", True, "CANCELLED"),
    ("CANCELLED", "None", "00:00:00 (null)", True, "CANCELLED"),
    ("PENDING", "launch failed requeued held", "00:00:00 (null)", True, "LAUNCH_FAILED"),
    ("PENDING", "Priority", "00:00:00 (null)", True, "PENDING"),
])  # fmt: skip
def test_a_job_that_its_node_could_not_start(monkeypatch, state, reason, details, drained, found):
    ran, nodes = details.split()
    monkeypatch.setattr(slurm, "job", lambda _: {"RunTime": ran, "NodeList": nodes})
    down = {"hpc-1": "drained (Prolog error)"} if drained else {}
    monkeypatch.setattr(slurm, "nodes_unavailable", lambda _names, _reserved: down)
    job = slurm.Job("2", state, "hpc-1", "0:00", "", reason)
    assert failures.end_of(job, False) == found


def test_the_reason_of_a_drained_node_is_part_of_the_failure(site, monkeypatch):
    monkeypatch.setattr(slurm, "nodes_unavailable", lambda *_: {"hpc-1": "drained (Prolog error)"})
    cell = site.plan.cells[0]
    assert failures.keep(site.plan.directory, cell, "5", "LAUNCH_FAILED", {"NodeList": "hpc-1"})
    reason = status.last_failure(site.plan.results, cell).reason
    assert reason.endswith("its Prolog failed (hpc-1 is drained (Prolog error))")


@pytest.mark.parametrize(("node", "told", "is_here"), [
    ("hpc-1", "hpc-1", True), ("HPC-1", "hpc-1.site.example", True), ("node1", "hpc-1", False),
    ("node1.site.example", "", True), ("Node1", "", True), ("node10", "", False),
])  # fmt: skip
def test_a_node_may_have_another_name_than_its_host(monkeypatch, node, told, is_here):
    monkeypatch.setenv("SLURMD_NODENAME", told)
    monkeypatch.setattr("socket.gethostname", lambda: "node1.site")
    assert slurm.is_here(node) == is_here


def test_blocks_of_nodes_are_as_switches(programs):
    blocks = [
        "BlockName=b1 BlockIndex=0 Nodes=n1,n2 BlockSize=2",
        "BlockName=b2 BlockIndex=1 Nodes=n3,n4",
    ]
    names = 'echo "$3" | tr , " "'
    shown = printing("\n".join(blocks))
    programs(scontrol=f'if [ "$2" = show ]; then {shown}\nelse {names}; fi')
    assert slurm.switches() == {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}
