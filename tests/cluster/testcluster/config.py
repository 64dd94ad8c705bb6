"""The files and commands that describe a cluster: slurm.conf, slurmdbd.conf, hosts, network."""

from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError

LOGIN = "login"
NAME = "testcluster"
BRIDGE = "cluster0"
NETWORK = "10.77.0"
# sun_path holds 108 bytes, and the longest socket is SLURMD_SPOOL/nodeNN_4294967295.4294967294.
LONGEST_DIRECTORY = 50
MOST_NODES = 64

# slurmd loads a control group plugin even if nothing is set to use one. That of version 2 wants systemd or a place to write in, and
# looking for the right one fails where none is mounted; that of version 1 asks for nothing until it is used.
CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"


@dataclass(frozen=True)
class Layout:
    """What one cluster is to be, and where its files are."""

    directory: Path
    nodes: int = 2
    cpus: int = 2
    memory: int = 4096  # MiB per node, claimed, not reserved
    accounting: bool = False
    node_timeout: int = 6  # seconds without an answer until a node is DOWN

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MOST_NODES:
            raise ClusterError(f"a test cluster has 1 to {MOST_NODES} nodes, not {self.nodes}")
        if self.cpus < 1:
            raise ClusterError(f"a node of a test cluster has 1 or more CPUs, not {self.cpus}")
        if len(str(self.directory)) > LONGEST_DIRECTORY:
            raise ClusterError(
                f"the state directory {self.directory} has too long a name for the sockets in it; "
                f"choose one of at most {LONGEST_DIRECTORY} characters"
            )
        if not str(self.directory).isascii() or any(letter in str(self.directory) for letter in " \t#,'\"\\=%"):
            raise ClusterError(
                f"slurm.conf cannot hold the name {self.directory}; choose a plain one, such as /tmp/mycluster"
            )

    @property
    def names(self) -> list[str]:
        return [f"node{number}" for number in range(1, self.nodes + 1)]

    def path(self, name: str) -> Path:
        return self.directory / name


def address(name: str) -> str:
    """The IPv4 address of a host: login is .1, node1 is .11."""
    return f"{NETWORK}.1" if name == LOGIN else f"{NETWORK}.{10 + int(name.removeprefix('node'))}"


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
    """For `ip -batch` on the login side: a cable from the bridge to the node whose first process is `pid`."""
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
    accounting = (
        f"""AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={LOGIN}
AccountingStoragePass=socket={at("run/munge.socket")}
"""
        if layout.accounting
        else "AccountingStorageType=accounting_storage/none\n"
    )
    return f"""# Written by testcluster for one test cluster; not meant for any other.
ClusterName={NAME}
SlurmctldHost={LOGIN}({address(LOGIN)})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at("run/munge.socket")}

StateSaveLocation={at("state")}
SlurmdSpoolDir={at("spool")}/%n
SlurmctldPidFile={at("run/slurmctld.pid")}
SlurmdPidFile={at("run")}/slurmd-%n.pid
SlurmctldLogFile={at("log/slurmctld.log")}
SlurmdLogFile={at("log")}/slurmd-%n.log
MailProg=/bin/true
SlurmctldDebug=info
SlurmdDebug=info

# Without control groups of its own: the machine's are shared by all nodes.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
# Nodes claim CPUs and memory that the machine need not have.
SlurmdParameters=config_overrides

# Quick to notice, quick to act: a dead node is DOWN after 10 to 20 s, which is two rounds of pings that go unanswered for
# MessageTimeout. Jobs stay known long enough for whoever asks squeue rarely.
SlurmdTimeout={layout.node_timeout}
MessageTimeout=5
KillWait=2
MinJobAge=3600
InactiveLimit=0
ReturnToService=2
EnforcePartLimits=ALL
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={max(1, layout.memory // layout.cpus // 4)}

# A job step is ended when it uses more memory than its job was granted: what its processes use is added up every second.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill

{accounting}
NodeName=node[1-{layout.nodes}] CPUs={layout.cpus} CoresPerSocket={layout.cpus} RealMemory={layout.memory} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=1440 State=UP
PartitionName=short Nodes=ALL DefaultTime=1 MaxTime=5 State=UP
"""


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
