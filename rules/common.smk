# The configuration becomes the cells; all rules look them up here.

import gc
import inspect
import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from peakmark.planning import cluster, given, jobs, plan
from peakmark.errors import PeakmarkError

# Ten thousand jobs are some million objects that live to the end. Python would look for garbage among them time and
# again, which took a sixth of the planning; what is garbage dies young and is still found.
gc.set_threshold(100_000, 20, 20)

# Snakemake makes folders too: none is for everybody to write.
os.umask(os.umask(0o077) | 0o002)

# Rules call the peakmark that stands beside this Python, on a node of a cluster as well as here.
shell.prefix(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"; ')


def for_each_cell(function):
    """Snakemake asks for the signature of a rule's function two or three times at each call: it finds it ready."""
    function.__signature__ = inspect.signature(function)
    return function


def on_command_line(name):
    """A value of --default-resources, None if it is not given there."""
    given = workflow.resource_settings.default_resources
    return str(given[name].raw) if given and name in given else None


def find_cluster(completed):
    """The cluster, asked by the process that submits and handed to the jobs; None where this machine measures."""
    if workflow.is_main_process:
        from peakmark.measuring import guard
        from peakmark.running import head

        os.environ.pop(cluster.VARIABLE, None)
        os.environ.pop(guard.OWNER, None)
        # Jobs are counted only by executors that hand them elsewhere.
        if workflow.resource_settings.nodes is not None:
            earlier = plan.RESULTS / completed["campaign"] / "plan.json"
            head.prepare()
            found = cluster.find(completed, on_command_line("slurm_partition"), earlier)
            os.environ[cluster.VARIABLE] = json.dumps(found.to_json())
    return cluster.from_environment()


try:
    # Not `configfile:`, which passes over what is lost, such as a key that stands twice.
    config = given.read(
        workflow.overwrite_configfiles, workflow.config_settings.config_args
    )
    COMPLETED = plan.complete(
        config,
        # A job on a node knows by what it inherits that it is one: its plan must be the one that was submitted.
        on_cluster=workflow.resource_settings.nodes is not None
        or cluster.VARIABLE in os.environ,
        checked=not workflow.is_main_process,
    )
    CLUSTER = find_cluster(COMPLETED)
    PLAN = plan.build(COMPLETED, CLUSTER)
except PeakmarkError as error:
    raise WorkflowError(str(error)) from None

CAMPAIGN = str(PLAN.directory)
CELLS = {cell.id: cell for cell in PLAN.cells}
# Without priorities Snakemake runs jobs in an order of its own, and repetitions in none.
PRIORITY = {cell.id: len(PLAN.cells) - place for place, cell in enumerate(PLAN.cells)}
GROUPS = jobs.groups(PLAN)
BY_NODE = CLUSTER is not None and PLAN.config["fan_out"] == "node"
SITE = {
    name: value
    for name, value in (jobs.site_resources(PLAN) if CLUSTER else {}).items()
    if on_command_line(name) is None
}


wildcard_constraints:
    campaign=PLAN.campaign.replace(".", "[.]"),


if workflow.is_main_process:

    include: "campaign.smk"

else:
    # A job measures what it is given; what a campaign needs to know would only make it start later.
    SOMETHING_FIRST = False
    is_measured = PLAN.is_measured


def takes_two(wildcards):
    return CLUSTER is not None and jobs.two_nodes(CELLS[wildcards.cell])


def measure_words(cell):
    """What `peakmark measure` is told; a cell whose words change is measured again."""
    tool = config.get("tools", {}).get(cell.instrument, "auto")
    words = ["--cell", cell.spec(), "--tool", str(tool)]
    words += [
        f"--module={name}" for name in PLAN.config["modules"].get(cell.instrument, [])
    ]
    if CLUSTER and jobs.two_nodes(cell):
        words.append("--pair")
    return shlex.join(words)


def of_node(wildcards):
    return GROUPS[wildcards.node, wildcards.part]


def missing_of_node(wildcards):
    """What the job will have to do; all of it when only options have changed."""
    cells = of_node(wildcards)
    return [one for one in cells if not is_measured(one)] or cells
