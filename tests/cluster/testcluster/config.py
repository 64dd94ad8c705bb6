"""The files and commands that describe a cluster: slurm.conf, slurmdbd.conf, hosts, network."""

import re
from dataclasses import dataclass
from pathlib import Path

LOGIN = "login"
ACCOUNT = "tests"
BRIDGE = "cluster0"
NETWORK = "10.77.0"
PMIX = Path("/usr/lib/x86_64-linux-gnu/pmix2/lib")
# slurmd loads a control group plugin even if nothing is set to use one. That of version 2 wants
# systemd or a place to write in, and looking for the right one fails where none is mounted; that of
# version 1 asks for nothing until it is used.
CGROUP_CONF = """CgroupPlugin=cgroup/v1
"""


@dataclass(frozen=True)
class Layout:
    """What one cluster is to be, and where its files are. These are the options of `Cluster.start`.

    nodes         how many
    cpus, memory  CPUs and MiB that each node claims to have, nothing is reserved; one number, or
                  one for each node
    name, prefix  of the cluster; of its nodes, which are PREFIX1, PREFIX2, ...
    accounting    with slurmdbd on a MariaDB of its own, so that sacct works
    account       the default partition takes jobs of account `tests` only, which is not the user's
                  default one (wants accounting)
    max_submit    jobs that a user may have in the queue, from the QOS; 0: no limit (wants
                  accounting)
    binding       task/affinity: a job's processes run on the CPUs it was given, and on no others
    preemption    partition `urgent` takes the nodes of jobs in all others: PreemptMode is REQUEUE
                  in `main` and CANCEL in `short`
    leaf          so many nodes hang on each leaf switch of a tree; 0: Slurm knows no topology
    without       programs that the nodes lack, while the login side has them
    """

    directory: Path
    nodes: int = 2
    cpus: int | tuple[int, ...] = 2
    memory: int | tuple[int, ...] = 4096
    name: str = "testcluster"
    prefix: str = "node"
    accounting: bool = False
    account: bool = False
    max_submit: int = 0
    binding: bool = False
    preemption: bool = False
    leaf: int = 0
    without: tuple[str, ...] = ()

    def each(self, given: int | tuple[int, ...]) -> tuple[int, ...]:
        """One number for each node."""
        return given if isinstance(given, tuple) else (given,) * self.nodes

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in range(1, self.nodes + 1)]

    def path(self, name: str) -> Path:
        return self.directory / name


def address(name: str) -> str:
    """The IPv4 address of a host: login is .1, the first node is .11."""
    number = re.search(r"[0-9]+$", name)
    return f"{NETWORK}.{10 + int(number[0])}" if number else f"{NETWORK}.1"


def hosts(layout: Layout) -> str:
    lines = ["127.0.0.1 localhost"]
    lines += [f"{address(name)} {name}" for name in (LOGIN, *layout.names)]
    return "\n".join(lines) + "\n"


def bridge_commands() -> str:
    """For `ip -batch` on the login side, whose network namespace also holds the bridge."""
    return f"""link set lo up
link add {BRIDGE} type bridge
addr add {address(LOGIN)}/24 dev {BRIDGE}
link set {BRIDGE} up
"""


def cable_commands(name: str, pid: int) -> str:
    """For `ip -batch` on the login side: a cable from the bridge to the node of first process `pid`."""
    return f"""link add {name} type veth peer name eth0 netns {pid}
link set {name} master {BRIDGE} up
"""


def interface_commands(name: str) -> str:
    """For `ip -batch` on a node."""
    return f"""link set lo up
addr add {address(name)}/24 dev eth0
link set eth0 up
"""


def slurm_conf(layout: Layout) -> str:
    at = layout.path
    cpus, memory = layout.each(layout.cpus), layout.each(layout.memory)
    text = f"""# Written by testcluster for one test cluster; not meant for any other.
ClusterName={layout.name}
SlurmctldHost={LOGIN}({address(LOGIN)})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at("run/munge.socket")}

StateSaveLocation={at("state")}
SlurmdSpoolDir={at("spool")}/%n
# PMIx names its folder by job and step alone, which are equal on all nodes of one machine.
TmpFS={at("tmp")}/%n
SlurmctldPidFile={at("run/slurmctld.pid")}
SlurmdPidFile={at("run")}/slurmd-%n.pid
SlurmctldLogFile={at("log/slurmctld.log")}
SlurmdLogFile={at("log")}/slurmd-%n.log
MailProg=/bin/true
SlurmctldDebug=info
SlurmdDebug=info
MpiDefault=none
# Nodes claim CPUs and memory that the machine need not have.
SlurmdParameters=config_overrides

# A dead node is DOWN after 10 to 20 s: two rounds of pings unanswered for MessageTimeout. Jobs stay
# known long enough for whoever asks squeue rarely.
SlurmdTimeout=6
MessageTimeout=5
KillWait=2
MinJobAge=3600
InactiveLimit=0
ReturnToService=2
EnforcePartLimits=ALL
SchedulerType=sched/backfill
# A job starts as soon as its node is free, not up to three seconds later.
SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={max(1, min(memory) // max(cpus) // 4)}
"""
    # A job step that uses more memory than its job was granted is ended: what its processes use
    # is added up every second.
    text += f"""ProctrackType=proctrack/linuxproc
TaskPlugin=task/{"affinity" if layout.binding else "none"}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
"""
    if layout.accounting:
        text += f"""AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={LOGIN}
AccountingStoragePass=socket={at("run/munge.socket")}
"""
    else:
        text += "AccountingStorageType=accounting_storage/none\n"
    if layout.account or layout.max_submit:
        text += "AccountingStorageEnforce=associations,limits,qos\n"
    for name, count, size in zip(layout.names, cpus, memory, strict=True):
        text += f"NodeName={name} CPUs={count} CoresPerSocket={count} RealMemory={size}\n"
    allowed = f"AllowAccounts={ACCOUNT} " if layout.account else ""
    cancel = "PreemptMode=CANCEL " if layout.preemption else ""
    text += f"""PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=1440 {allowed}State=UP
PartitionName=short Nodes=ALL DefaultTime=1 MaxTime=5 {cancel}State=UP
"""
    if layout.preemption:
        text += """PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL DefaultTime=1 PriorityTier=10 State=UP
"""
    if layout.leaf:
        text += "TopologyPlugin=topology/tree\n"
    return text


def topology_conf(layout: Layout) -> str:
    leaves = [
        f"SwitchName=leaf{first // layout.leaf + 1} "
        f"Nodes={','.join(layout.names[first : first + layout.leaf])}\n"
        for first in range(0, layout.nodes, layout.leaf)
    ]
    return "".join(leaves) + f"SwitchName=top Switches=leaf[1-{len(leaves)}]\n"


def slurmdbd_conf(layout: Layout) -> str:
    return f"""# Written by testcluster for one test cluster.
AuthType=auth/munge
AuthInfo=socket={layout.path("run/munge.socket")}
DbdHost={LOGIN}
SlurmUser=root
LogFile={layout.path("log/slurmdbd.log")}
PidFile={layout.path("run/slurmdbd.pid")}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct
CommitDelay=1
"""
