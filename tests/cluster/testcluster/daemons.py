"""Starting the daemons of a cluster, each with a condition that says when it is ready."""

import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import config
from .config import ACCOUNT, LOGIN, Layout
from .hosts import Hosts, checked, tail
from .processes import ClusterError, wait_until

READY_SECONDS = 30.0


def write_files(layout: Layout) -> None:
    """Write all that the daemons read, and make the folders they write to."""
    layout.directory.chmod(0o755)  # munge asks that everybody can reach its socket
    for name in ("slurm", "run", "log", "state", "spool"):
        layout.path(name).mkdir()
    for name in layout.names:
        layout.path(f"tmp/{name}").mkdir(parents=True)
    # Slurm loads PMIx by a name that only Debian's package for developers brings.
    if config.PMIX.is_dir():
        shutil.copytree(config.PMIX, layout.path("pmix"))
        layout.path("pmix/libpmix.so").unlink(missing_ok=True)
        layout.path("pmix/libpmix.so").symlink_to("libpmix.so.2")
    files = {
        "hosts": config.hosts(layout),
        "slurm/slurm.conf": config.slurm_conf(layout),
        "slurm/cgroup.conf": config.CGROUP_CONF,
        **({"slurm/topology.conf": config.topology_conf(layout)} if layout.leaf else {}),
        "slurm/slurmdbd.conf": config.slurmdbd_conf(layout),
    }
    for name, text in files.items():
        layout.path(name).write_text(text)
    layout.path("slurm/slurmdbd.conf").chmod(0o600)
    layout.path("munge.key").touch(0o600)
    layout.path("munge.key").write_bytes(os.urandom(128))


def start_all(hosts: Hosts, layout: Layout) -> None:
    """Start the daemons of the login side, one after the other."""
    at = layout.path
    # One munged serves all hosts: they share the file system, and in it its socket.
    munge = ["munged", "--foreground", f"--key-file={at('munge.key')}"]
    munge += [f"--socket={at('run/munge.socket')}", f"--pid-file={at('run/munged.pid')}"]
    munge += [f"--log-file={at('log/munged.log')}", f"--seed-file={at('state/munged.seed')}"]
    _start(hosts, layout, munge, lambda: _connect(at("run/munge.socket")))
    if layout.accounting:
        _start_accounting(hosts, layout)
    asked = ["scontrol", "show", "partition"]
    _start(hosts, layout, ["slurmctld", "-D"], lambda: _try(hosts, asked))


def _start_accounting(hosts: Hosts, layout: Layout) -> None:
    """slurmdbd and its database, which is reached by a socket only, with the accounts in it."""
    at = layout.path
    data, end = f"--datadir={at('database')}", str(at("run/mariadb.socket"))
    install = ["mariadb-install-db", "--no-defaults", data, "--user=root", "--skip-test-db"]
    install += ["--auth-root-authentication-method=socket"]
    checked([*hosts.enter(LOGIN), *install])
    database = ["mariadbd", "--no-defaults", data, f"--socket={end}", "--user=root"]
    database += [f"--pid-file={at('run/mariadb.pid')}", "--skip-networking"]
    database += ["--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"]
    _start(hosts, layout, database, lambda: _connect(Path(end)))
    # slurmdbd has no setting for its database's socket; the client library reads this variable.
    asked = ["sacctmgr", "--noheader", "list", "cluster"]
    environment = {"MYSQL_UNIX_PORT": end}
    _start(hosts, layout, ["slurmdbd", "-D"], lambda: _try(hosts, asked), environment)
    # The account that is used is not the user's default one, where jobs must name it.
    default = "other" if layout.account else ACCOUNT
    orders = [f"add cluster {layout.name}"]
    orders += [
        f"add account {name} cluster={layout.name} description={name} organization=tests"
        for name in dict.fromkeys((default, ACCOUNT))
    ]
    orders += [f"add user root account={default} defaultaccount={default}"]
    if layout.account:
        orders += [f"add user root account={ACCOUNT}"]
    if layout.max_submit:
        orders += [f"modify qos normal set MaxSubmitJobsPerUser={layout.max_submit}"]
    for order in orders:
        checked([*hosts.enter(LOGIN), "sacctmgr", "--immediate", "--quiet", *order.split()])


def start_slurmd(hosts: Hosts, layout: Layout, name: str) -> None:
    """Start the daemon of a node; do not wait for it."""
    hosts.daemon(name, ["slurmd", "-D"], layout.path(f"log/slurmd-{name}.out"), {})


def _start(
    hosts: Hosts,
    layout: Layout,
    command: Sequence[str],
    attempt: Callable[[], object],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Start a daemon and wait until the attempt to use it raises nothing."""
    log = layout.path(f"log/{command[0]}.out")
    hosts.daemon(LOGIN, command, log, environment or {})
    complaint = ""

    def ready() -> bool:
        nonlocal complaint
        try:
            attempt()
        except (OSError, ClusterError) as error:
            complaint = str(error)
            return False
        return True

    try:
        wait_until(ready, READY_SECONDS, f"{command[0]} answers")
    except ClusterError as error:
        raise ClusterError(f"{error}; {complaint}{tail(log)}") from None


def _connect(end: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.connect(str(end))


def _try(hosts: Hosts, command: Sequence[str]) -> None:
    checked([*hosts.enter(LOGIN), *command])
