"""Starting the daemons of a cluster, each with a condition that says when it is ready."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

from . import config
from .config import LOGIN, Layout
from .errors import ClusterError
from .hosts import Hosts, checked, tail
from .processes import wait_until

READY_SECONDS = 30.0


def write_files(layout: Layout) -> None:
    """Everything the daemons read, and the folders they write to."""
    layout.directory.chmod(0o755)  # munge asks that everybody can reach its socket
    for name in ("slurm", "run", "log", "state", "spool"):
        layout.path(name).mkdir()
    for name, text, mode in (
        ("hosts", config.hosts(layout), 0o644),
        ("cgroups", "\n".join(layout.names if layout.cgroups else []), 0o644),
        ("slurm/slurm.conf", config.slurm_conf(layout), 0o644),
        ("slurm/cgroup.conf", config.CGROUP_CONF, 0o644),
        ("slurm/job_submit.lua", config.JOB_SUBMIT, 0o644),
        ("slurm/slurmdbd.conf", config.slurmdbd_conf(layout), 0o600),
    ):
        if name == "slurm/slurmdbd.conf" and not layout.accounting:
            continue
        layout.path(name).write_text(text)
        layout.path(name).chmod(mode)
    key = os.open(layout.path("munge.key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(key, "wb") as stream:
        stream.write(os.urandom(128))


def ready(condition: Callable[[], str | None], what: str, log: Path) -> None:
    """Wait until the condition has no complaint left. Raises ClusterError with the last complaint
    and the end of the log.
    """
    complaint: list[str | None] = [None]

    def satisfied() -> bool:
        complaint[0] = condition()
        return complaint[0] is None

    try:
        wait_until(satisfied, READY_SECONDS, what)
    except ClusterError as error:
        raise ClusterError(f"{error}; {complaint[0]}{tail(log)}") from None


def start_munge(hosts: Hosts, layout: Layout) -> None:
    """One daemon serves all hosts: they reach it through a socket in the file system, which they
    share.
    """
    at, log, end = layout.path, layout.path("log/munged.out"), layout.path("run/munge.socket")
    hosts.daemon(
        LOGIN,
        ["munged", "--foreground", f"--key-file={at('munge.key')}", f"--socket={end}", f"--pid-file={at('run/munged.pid')}",
         f"--log-file={at('log/munged.log')}", f"--seed-file={at('state/munged.seed')}"],
        log,
    )  # fmt: skip
    ready(lambda: refused(end), "munged answers", log)


def start_database(hosts: Hosts, layout: Layout) -> None:
    """MariaDB with its own data, reached by a socket only."""
    data, end, log = (
        layout.path("database"),
        layout.path("run/mariadb.socket"),
        layout.path("log/mariadb.log"),
    )
    checked(
        [*hosts.enter(LOGIN), "mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
         "--auth-root-authentication-method=socket"],
        "the database of the cluster",
    )  # fmt: skip
    hosts.daemon(
        LOGIN,
        ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={end}", f"--pid-file={layout.path('run/mariadb.pid')}",
         "--skip-networking", "--user=root", "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"],
        log,
    )  # fmt: skip
    ready(lambda: refused(end), "the database answers", log)


def start_slurmdbd(hosts: Hosts, layout: Layout) -> None:
    log = layout.path("log/slurmdbd.out")
    # slurmdbd has no setting for the socket of its database, but the client library in it reads
    # this variable.
    hosts.daemon(
        LOGIN, ["slurmdbd", "-D"], log, {"MYSQL_UNIX_PORT": str(layout.path("run/mariadb.socket"))}
    )
    ready(
        lambda: fails(hosts, "sacctmgr", "--noheader", "list", "cluster"), "slurmdbd answers", log
    )
    # The account that is used is not the user's default one, where jobs are to say it.
    first = "other" if layout.account else config.ACCOUNT
    for words in (
        ["add", "cluster", layout.name],
        *(
            [
                "add",
                "account",
                name,
                f"cluster={layout.name}",
                f"description={name}",
                "organization=tests",
            ]
            for name in dict.fromkeys((first, config.ACCOUNT))
        ),
        ["add", "user", "root", f"account={first}", f"defaultaccount={first}"],
        *([["add", "user", "root", f"account={config.ACCOUNT}"]] if layout.account else []),
        *(
            [["modify", "qos", "normal", "set", f"MaxSubmitJobsPerUser={layout.max_submit}"]]
            if layout.max_submit
            else []
        ),
    ):
        checked(
            [*hosts.enter(LOGIN), "sacctmgr", "--immediate", "--quiet", *words],
            "the accounts of the cluster",
        )


def start_slurmctld(hosts: Hosts, layout: Layout) -> None:
    log = layout.path("log/slurmctld.out")
    hosts.daemon(LOGIN, ["slurmctld", "-D"], log)
    ready(lambda: fails(hosts, "scontrol", "show", "partition"), "slurmctld answers", log)


def start_slurmd(hosts: Hosts, layout: Layout, name: str) -> None:
    hosts.daemon(name, ["slurmd", "-D"], layout.path(f"log/slurmd-{name}.out"))


def refused(end: Path) -> str | None:
    """None when someone listens at this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(end))
        except OSError as error:
            return str(error)
    return None


def fails(hosts: Hosts, *command: str) -> str | None:
    """None when this command succeeds on the login side."""
    try:
        checked([*hosts.enter(LOGIN), *command], command[0])
    except ClusterError as error:
        return str(error)
    return None
