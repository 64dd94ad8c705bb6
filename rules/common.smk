# The configuration becomes the cells; all rules look them up here.

import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from peakmark import adaptive, build, cluster, head, jobs, lock, plan, progress, watch
from peakmark.errors import PeakmarkError

# Rules call the peakmark that stands beside this Python, on a node of a cluster as well as here.
shell.prefix(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"; ')


def on_command_line(name):
    """A value of --default-resources, None if it is not given there."""
    given = workflow.resource_settings.default_resources
    return str(given[name].raw) if given and name in given else None


def find_cluster(completed):
    """The cluster, asked by the process that submits and handed to the jobs; None where this machine measures."""
    if workflow.is_main_process:
        os.environ.pop(cluster.VARIABLE, None)
        # Jobs are counted only by executors that hand them elsewhere.
        if workflow.resource_settings.nodes is not None:
            earlier = plan.RESULTS / completed["campaign"] / "plan.json"
            head.prepare()
            found = cluster.find(completed, on_command_line("slurm_partition"), earlier)
            os.environ[cluster.VARIABLE] = json.dumps(found.to_json())
    return cluster.from_environment()


try:
    COMPLETED = plan.complete(
        config, on_cluster=workflow.resource_settings.nodes is not None
    )
    CLUSTER = find_cluster(COMPLETED)
    PLAN = plan.make(config, CLUSTER)
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


progress.expected_seconds = PLAN.seconds_left()


def modules_of(instrument):
    return PLAN.config["modules"].get(instrument, [])


def measured():
    """What must be there before the tables: every record that is needed in any case, or the word of each node's jobs
    that all its records are."""
    if not BY_NODE:
        return [str(PLAN.record_path(cell)) for cell in PLAN.surely()]
    done = {
        group: PLAN.directory / "nodes" / "{}.{}".format(*group) for group in GROUPS
    }
    if workflow.is_main_process:
        missing = {cell.id for cell in PLAN.missing()}
        for group, path in done.items():
            if any(cell.id in missing for cell in GROUPS[group]):
                path.unlink(missing_ok=True)
    return [str(path) for path in done.values()]


RECORDS = measured()
# After the last round nothing is left to decide, but the decision tells what was spared.
ROUNDS = 0 if BY_NODE else adaptive.rounds(PLAN.criteria)


def asked_in(number):
    """Records of a round of repetitions, by the decisions after the round before."""
    if number == 0:
        return RECORDS
    path = checkpoints.decide.get(round=number - 1).output[0]
    cells = adaptive.asked(PLAN.cells, PLAN.criteria, adaptive.read(Path(path)), number)
    return [path, *(str(PLAN.record_path(cell)) for cell in cells)]


def asked_before(wildcards):
    return asked_in(int(wildcards.round))


def all_records(wildcards):
    """Every record that is needed, round by round."""
    return RECORDS + [
        path for number in range(1, ROUNDS + 1) for path in asked_in(number)
    ]


def take_machine():
    """Who measures must be alone: on this machine, or with this campaign."""
    try:
        if CLUSTER is None:
            return lock.acquire("campaign")
        held = head.lock(PLAN.directory)
        head.check()
        head.cancel_left_over(PLAN)
        return held
    except PeakmarkError as error:
        raise WorkflowError(str(error)) from None


if CLUSTER is not None and workflow.is_main_process:
    watch.install(PLAN)


KERNELS_UP_TO_DATE = build.up_to_date()


def kernels_first(wildcards):
    """The kernels, where they must be compiled before this cell. A finished cell does not depend on them: kernels that
    were compiled anew or removed void no measurement (the record names the version that measured). `ancient` cannot
    say this: with it, Snakemake 9.27 takes all cells behind an outdated kernel for finished.
    """
    if KERNELS_UP_TO_DATE or PLAN.is_measured(cell(wildcards)):
        return []
    return build.programs()


def cell(wildcards):
    return CELLS[
        "{subsystem}/{instrument}/{point}/{node}/{repetition}".format(**wildcards)
    ]


def priority(wildcards):
    return PRIORITY[cell(wildcards).id]


def of_node(wildcards):
    return GROUPS[wildcards.node, wildcards.part]


def missing_of_node(wildcards):
    """What the job will have to do; all of it when only options have changed."""
    cells = of_node(wildcards)
    return [one for one in cells if not PLAN.record_path(one).exists()] or cells


def kernels_first_of_node(wildcards):
    """The same for a node's job; it reads the plan, which must not void it either."""
    if all(PLAN.is_measured(one) for one in of_node(wildcards)):
        return []
    return (
        rules.plan.output.plan
        if KERNELS_UP_TO_DATE
        else [rules.plan.output.plan, *build.programs()]
    )
