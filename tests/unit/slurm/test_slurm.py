"""What Slurm's commands print, whatever a site's wrappers add; what sbatch says when it takes no job;
attempts of jobs that Slurm ended.
"""

import re

import pytest
from tests.unit import campaign_data
from tests.unit.slurm.conftest import NO_ANSWER, refusal

from peakmark import slurm
from peakmark.slurm import failures
from peakmark.storage import records
from peakmark.workflow import status


@pytest.fixture
def says(tmp_path, monkeypatch):
    """A folder first on PATH for commands that print the file of their name, as those of sites do
    that wrap Slurm's.
    """
    for name in ("squeue", "sinfo", "scontrol"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec cat "{tmp_path}/{name}.says"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def test_a_job_of_mine_with_any_bytes_in_its_comment_is_a_job(says):
    (says / "squeue.says").write_bytes(
        b"Welcome to the cluster\n7|RUNNING|n1|0:01|caf\xe9|None\n\n8|PENDING||0:00|c/x 1.2|a|b\n"
    )
    assert [(job.number, job.state, job.reason) for job in slurm.jobs()] == [
        ("7", "RUNNING", "None"),
        ("8", "PENDING", "a|b"),
    ]
    (says / "squeue.says").write_bytes(b"")
    assert slurm.jobs() == []


NODES = b"""\
NodeName=n1 Arch=x86_64 CPUTot=2 State=IDLE+DRAIN ThreadsPerCore=1 Reason=disk \xb5 [root@2026-11-23T01:02:03] Comment=a
NodeName=n2 Arch=x86_64 CPUTot=2 State=ALLOCATED ThreadsPerCore=1
NodeName=n3 State=DOWN*+NOT_RESPONDING ThreadsPerCore=1
NodeName=n4 State=IDLE+CLOUD+POWERED_DOWN ThreadsPerCore=1
NodeName=n5 State=MIXED+PLANNED ThreadsPerCore=1
NodeName=n6 State=IDLE# ThreadsPerCore=1
"""


def test_nodes_are_unavailable_by_their_state_alone(says):
    (says / "scontrol.says").write_bytes(NODES)
    assert slurm.nodes_unavailable(["n1", "n2"]) == {
        "n1": "IDLE+DRAIN (disk \ufffd)",
        "n3": "DOWN*+NOT_RESPONDING",
    }


def test_lines_that_are_no_nodes_are_passed_over(says):
    (says / "sinfo.says").write_bytes(
        b"Maintenance on Monday\nn2|main*|2+|4000+|idle|1:00|1:2:1|(null)|a,b\nn1|other|x|1|idle|1:00|1:1:1||a\n"
        b"n1|main*|1|1200|down|1:00|1:1:1|gpu:1|a\n"
    )
    assert [(node.name, node.cpus, node.partition, node.usable) for node in slurm.nodes(None)] == [
        ("n1", 1, "main", False),
        ("n2", 2, "main", True),
    ]


def test_a_reservation_has_its_nodes_also_during_maintenance(says):
    (says / "sinfo.says").write_bytes(
        b"".join(
            b"n%d|main*|2|4000|%s|1:00|1:2:1|(null)|a\n" % node
            for node in ((1, b"maint"), (2, b"drained"), (3, b"idle"), (4, b"maint"))
        )
    )
    (says / "scontrol").write_text(
        "#!/bin/sh\n"
        'case "$*" in *hostnames*) printf "n1\\nn2\\n";;\n'
        '*" weekly") echo "ReservationName=weekly Nodes=n[1-2] NodeCnt=2 Flags=MAINT";;\n'
        '*) echo "Reservation $4 not found" >&2; exit 1;; esac\n'
    )
    assert [(node.name, node.usable) for node in slurm.nodes(None, "weekly")] == [
        ("n1", True),
        ("n2", False),
    ]
    assert [node.usable for node in slurm.nodes(None)] == [False, False, True, False]
    with pytest.raises(slurm.SlurmError, match="never not found"):
        slurm.nodes(None, "never")


def test_the_fields_of_a_job_may_hold_blanks(says):
    (says / "scontrol.says").write_text(
        "JobId=2 JobName=0b9 UserId=root(0) Reason=NonZeroExitCode NodeList=node1 CPUs/Task=1 ReqB:S:C:T=0:0:*:* "
        "TRES=cpu=2,mem=848M,node=1,billing=2 Socks/Node=* MinMemoryNode=848M WorkDir=/tmp/a checkout "
        "StdErr=/tmp/a checkout/2.log StdIn=/dev/null StdOut=/tmp/a checkout/2.log Power= \n"
    )
    found = slurm.job("2")
    assert found["WorkDir"] == "/tmp/a checkout" and found["StdOut"] == "/tmp/a checkout/2.log"
    assert (found["JobId"], found["NodeList"], found["Power"]) == ("2", "node1", "")
    assert found["TRES"] == "cpu=2,mem=848M,node=1,billing=2" and found["Socks/Node"] == "*"


POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
"""What Slurm says of every limit of an account or a QOS."""
FAILED = "sbatch: error: Batch job submission failed:"
ALLOCATION = "allocation failure:"


@pytest.mark.parametrize("words", [
    f"sbatch: error: QOSMaxSubmitJobPerUserLimit {FAILED} {POLICY}",
    f"sbatch: error: AssocMaxSubmitJobLimit {FAILED} Job violates",
    f"{FAILED} Unable to contact slurm controller (connect failure)",
    "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
    f"{FAILED} Socket timed out on send/recv operation",
    f"{ALLOCATION} {POLICY}",
])  # fmt: skip
def test_what_may_go_better_later(words):
    assert failures.is_temporary(refusal(words))


def test_a_lost_answer_is_no_refusal():
    assert failures.is_temporary(NO_ANSWER) and failures.is_unanswered(NO_ANSWER)
    assert "60 s" in failures.text(NO_ANSWER)


LIMITS = {
    "network=[]": ["QOSMaxNodePerJobLimit", "QOSMaxNodePerUserLimit", "AssocGrpNodeLimit"],
    "slurm.runtime_factor": ["QOSMaxWallDurationPerJobLimit", "QOSMaxCpuMinutesPerJobLimit"],
    "slurm.memory": ["AssocMaxMemPerJob", "QOSMaxMemoryPerNode"],
    "concurrency": ["QOSGrpCpuLimit"],
    "slurm.qos": ["QOSMinNode", "QOSMaxGRESPerJob"],
}


@pytest.mark.parametrize(("words", "remedy"), [
    *(
        (f"sbatch: error: {limit} {failed} {POLICY}", remedy)
        for remedy, limits in LIMITS.items()
        for limit in limits
        for failed in (ALLOCATION, FAILED)
    ),
    (f"{FAILED} Invalid account or account/partition combination", "slurm.account"),
    (f"{ALLOCATION} Invalid qos specification", "slurm.qos"),
    (f"{ALLOCATION} Requested time limit is invalid (missing)", "slurm.runtime_factor"),
    (f"{ALLOCATION} Memory required by task is not available", "slurm.memory"),
    (f"{ALLOCATION} Invalid partition name specified", "slurm.partition"),
    (f"{ALLOCATION} Required partition not available (inactive)", "slurm.partition"),
    (f"{ALLOCATION} Requested node configuration is not available", "slurm.partition"),
    (f"{ALLOCATION} Invalid feature specification", "slurm.constraint"),
    (f"{ALLOCATION} Requested reservation is invalid", "slurm.reservation"),
    ("sbatch: error: Invalid generic resource (gres) specification", "slurm.extra"),
    ("sbatch: error: say your account, please", "slurm.account"),
    (f"{ALLOCATION} Memory specification can not be satisfied", "slurm.memory"),
    # Of --mem=0 where MaxMemPerCPU allows less than the node has; sbatch --test-only takes it.
    (
        "sbatch: error: CPU count per node can not be satisfied "
        f"{FAILED} Requested node configuration is not available",
        "slurm.memory",
    ),
    (f"{ALLOCATION} Node count specification invalid", "slurm.partition"),
    ("sbatch: error: exclusive jobs are not allowed here", "slurm.exclusive: false"),
    (f"{ALLOCATION} Access/permission denied", "slurm.partition"),
])  # fmt: skip
def test_what_will_not_is_a_sentence_with_a_remedy(words, remedy):
    error = refusal(words)
    assert not failures.is_temporary(error)
    sentence = failures.refusal(error).text
    assert remedy in sentence and "sbatch" not in sentence
    if POLICY in words:
        assert words.removeprefix("sbatch: error: ").split()[0] in sentence


DATA = campaign_data.DATA / "slurm"
DETAILS = {"BatchHost": "node7.site", "ExitCode": "1:0", "MinMemoryNode": "300M"}


def kept(site, state, details):
    """The attempt of the first cell, whose job 5 ended so."""
    cell = site.plan.cells[0]
    assert failures.keep(site.plan.directory, cell, "5", state, details)
    # A job that has an attempt gets no second.
    assert not failures.keep(site.plan.directory, cell, "5", state, details)
    (path,) = records.attempts(site.plan.directory, cell)
    return dict(records.read(path))


@pytest.mark.parametrize(("log", "words"), [
    ("over-memory-kill.log", "OUT_OF_MEMORY: .*300M.*memory_factor"),
    ("cgroup.log", "OUT_OF_MEMORY: .*300M.*memory_factor"),
    ("exit-code.log", "FAILED, exit code 1"),
    ("none.log", "FAILED, exit code 1"),
])  # fmt: skip
def test_a_step_without_memory_fails_its_job_and_only_the_log_tells_why(site, log, words):
    record = kept(site, "FAILED", {**DETAILS, "StdOut": str(DATA / log)})
    assert re.match(f"Slurm ended job 5: {words}", record["reason"])
    context = record["context"]
    assert (record["status"], context["host"], context["job_id"]) == ("failed", "node7", "5")
    assert context["slurm"]["state"] == "FAILED"  # what Slurm calls it stays on record
    assert not failures.keep(site.plan.directory, None, "6", "FAILED", {}), "nobody knows the cell"
    failure = status.last_failure(site.plan.results, site.plan.cells[0])
    assert failure is not None and failure.job_log == DATA / log


def test_a_job_that_had_its_whole_node_is_not_advised_to_ask_for_more(site):
    details = {"MinMemoryNode": "0", "TRES": "cpu=2,mem=4G,node=1,billing=2", "BatchHost": "n1"}
    reason = kept(site, "OUT_OF_MEMORY", details)["reason"]
    assert "(4G)" in reason and "pool" in reason and "memory_factor" not in reason
