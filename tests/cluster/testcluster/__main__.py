"""The cluster from the command line, for a person.

python -m tests.cluster.testcluster up --nodes 2
python -m tests.cluster.testcluster exec -- snakemake --profile slurm
python -m tests.cluster.testcluster down
"""

import argparse
import os
import sys
import time
from pathlib import Path

from .cluster import Cluster
from .errors import ClusterError

CHECKOUT = Path(__file__).resolve().parents[3]
# Where the one cluster of this checkout is, for `exec`, `status` and `down`; the folder is for
# build products and ignored by git.
POINTER = CHECKOUT / "build" / "testcluster"
PYTHON = Path(sys.executable)
PROG = f"{PYTHON.relative_to(CHECKOUT) if PYTHON.is_relative_to(CHECKOUT) else 'python'} -m tests.cluster.testcluster"


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="A real Slurm cluster on this machine, in namespaces of its own (root only).",
    )
    parser.set_defaults(directory=None)
    commands = parser.add_subparsers(dest="action", required=True)
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument(
        "--directory",
        type=Path,
        metavar="D",
        help="state directory; default: the cluster of this checkout",
    )

    up = commands.add_parser("up", parents=[where], help="start a cluster; it stays until `down`")
    up.add_argument("--nodes", type=int, default=2, metavar="N", help="number of nodes (default 2)")
    up.add_argument(
        "--cpus", type=int, default=2, metavar="N", help="CPUs each node claims to have (default 2)"
    )
    up.add_argument(
        "--memory",
        type=int,
        default=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        metavar="MIB",
        help="memory each node claims to have (default: this machine's)",
    )
    up.add_argument(
        "--accounting",
        action="store_true",
        help="with slurmdbd and a database, so that sacct works",
    )
    commands.add_parser("down", parents=[where], help="end the cluster and remove its files")
    commands.add_parser("status", parents=[where], help="nodes, queue and logs")
    execute = commands.add_parser(
        "exec", parents=[where], help="run a command on the cluster's login side"
    )
    execute.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="the command and its arguments",
    )
    return parser


def find(directory: Path | None) -> Cluster:
    if directory is None:
        if not POINTER.is_symlink():
            raise ClusterError(f"no test cluster of this checkout runs; start one with `{PROG} up`")
        directory = Path(os.readlink(POINTER))
    return Cluster.attach(directory)


def up(options: argparse.Namespace) -> int:
    if options.directory is None and POINTER.is_symlink():
        if (Path(os.readlink(POINTER)) / "cluster.json").exists() and find(None).alive():
            raise ClusterError(
                f"a test cluster of this checkout runs already; end it with `{PROG} down`"
            )
        POINTER.unlink()
    began = time.monotonic()
    cluster = Cluster.start(
        options.nodes,
        cpus=options.cpus,
        memory=options.memory,
        accounting=options.accounting,
        directory=options.directory,
    )
    try:
        if options.directory is None:
            POINTER.parent.mkdir(exist_ok=True)
            POINTER.symlink_to(cluster.layout.directory)
        cluster.release()
    except BaseException:
        cluster.down()
        raise
    place = "" if options.directory is None else f" --directory {options.directory}"
    print(
        f"{options.nodes} nodes are up after {time.monotonic() - began:.1f} s, with everything in {cluster.layout.directory}"
    )
    print(f"use it:   {PROG} exec{place} -- snakemake --profile slurm")
    print(f"end it:   {PROG} down{place}")
    return 0


def down(options: argparse.Namespace) -> int:
    try:
        find(options.directory).down()
    finally:
        if options.directory is None:
            POINTER.unlink(missing_ok=True)
    return 0


def status(options: argparse.Namespace) -> int:
    cluster = find(options.directory)
    print(f"state directory {cluster.layout.directory} (logs in log/)")
    print(cluster.run(["sinfo", "--Node", "--long"]).stdout, end="")
    print(cluster.run(["squeue"]).stdout, end="")
    return 0


def execute(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise ClusterError(f"exec needs a command, such as `{PROG} exec -- sinfo`")
    cluster = find(options.directory)
    if not cluster.alive():
        raise ClusterError(
            f"the test cluster in {cluster.layout.directory} does not run any more; start one with `{PROG} up`"
        )
    line = cluster.command(command)
    # The programs of this Python's environment are found, also where nobody has activated it.
    environment = cluster.environment()
    environment["PATH"] = f"{PYTHON.parent}:{environment['PATH']}"
    os.execvpe(line[0], line, environment)


def main() -> int:
    options = arguments().parse_args()
    try:
        return {"up": up, "down": down, "status": status, "exec": execute}[options.action](options)
    except ClusterError as error:
        print(f"testcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
