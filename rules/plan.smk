# The configuration becomes the cells; everything else is looked up here.

import json
import os
import shlex
import sys

from snakemake.exceptions import WorkflowError

from peakmark import cluster, head, jobs, lock, plan, progress, watch
from peakmark.errors import PeakmarkError

PEAKMARK = f"{shlex.quote(sys.executable)} -m peakmark"


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
    """What must be there before the tables: every record, or the word of each node's jobs that all its records are."""
    if not BY_NODE:
        return [str(PLAN.record_path(cell)) for cell in PLAN.cells]
    done = {
        group: PLAN.directory / "nodes" / "{}.{}".format(*group) for group in GROUPS
    }
    if workflow.is_main_process:
        for group, path in done.items():
            if not all(PLAN.record_path(cell).exists() for cell in GROUPS[group]):
                path.unlink(missing_ok=True)
    return [str(path) for path in done.values()]


RECORDS = measured()


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


rule plan:
    output:
        plan=f"{CAMPAIGN}/plan.json",
        config=f"{CAMPAIGN}/config.json",
    log:
        f"{CAMPAIGN}/logs/plan.log",
    localrule: True
    params:
        config=json.dumps(config, sort_keys=True),
        references=json.dumps([one.to_json() for one in PLAN.references]),
        nodes=CLUSTER.nodes if CLUSTER else None,
    shell:
        "{PEAKMARK} plan --config-json {params.config:q} --write {output.plan:q} > {log:q} 2>&1"
