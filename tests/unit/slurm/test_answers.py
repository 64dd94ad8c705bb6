"""What Slurm's commands print at other sites: banners, wrappers, variables of users, versions from 20.11
to 24.11. Outputs named 22.05 are Slurm's own; others follow its sources and public reports.
"""

import msgspec
import pytest
from tests.unit.cases import cases
from tests.unit.plan.planned import CPU, NETWORK, made
from tests.unit.slurm.conftest import MINE, printing

from peakmark import slurm
from peakmark.config import site as sites
from peakmark.config.types import Planned
from peakmark.plan import cluster, jobs
from peakmark.slurm import commands, failures

# -- sbatch: the number of a job that was submitted


@pytest.mark.parametrize("printed", [
    "519605", "519605;hpc-2.site", "Welcome\n519605", "519605\nYour project has 12 hours left",
])  # fmt: skip
def test_the_number_of_a_job_is_found_among_lines_of_a_site(programs, printed):
    programs(sbatch=printing(printed))
    assert slurm.submit(["--nodes=1"], "#!/bin/sh\n") == "519605"


def test_no_number_is_invented(programs):
    programs(sbatch=printing("Queue 7 of 9: 519605 accepted"))
    with pytest.raises(slurm.SlurmError, match="7 of 9") as error:
        slurm.submit([], "#!/bin/sh\n")
    assert failures.is_unanswered(error.value)


def test_a_job_whose_number_shows_up_later_is_followed(site):
    def hidden(options, script):
        site.submit(options, script)
        raise slurm.SlurmError("sbatch printed no number of a job", silent=True)

    slurm.submit = hidden  # put back by the fixture's monkeypatch
    queue = site.queue(site.task(0))
    site.steps(10)
    assert list(queue.active) == ["1"] and len(site.submitted) == 1


# -- variables of a user and of a job


HIDING = """SQUEUE_PARTITION SQUEUE_STATES SQUEUE_FORMAT SQUEUE_FORMAT2 SQUEUE_ACCOUNT SQUEUE_NAMES SQUEUE_USERS
SQUEUE_SORT SQUEUE_LICENSES SINFO_PARTITION SINFO_FORMAT SINFO_ALL SCANCEL_STATE SCANCEL_INTERACTIVE SCANCEL_NAME
SCONTROL_ALL SALLOC_PARTITION SACCT_FORMAT SBATCH_PARTITION SBATCH_TEST_ONLY SLURM_TIME_FORMAT SLURM_BITSTR_LEN
SLURM_JOB_ID SRUN_CPUS_PER_TASK"""
NEEDED = """SLURM_CONF SLURM_CONF_SERVER SLURM_JWT SBATCH_ACCOUNT SLURM_ACCOUNT PATH SINFONIA MUNGE_SOCKET
LD_LIBRARY_PATH"""


@pytest.mark.parametrize("name", HIDING.split())
def test_no_variable_changes_what_slurm_answers(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert name not in commands.environment()


@pytest.mark.parametrize("name", NEEDED.split())
def test_what_reaches_the_cluster_stays(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert commands.environment()[name] == "x"


@cases("slurm")
def test_one_cluster_is_kept_on_a_login_node(monkeypatch, cluster, job, kept):
    monkeypatch.setenv("SLURM_CLUSTERS", cluster)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    assert ("SLURM_CLUSTERS" in commands.environment()) == kept


# -- squeue: lines that are no jobs


@cases("slurm")
def test_banners_of_squeue_are_no_jobs(programs, banner):
    programs(squeue=printing(f"{banner}\n{MINE}\n{banner}"))
    assert [job.number for job in slurm.jobs()] == ["519605"]


def test_bytes_that_are_no_utf_8_end_nothing(programs):
    programs(
        squeue=f"printf '7|RUNNING|n1|0:01|caf\\351|None\\n\\n'\n{printing('8|PENDING||0:00|c/x 1.2|a|b')}",
        sinfo="printf 'n1|a*|up|1-4|1|1200|drained|1:00|1:1:1|(null)|a|disk \\265|b\\n'",
    )
    assert [(job.number, job.state, job.reason) for job in slurm.jobs()] == [
        ("7", "RUNNING", "None"),
        ("8", "PENDING", "a|b"),
    ]
    assert slurm.nodes_unavailable(["n1"]) == {"n1": "drained (disk \ufffd|b)"}
    programs(squeue="")
    assert slurm.jobs() == []


def test_the_fields_of_a_job_may_hold_blanks(programs):
    text = (
        "JobId=2 JobName=0b9 UserId=root(0) Reason=NonZeroExitCode NodeList=node1 CPUs/Task=1 ReqB:S:C:T=0:0:*:* "
        "TRES=cpu=2,mem=848M,node=1,billing=2 Socks/Node=* MinMemoryNode=848M WorkDir=/tmp/a checkout "
        "StdErr=/tmp/a checkout/2.log StdIn=/dev/null StdOut=/tmp/a checkout/2.log Power= "
    )
    programs(scontrol=printing(text))
    found = slurm.job("2")
    assert found["WorkDir"] == "/tmp/a checkout" and found["StdOut"] == "/tmp/a checkout/2.log"
    assert (found["JobId"], found["NodeList"], found["Power"]) == ("2", "node1", "")
    assert found["TRES"] == "cpu=2,mem=848M,node=1,billing=2" and found["Socks/Node"] == "*"


@cases("slurm")
def test_the_nodes_of_a_job_are_those_of_its_line(programs, output, names):
    programs(
        squeue=printing(output), scontrol="case $3 in n1) echo n1;; *) printf 'n1\\nn2\\n';; esac"
    )
    assert slurm.job_nodes("7") == names


# -- sinfo: states, and partitions


@cases("slurm")
def test_states_say_whether_a_node_is_planned_with(programs, words, is_usable):
    listed = enumerate(words.split())
    lines = [
        f"n{place}|a*|up|1-4|64|257000|{word}|1:00|2:32:1|(null)|(null)|none"
        for place, word in listed
    ]
    programs(sinfo=printing("\n".join(lines)))
    assert {node.state: node.usable for node in slurm.nodes(None)} == dict.fromkeys(
        words.split(), is_usable
    )


def test_lines_that_are_no_nodes_are_passed_over(programs):
    odd = (
        "n2|main*|up|1-4|2+|4000+|idle|1:00|1:2:1|(null)|a,b|none\n"
        "n1|other|up|1-4|x|1|idle|1:00|1:1:1||a|none"
    )
    programs(
        sinfo=printing(
            f"Maintenance on Monday\n{odd}\nn1|main*|up|1-4|1|1200|down|1:00|1:1:1|gpu:1|a|none"
        )
    )
    assert [(node.name, node.cpus, node.partition, node.usable) for node in slurm.nodes(None)] == [
        ("n1", 1, "main", False),
        ("n2", 2, "main", True),
    ]


def test_a_reservation_has_its_nodes_also_during_maintenance(programs):
    listed = [
        f"n{number}|main*|up|1-4|2|4000|{state}|1:00|1:2:1|(null)|a|none"
        for number, state in enumerate(("maint", "drained", "idle", "maint"), 1)
    ]
    weekly = "ReservationName=weekly Nodes=n[1-2] NodeCnt=2 Flags=MAINT"
    programs(
        sinfo=printing("\n".join(listed)),
        scontrol=f"""case "$*" in *hostnames*) printf "n1\\nn2\\n";; *" weekly") echo "{weekly}";;
        *) echo "Reservation $4 not found" >&2; exit 1;; esac""",
    )
    found = slurm.nodes(None, "weekly")
    assert [(node.name, node.usable) for node in found] == [("n1", True), ("n2", False)]
    assert [node.usable for node in slurm.nodes(None)] == [False, False, True, False]
    with pytest.raises(slurm.SlurmError, match="never not found"):
        slurm.nodes(None, "never")


A, B = "1:00:00", "2-00:00:00"
LISTED = f"""\
n01|a|up|1-4|64|257000|idle|{A}|2:32:1|(null)|(null)|none
n01|b|up|1-4|64|257000|idle|{B}|2:32:1|(null)|(null)|none
n02|b|up|1-4|64|257000|idle|{B}|2:32:1|(null)|(null)|none
n03|a|up|1-4|64|257000|idle|{A}|2:32:1|(null)|(null)|none
n03|c|up|1-4|64|257000|idle|infinite|2:32:1|(null)|(null)|none"""


@cases("slurm")
def test_a_node_of_several_partitions_is_one(programs, partition, found):
    programs(sinfo=printing(LISTED))
    nodes = slurm.nodes(partition)
    assert {node.name: [node.partition, node.limit] for node in nodes} == found
    assert len(nodes) == len(found)


@pytest.mark.parametrize(("partition", "named"), [("a,zzz", "'zzz'"), ("zzz", "'zzz'")])
def test_a_partition_that_is_not_there_is_named(programs, partition, named):
    programs(sinfo=printing(LISTED))
    with pytest.raises(slurm.SlurmError, match=f"no partition {named}"):
        slurm.nodes(partition)


def test_a_campaign_in_two_partitions_has_each_node_once(programs, tmp_path, monkeypatch):
    programs(sinfo=printing(LISTED))
    for asked in ("all", {"sample": 3}):
        config = {"nodes": asked, "network": [NETWORK]}
        config["site_facts"] = {"slurm": {"partition": "a, b"}}
        there = cluster.find(msgspec.convert(config, Planned), None)
        assert there.nodes == ("n01", "n02", "n03") and (there.count, there.limit) == (3, 2880)
        assert there.partition == "a,b"
        assert msgspec.convert(msgspec.to_builtins(there), cluster.Cluster) == there
        peers = cluster.peers(there.nodes)
        assert all(node != peer for node, peer in peers.items())
    site = tmp_path / "site.yaml"
    site.write_text("schema: 1\nname: x\nslurm: {partition: 'a, b', runtime_factor: 1000}\n")
    plan = made(tmp_path, monkeypatch, there, cpu=[CPU], nodes="all", site=str(site))
    options = {cell.node: jobs.named_options([cell], plan, {}) for cell in plan.cells}
    times = {node: int(wanted["time"]) for node, wanted in options.items()}
    assert times["n03"] == 60  # its partition ends longer jobs
    assert times["n01"] == times["n02"] > 60
    assert {wanted["partition"] for wanted in options.values()} == {"a,b"}


@cases("slurm")
def test_a_site_file_may_name_several_partitions(tmp_path, text, is_taken):
    path = tmp_path / "site.yaml"
    path.write_text(f"schema: 1\nname: x\nslurm: {{partition: '{text}'}}\n")
    if is_taken:
        assert sites.load(path).slurm.partition == text
    else:
        with pytest.raises(Exception, match="partition"):
            sites.load(path)


def test_a_controller_that_restarts_is_asked_again(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "PAUSE_S", 0.0)
    line = "n1|p*|up|1-4|1|1200|idle|1:00|1:1:1|(null)|a|none"
    tries = f"echo >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -gt 2 ]"
    absent = "Unable to contact slurm controller (connect failure)"
    programs(
        sinfo=f"{tries} && echo '{line}' && exit; echo 'slurm_load_node: {absent}' >&2; exit 1"
    )
    assert [node.name for node in slurm.nodes(None)] == ["n1"]
    programs(sinfo=f"echo >> {tmp_path}/once; echo 'Invalid option' >&2; exit 1")
    with pytest.raises(slurm.SlurmError):
        slurm.nodes(None)
    assert (tmp_path / "once").read_text() == "\n"


# -- sinfo: nodes that start no job


def unavailable(programs, state, reason="none", is_reserved=False):
    """What is told of n1 where sinfo prints this state, in two partitions."""
    lines = [f"n1|{name}|up|1-4|2|4000|{state}|1:00|1:2:1|(null)|a|{reason}" for name in "ab"]
    programs(sinfo=printing("\n".join(["Welcome", *lines])))
    return slurm.nodes_unavailable(["n1"], is_reserved)


@cases("slurm")
def test_a_node_that_starts_no_job_is_told_with_its_reason(programs, state, reason, told):
    assert unavailable(programs, state, reason) == ({"n1": told} if told else {})


def test_jobs_of_a_reservation_wait_for_no_end_of_its_maintenance(programs):
    assert unavailable(programs, "maint") and not unavailable(programs, "maint", is_reserved=True)
    assert unavailable(programs, "drained", is_reserved=True)
