"""What Slurm's commands print at other sites: banners, wrappers, variables of users, versions from 20.11
to 24.11. Outputs named 22.05 are Slurm's own; others follow its sources and public reports.
"""

import json
import os
import re

import pytest
from tests.unit import campaign_data
from tests.unit.plan.planned import CPU, NETWORK, made
from tests.unit.slurm.conftest import NO_ANSWER, refusal

from peakmark import slurm
from peakmark.config import site as sites
from peakmark.plan import cluster, jobs
from peakmark.slurm import failures, states
from peakmark.slurm.hostlists import hostnames
from peakmark.slurm.queue import UNNUMBERED
from peakmark.workflow import doctor

DATA = campaign_data.DATA / "slurm"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A function that puts shell scripts first on PATH, by name; all but those named fail."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def put(**scripts):
        for name in ("sbatch", "squeue", "sinfo", "scontrol", "scancel"):
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{scripts.get(name, 'exit 1')}\n")
            program.chmod(0o755)
        return tmp_path

    return put


def printing(text):
    return f"cat <<'EOF'\n{text}\nEOF"


# -- sbatch: the number of a job that was submitted


@pytest.mark.parametrize(("output", "numbers"), [
    ("519605", ["519605"]),
    ("519605;hpc", ["519605"]),
    ("\n   Welcome to the Example4 Supercomputer\n--> Verifying valid submit host...OK\n519605", ["519605"]),
    ("519605\nYour project has 12 hours left", ["519605"]),
    ("519605;hpc-2.site\n", ["519605"]),
    ("\x1b[32m519605\x1b[0m\r\n", ["519605"]),
    ("  519605  \n", ["519605"]),
    ("519605\n519605\n", ["519605"]),
    ("Submitted batch job 519605", ["519605"]),
    ("Submitted batch job 519605 on cluster hpc", ["519605"]),
    ("2026\n519605", ["2026", "519605"]),
    ("Queue 7 of 9: 519605 accepted", []),
    ("", []),
])  # fmt: skip
def test_the_number_of_a_job_is_found_in_what_a_wrapper_prints(output, numbers):
    assert slurm.job_numbers(output) == numbers


MINE = "519605|RUNNING|n1|0:01|c/x 1|None"
PENDING = "519605|PENDING||0:00|c/x 1|Priority"
ENDED = "519600|NODE_FAIL|n1|0:01|c/x 1|None"
OTHER = "519610|RUNNING|n1|0:01|c/y 1|None"


@pytest.mark.parametrize(("printed", "code", "queue", "number"), [
    ("2026\n519605\n100", 0, f"{MINE}\n{OTHER}", "519605"),  # a year, a quota
    ("519605\n519610", 0, "", "519610"),  # Slurm has no such comment: the last one
    ("accepted", 0, f"{ENDED}\n{PENDING}\n{OTHER}", "519605"),
    ("", 0, f"Welcome\n{MINE}", "519605"),
    ("519605", 3, MINE, "519605"),  # the wrapper failed after sbatch had not
])  # fmt: skip
def test_the_queue_tells_the_number_that_a_wrapper_hides(programs, printed, code, queue, number):
    programs(sbatch=f"{printing(printed)}\nexit {code}", squeue=printing(queue))
    assert slurm.submit(["--nodes=1", "--comment=c/x 1"], "#!/bin/sh\n") == number


@pytest.mark.parametrize(("printed", "code", "queue", "is_silent"), [
    ("accepted", 0, ENDED, True),
    ("", 0, "", True),
    ("2026", 1, OTHER, False),
    ("", 1, MINE, False),
])  # fmt: skip
def test_no_number_is_invented(programs, printed, code, queue, is_silent):
    programs(sbatch=f"{printing(printed)}\nexit {code}", squeue=printing(queue))
    with pytest.raises(slurm.SlurmError) as error:
        slurm.submit(["--comment=c/x 1"], "#!/bin/sh\n")
    assert error.value.silent == failures.is_unanswered(error.value) == is_silent


def test_a_job_without_a_number_is_looked_for_and_not_submitted_for_ever(site):
    def hidden(options, script):
        site.submit(options, script)
        site.states.clear()
        raise slurm.NumberError("Thank you")

    slurm.submit = hidden  # put back by the fixture's monkeypatch
    queue = site.queue(site.task(0))
    (ended,) = site.steps(30)
    assert len(site.submitted) == UNNUMBERED and not queue.active and not queue.waiting
    assert "Thank you" in ended.why.text and "wrapper" in ended.why.text


def test_a_job_whose_number_shows_up_later_is_followed(site):
    def hidden(options, script):
        site.submit(options, script)
        raise slurm.NumberError("")

    slurm.submit = hidden
    queue = site.queue(site.task(0))
    site.steps(10)
    assert list(queue.active) == ["1"] and len(site.submitted) == 1


# -- variables of a user and of a job


HIDING = [
    *("SQUEUE_PARTITION", "SQUEUE_STATES", "SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SQUEUE_ACCOUNT", "SQUEUE_NAMES"),
    *("SQUEUE_USERS", "SQUEUE_SORT", "SQUEUE_LICENSES", "SINFO_PARTITION", "SINFO_FORMAT", "SINFO_ALL"),
    *("SCANCEL_STATE", "SCANCEL_INTERACTIVE", "SCANCEL_NAME", "SCONTROL_ALL", "SALLOC_PARTITION", "SACCT_FORMAT"),
    *("SBATCH_PARTITION", "SBATCH_TEST_ONLY", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN", "SLURM_JOB_ID", "SRUN_CPUS_PER_TASK"),
]  # fmt: skip
NEEDED = ["SLURM_CONF", "SLURM_JWT", "PATH", "SINFONIA", "MUNGE_SOCKET", "LD_LIBRARY_PATH"]


@pytest.mark.parametrize("name", HIDING)
def test_no_variable_changes_what_slurm_answers(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert name not in slurm.environment()


@pytest.mark.parametrize("name", NEEDED)
def test_what_reaches_the_cluster_stays(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert slurm.environment()[name] == "x"


@pytest.mark.parametrize(("cluster", "job", "kept"), [
    ("hpc", None, True),
    ("hpc,old", None, False),
    ("all", None, False),
    ("", None, False),
    ("hpc", "7", False),
])  # fmt: skip
def test_one_cluster_is_kept_on_a_login_node(monkeypatch, cluster, job, kept):
    monkeypatch.setenv("SLURM_CLUSTERS", cluster)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    assert ("SLURM_CLUSTERS" in slurm.environment()) == kept


def test_a_job_in_another_partition_than_the_users_own_is_seen(programs, monkeypatch):
    programs(
        squeue=f'case "${{SQUEUE_PARTITION:-test}}${{SQUEUE_STATES:-all}}" in testall) {printing(MINE)}\n;; esac'
    )
    monkeypatch.setenv("SQUEUE_PARTITION", "hii02")
    monkeypatch.setenv("SQUEUE_STATES", "PENDING")
    assert [job.number for job in slurm.jobs()] == ["519605"]


# -- squeue: lines that are no jobs


@pytest.mark.parametrize("banner", [
    "CLUSTER: hpc",
    "| a | b | c | d | e |",
    "||||||",
    "Welcome|to|the|cluster|of|us",
    "JOBID|STATE|NODELIST|TIME|COMMENT|REASON",
])  # fmt: skip
def test_banners_of_squeue_are_no_jobs(programs, banner):
    programs(squeue=printing(f"{banner}\n{MINE}\n{banner}"))
    assert [job.number for job in slurm.jobs()] == ["519605"]


@pytest.mark.parametrize(("output", "names"), [
    ("7|n[1-2]", ["n1", "n2"]),
    ("Welcome\n7|n1\nBye", ["n1"]),
    ("7|", []),
    ("", []),
    ("Welcome to the cluster", []),
])  # fmt: skip
def test_the_nodes_of_a_job_are_those_of_its_line(programs, output, names):
    programs(squeue=printing(output))
    assert slurm.job_nodes("7") == names


@pytest.mark.parametrize(("text", "names"), [
    ("n1", ["n1"]),
    ("n[1-3,7],login", ["n1", "n2", "n3", "n7", "login"]),
    ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ("rack[1]-node[05,09].site", ["rack1-node05.site", "rack1-node09.site"]),
    ("a, b", ["a", "b"]),
    ("(null)", ["(null)"]),
    ("", []),
])  # fmt: skip
def test_lists_of_names_are_expanded_as_slurm_does(text, names):
    assert hostnames(text) == names


# -- sinfo: states, and partitions


@pytest.mark.parametrize(("words", "is_usable"), [
    ("idle mixed allocated allocated+ completing mixed- planned perfctrs blocked", True),
    ("idle~ idle# mixed# allocated#", True),
    ("idle* mixed* allocated* planned* completing* reserved* maint* down* drained*", False),
    ("idle$ mixed$ allocated$ maint", False),
    ("reboot reboot^ reboot* idle@ idle^ mixed@ allocated^", False),
    ("idle% idle! mixed! powering_down power_down", False),
    ("drained draining drained~ draining$ drain drng fail failing fail*", False),
    ("down down~ down$ inval unknown unk unknown* future error resv reserved", False),
    ("IDLE+DRAIN DOWN*+DRAIN IDLE+MAINTENANCE IDLE+CLOUD+NOT_RESPONDING", False),
    ("IDLE+CLOUD+POWERED_DOWN MIXED+PLANNED IDLE+COMPLETING IDLE+DYNAMIC_NORM", True),
])  # fmt: skip
def test_states_say_whether_a_node_is_planned_with(programs, words, is_usable):
    listed = enumerate(words.split())
    lines = [f"n{place}|a*|64|257000|{word}|1:00|2:32:1|(null)|(null)" for place, word in listed]
    programs(sinfo=printing("\n".join(lines)))
    assert {node.state: node.usable for node in slurm.nodes(None)} == dict.fromkeys(
        words.split(), is_usable
    )


A, B = "1:00:00", "2-00:00:00"
LISTED = f"""\
n01|a|64|257000|idle|{A}|2:32:1|(null)|(null)
n01|b|64|257000|idle|{B}|2:32:1|(null)|(null)
n02|b|64|257000|idle|{B}|2:32:1|(null)|(null)
n03|a|64|257000|idle|{A}|2:32:1|(null)|(null)
n03|c|64|257000|idle|infinite|2:32:1|(null)|(null)"""


@pytest.mark.parametrize(("partition", "found"), [
    ("a,b", {"n01": ("a,b", 2880), "n02": ("b", 2880), "n03": ("a", 60)}),
    ("a, b", {"n01": ("a,b", 2880), "n02": ("b", 2880), "n03": ("a", 60)}),
    ("b,a,b", {"n01": ("b,a", 2880), "n02": ("b", 2880), "n03": ("a", 60)}),
    (" a , a ,", {"n01": ("a", 60), "n03": ("a", 60)}),
    ("a,c", {"n01": ("a", 60), "n03": ("a,c", None)}),
])  # fmt: skip
def test_a_node_of_several_partitions_is_one(programs, partition, found):
    programs(sinfo=printing(LISTED))
    nodes = slurm.nodes(partition)
    assert {node.name: (node.partition, node.limit) for node in nodes} == found
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
        there = cluster.find({**config, "site_facts": {"slurm": {"partition": "a, b"}}}, None)
        assert there.nodes == ("n01", "n02", "n03") and (there.count, there.limit) == (3, 2880)
        assert there.partition == "a,b" and cluster.Cluster.from_json(there.to_json()) == there
        peers = cluster.peers(there.nodes, "ring", 1)
        assert all(node != peer for node, peer in peers.items())
    site = tmp_path / "site.yaml"
    site.write_text("schema: 1\nname: x\nslurm: {partition: 'a, b', runtime_factor: 1000}\n")
    plan = made(tmp_path, monkeypatch, there, cpu=[CPU], nodes="all", site=str(site))
    options = {cell.node: jobs.named_options([cell], plan, {}) for cell in plan.cells}
    times = {node: int(wanted["time"]) for node, wanted in options.items()}
    assert times["n03"] == 60, "its partition ends longer jobs"
    assert times["n01"] == times["n02"] > 60
    assert {wanted["partition"] for wanted in options.values()} == {"a,b"}


@pytest.mark.parametrize(("text", "is_taken"), [
    ("a,b", True), ("a, b", True), ("a ,b", True), ("a,,b", False), ("a b", False), (",a", False),
])  # fmt: skip
def test_a_site_file_may_name_several_partitions(tmp_path, text, is_taken):
    path = tmp_path / "site.yaml"
    path.write_text(f"schema: 1\nname: x\nslurm: {{partition: '{text}'}}\n")
    if is_taken:
        assert sites.load(path)["slurm"]["partition"] == text
    else:
        with pytest.raises(Exception, match="partition"):
            sites.load(path)


# -- scontrol show node: as JSON and as text


def one_node(state, **more):
    """Nodes in JSON as scontrol writes them, with fields around them as Slurm 24.05 has them."""
    numbers = {"cpus": 32, "free_mem": {"set": True, "infinite": False, "number": 39871}}
    node = {"architecture": "x86_64", **numbers, "name": "n1", "state": state, **more}
    meta = {"plugin": {"data_parser": "data_parser/v0.0.41"}, "slurm": {"release": "24.05.0"}}
    return json.dumps({"nodes": [node], "meta": meta, "errors": [], "warnings": []}, indent=2)


IN_JSON = {
    one_node(["IDLE"]): {},
    one_node(["MIXED", "PLANNED"], reason="State=DOWN"): {},
    one_node(["IDLE", "CLOUD", "POWERED_DOWN"]): {},
    one_node(["IDLE", "MAINTENANCE", "RESERVED"], reason=""): {"n1": "IDLE+MAINTENANCE+RESERVED"},
    one_node(["DOWN", "NOT_RESPONDING"], reason="disk"): {"n1": "DOWN+NOT_RESPONDING (disk)"},
    one_node(["IDLE", "DRAIN"], reason=None): {"n1": "IDLE+DRAIN"},
    one_node(["IDLE", "REBOOT_ISSUED"]): {"n1": "IDLE+REBOOT_ISSUED"},
    one_node("idle", state_flags=["NOT_RESPONDING"]): {"n1": "IDLE+NOT_RESPONDING"},
    one_node("down", state_flags=[]): {"n1": "DOWN"},
    one_node("mixed"): {},
    "Welcome {}\n" + one_node(["DOWN"]) + "\nBye": {"n1": "DOWN"},
    json.dumps(json.loads(one_node(["DOWN"]))): {"n1": "DOWN"},  # in one line
}


@pytest.mark.parametrize("output", list(IN_JSON))
def test_states_in_json_of_every_version(programs, output):
    programs(scontrol=f'case "$*" in *--json*) {printing(output)}\n;; *) exit 1;; esac')
    assert slurm.nodes_unavailable(["n1"]) == IN_JSON[output]


IN_TEXT = {
    "State=IDLE+MAINTENANCE+RESERVED ThreadsPerCore=1": "IDLE+MAINTENANCE+RESERVED",
    "State=IDLE+MAINT ThreadsPerCore=1": "IDLE+MAINT",
    "State=IDLE* ThreadsPerCore=1": "IDLE*",
    "State=MIXED*+CLOUD ThreadsPerCore=1": "MIXED*+CLOUD",
    "State=IDLE+NOT_RESPONDING Reason=Not responding [slurm@2025-01-01T00:00:00]": "IDLE+NOT_RESPONDING (Not responding)",
    "State=IDLE+DRAIN Reason=State=bad disk X=1 : see T12 [root@2025-01-01T00:00:00] Comment=a State=b": "IDLE+DRAIN (State=bad disk X=1 : see T12)",
    "State=DOWN Reason=a [b] c [root@Tomorr 12:00]": "DOWN (a [b] c)",
    "State=DOWN Reason=no stamp Comment=x": "DOWN (no stamp)",
    "State=INVALID_REG": "INVALID_REG",
    "State=IDLE+REBOOT_ISSUED": "IDLE+REBOOT_ISSUED",
    "State=IDLE Reason=State=DOWN [root@2025-01-01T00:00:00]": None,
    "State=IDLE Comment=a State=DOWN": None,
    "State=IDLE Extra=NodeName=n1 State=DOWN": None,
    "State=ALLOCATED+COMPLETING": None,
    "State=IDLE+CLOUD+POWERED_DOWN": None,
    "State=IDLE+CLOUD+POWER": None,
    "State=MIXED+PLANNED": None,
    "State=IDLE+REBOOT_REQUESTED": None,
    "State=IDLE+RESERVED ThreadsPerCore=1": None,
}


@pytest.mark.parametrize("output", [
    "cat",
    "exit 1",
    'echo "scontrol: error: Unable to find plugin: serializer/json" >&2; exit 1',
    """echo '{"nodes": [], "errors": [{"description": "x"}]}'""",
    """echo '{"nodes": [{"name": "n1", "state"'""",
    "echo '[]'",
])  # fmt: skip
def test_states_as_text_where_there_is_no_json(programs, output):
    lines = [
        f"NodeName=n{place} Arch=x86_64 OS=Linux 6.1.0 #1 SMP {line}"
        for place, line in enumerate(IN_TEXT)
    ]
    text = printing("\n".join(["Welcome", *lines]))
    programs(scontrol=f'case "$*" in *--json*) {output};; *) {text}\n;; esac')
    found = slurm.nodes_unavailable([f"n{place}" for place in range(len(lines))])
    assert found == {f"n{place}": state for place, state in enumerate(IN_TEXT.values()) if state}


def test_slurm_22_05_says_the_same_as_text_and_as_json():
    text = states.of_text((DATA / "nodes-22.05.txt").read_text())
    named = {name: (states.flags(state), reason) for name, (state, reason) in text.items()}
    found = states.of_json((DATA / "sinfo-22.05.json").read_text())
    assert named == {name: (states.flags(state), why) for name, (state, why) in found.items()}
    assert named["node2"] == ({"IDLE", "DRAIN"}, "State=bad disk X=1 : see T12")
    assert named["node3"] == ({"IDLE", "MAINTENANCE", "RESERVED"}, "")


def test_jobs_of_a_reservation_wait_for_no_end_of_its_maintenance(programs):
    programs(scontrol=printing(one_node(["IDLE", "MAINTENANCE", "RESERVED"])))
    assert slurm.nodes_unavailable(["n1"]) and not slurm.nodes_unavailable(["n1"], True)
    programs(scontrol=printing(one_node(["IDLE", "DRAIN", "MAINTENANCE", "RESERVED"])))
    assert slurm.nodes_unavailable(["n1"], True)


# -- refusals: for ever, or for now


FAILED = "sbatch: error: Batch job submission failed:"
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
FOR_EVER = [
    f"{FAILED} Invalid account or account/partition combination specified",
    f"sbatch: error: use partition standby, or try again with fewer nodes {FAILED} Unspecified error",
    f"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying {FAILED} Invalid account",
    f"{FAILED} Invalid partition name specified standby: see the page on Connection limits",
    "sbatch: error: partition standby takes jobs of its owners alone",
    "sbatch: error: Your project is over its submit limit of hours",
    f"sbatch: error: Please try again with --account {FAILED} Invalid account",
    f"sbatch: error: Communication with support@site is needed {FAILED} Access/permission denied",
    f"{FAILED} Requested node configuration is not available",
    f"{FAILED} Node count specification invalid",
    f"{FAILED} More processors requested than permitted",
    f"{FAILED} User's group not permitted to use this partition",
    f"{FAILED} Requested nodes not in this partition",
    f"{FAILED} Invalid wckey specification",
    f"{FAILED} Multiple partition job request not supported when a partition is set in the association",
    f"{FAILED} Requested account has breached requested QOS usage threshold",
    f"{FAILED} Requested GRES option unsupported by configured SelectType plugin",
    f"{FAILED} Invalid license specification",
    f"{FAILED} Incompatible versions of client and server code",
    f"sbatch: error: QOSMaxNodePerJobLimit {FAILED} {POLICY}",
]
FOR_NOW = [
    f"{FAILED} Unable to contact slurm controller (connect failure)",
    f"{FAILED} Slurm backup controller in standby mode",
    f"{FAILED} Controller is in standby mode, try a different controller",
    f"{FAILED} Rate limit exceeded, please retry momentarily",
    f"{FAILED} Unable to create job record, try again",
    f"{FAILED} Resource temporarily unavailable",
    f"{FAILED} System submissions disabled",
    f"{FAILED} Connection refused",
    f"sbatch: error: AssocGrpSubmitJobsLimit {FAILED} {POLICY}",
    f"sbatch: error: QOSMaxSubmitJobsPerAccountLimit {FAILED} {POLICY}",
]
LOST = [
    f"{FAILED} Socket timed out on send/recv operation",
    f"{FAILED} Zero Bytes were transmitted or received",
    f"{FAILED} Unable to contact slurm controller (receive failure)",
    f"{FAILED} Message receive failure",
    f"{FAILED} Communication connection failure",
    f"{FAILED} Connection reset by peer",
    f"{FAILED} Connection timed out",
]
MAYBE = [
    f"{FAILED} {POLICY}",
    f"allocation failure: {POLICY}",
    f"{FAILED} Job violates accounting policy (the user's size and/or time limits)",
    f"sbatch: error: QOSMaxSubmitJobPerUserLimit {FAILED} {POLICY}",
    f"sbatch: error: AssocMaxSubmitJobLimit {FAILED} {POLICY}",
]
"""Only the jobs of this user tell whether their number is the limit, which may be 0."""


@pytest.mark.parametrize("has_jobs", [False, True])
@pytest.mark.parametrize("words", FOR_EVER)
def test_a_refusal_for_ever_is_none_for_now(words, has_jobs):
    error = refusal(words)
    assert not failures.is_temporary(error, has_jobs) and not failures.is_unanswered(error)
    assert failures.refusal(error).text


@pytest.mark.parametrize("words", [*FOR_NOW, *LOST])
def test_a_refusal_for_now_is_waited_for(words):
    error = refusal(words)
    assert failures.is_temporary(error, has_jobs=False)
    assert failures.is_unanswered(error) == (words in LOST)


@pytest.mark.parametrize("words", MAYBE)
def test_a_limit_without_jobs_in_the_queue_is_for_ever(words):
    assert not failures.is_temporary(refusal(words), has_jobs=False)
    assert failures.is_temporary(refusal(words), has_jobs=True)
    assert "sacctmgr" in failures.refusal(refusal(words)).text


@pytest.mark.parametrize(("queue", "is_temporary"), [("", False), (MINE, True)])
def test_a_check_shows_the_refusal(programs, queue, is_temporary):
    programs(sbatch=f'echo "{MAYBE[0]}" >&2; exit 1', squeue=printing(queue))
    found = failures.check({"time": "5", "nodes": "1"}, [])
    assert found.is_temporary == is_temporary and "Job violates" in found.text
    assert ("once none of your jobs is in the queue" in found.text) == is_temporary


@pytest.mark.parametrize("words", [
    "Required node not available (down, drained or reserved)",
    "Requested nodes are busy",
    "Job can not start due to maintenance reservation.",
    "Licenses currently unavailable",
])  # fmt: skip
def test_a_job_that_would_wait_is_no_refusal(programs, words):
    programs(sbatch=f'echo "allocation failure: {words}" >&2; exit 1')
    assert failures.check({"time": "5", "nodes": "1"}, []) is None


def test_a_campaign_ends_cells_that_no_end_of_a_job_lets_in(site):
    """The first job is in the queue while Slurm refuses the others: they are judged when it has
    ended.
    """
    site.refuses = lambda count: MAYBE[0] if count else None
    queue = site.queue()
    assert site.steps(20) == [] and list(queue.active) == ["1"]
    (message,) = site.messages
    assert "ends the cells" in message
    site.states.clear()
    ended = site.steps(20)
    assert len(ended) == 4 and not queue.waiting
    assert sum("Job violates" in end.why.text for end in ended) == 3


def test_a_lost_answer_stays_one():
    assert failures.is_temporary(NO_ANSWER, has_jobs=False) and failures.is_unanswered(NO_ANSWER)


# -- memory granted


@pytest.mark.parametrize(("details", "words", "advice"), [
    ({"MinMemoryNode": "300M", "TRES": "cpu=2,mem=300M,node=1"}, "(300M)", "memory_factor"),
    ({"MinMemoryCPU": "3013M", "TRES": "cpu=2,mem=6026M,node=1"}, "(3013M for each CPU, 6026M in all)", "per_cpu"),
    ({"MinMemoryCPU": "1G", "ReqTRES": "cpu=4,mem=4G,node=1", "AllocTRES": "cpu=4,mem=4G"}, "(1G for each CPU, 4G in all)", "memory_factor"),
    ({"MinMemoryCPU": "1.50G", "AllocTRES": "(null)"}, "(1.50G for each CPU)", "memory_factor"),
    ({"MinMemoryNode": "0", "ReqTRES": "cpu=2,mem=1M,node=1", "AllocTRES": "cpu=2,mem=187.50G,node=1"}, "its node (187.50G)", "pool"),
    ({"MinMemoryCPU": "0", "TRES": "cpu=2,mem=4G"}, "its node (4G)", "pool"),
    ({"MinMemoryNode": "0M"}, "its node: ", "pool"),
    ({"ReqTRES": "cpu=2,mem=4G,node=1"}, "granted (4G)", "memory_factor"),
    ({}, "granted: ", "memory_factor"),
])  # fmt: skip
def test_out_of_memory_says_how_much_was_granted(site, details, words, advice):
    failures.keep(site.plan.directory, site.plan.cells[0], "5", "OUT_OF_MEMORY", details)
    (path,) = failures.records.attempts(site.plan.directory, site.plan.cells[0])
    reason = failures.records.read(path)["reason"]
    assert words in reason and advice in reason and os.linesep not in reason


SILENT = """sinfo: error: get_addr_info: getaddrinfo() failed: Name or service not known
sinfo: error: slurm_set_addr: Unable to resolve "head"
sinfo: error: Unable to establish control machine address
slurm_load_partitions: Unable to contact slurm controller (connect failure)"""
UNKNOWN = """sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
sinfo: error: fetch_config: DNS SRV lookup failed
sinfo: error: _establish_config_source: failed to fetch config
sinfo: fatal: Could not establish a configuration source"""


@pytest.mark.parametrize(("said", "why"), [
    (SILENT, "slurm_load_partitions: Unable to contact slurm controller (connect failure): is"),
    (UNKNOWN, "Could not establish a configuration source: is this a login node"),
    ("sinfo: error: Invalid node format specification: q", "Invalid node format specification: q"),
    ("\n", "exit code 1"), ("", "exit code 1"),
])  # fmt: skip
def test_of_several_lines_the_last_one_says_why(said, why, programs, monkeypatch, peakmark):
    programs(sinfo=f"cat >&2 <<'EOF'\n{said}\nEOF\nexit 1")
    done = peakmark("doctor", "--slurm")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 4 and line.startswith(f"peakmark: sinfo failed: {why}")
    # What refusals are recognised by is whole.
    with pytest.raises(slurm.SlurmError) as caught:
        slurm.nodes(None)
    assert caught.value.reason == (" ".join(said.split()) or "exit code 1")


@pytest.mark.parametrize(("is_ready", "words", "code"), [
    (True, "^ready: .*peakmark run quick --slurm --site mine.yaml$", 0),
    (False, "^not ready: Slurm would not take", 4),
])  # fmt: skip
def test_the_doctor_of_a_cluster_ends_with_how_to_go_on(
    is_ready, words, code, tmp_path, monkeypatch, peakmark
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("schema: 1\nname: mine\n")
    monkeypatch.setattr(doctor, "examine_cluster", lambda *_: ("one node", is_ready))
    done = peakmark("doctor", "--slurm", "--site", "mine.yaml")
    assert done.returncode == code and re.search(words, done.stdout.splitlines()[-1])
