"""The cluster from the command line, for a person.

python -m tests.cluster.testcluster up --nodes 2
python -m tests.cluster.testcluster exec -- snakemake --profile slurm
python -m tests.cluster.testcluster down
"""

import argparse
import os
import sys
from pathlib import Path

from .cluster import STATE, Cluster
from .processes import ClusterError

CHECKOUT = Path(__file__).resolve().parents[3]
# A link to the one cluster of this checkout, for `exec` and `down`.
POINTER = CHECKOUT / "build" / "testcluster"
PYTHON = Path(sys.executable)
PROGRAM = PYTHON.relative_to(CHECKOUT) if PYTHON.is_relative_to(CHECKOUT) else "python"
PROG = f"{PROGRAM} -m tests.cluster.testcluster"
MEMORY_MIB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog=PROG,
        description="A real Slurm cluster on this machine, in namespaces of its own (root only).",
    )
    commands = top.add_subparsers(dest="action", required=True)
    up = commands.add_parser("up", help="start a cluster; it stays until `down`")
    up.add_argument("--nodes", type=int, default=2, help="number of nodes (default 2)")
    up.add_argument("--accounting", action="store_true", help="with slurmdbd, so that sacct works")
    commands.add_parser("down", help="end the cluster and remove its files")
    execute = commands.add_parser("exec", help="run a command on the cluster's login side")
    execute.add_argument("command", nargs="+", metavar="-- COMMAND")
    return top


def find() -> Cluster:
    """The running cluster of this checkout."""
    if not POINTER.is_symlink():
        raise ClusterError(f"no test cluster of this checkout runs; start one with `{PROG} up`")
    return Cluster.attach(POINTER.readlink())


def start(options: argparse.Namespace) -> None:
    """`up`: start a cluster and let it live on."""
    if POINTER.is_symlink():
        if (POINTER / STATE).exists() and find().alive():
            raise ClusterError(f"a test cluster of this checkout runs; end it with `{PROG} down`")
        POINTER.unlink()
    cluster = Cluster.start(options.nodes, memory=MEMORY_MIB, accounting=options.accounting)
    try:
        POINTER.parent.mkdir(exist_ok=True)
        POINTER.symlink_to(cluster.layout.directory)
        cluster.release()
    except BaseException:
        cluster.down()
        raise
    print(f"{options.nodes} nodes are up, with everything in {cluster.layout.directory}")
    print(f"use it:   {PROG} exec -- snakemake --profile slurm")
    print(f"end it:   {PROG} down")


def act(options: argparse.Namespace) -> None:
    """Do what the command line says."""
    if options.action == "up":
        start(options)
    elif options.action == "down":
        try:
            find().down()
        finally:
            POINTER.unlink(missing_ok=True)
    else:
        cluster = find()
        line, environment = cluster.command(options.command), cluster.environment()
        # The programs of this Python's environment are found, also where nobody has activated it.
        environment["PATH"] = f"{PYTHON.parent}:{environment['PATH']}"
        os.execvpe(line[0], line, environment)


def main() -> int:
    """Exit status of the command."""
    try:
        act(parser().parse_args())
    except ClusterError as error:
        print(f"testcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
