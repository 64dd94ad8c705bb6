# The configuration becomes the cells; all rules look them up here.

import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from peakmark import (
    adaptive,
    build,
    captions,
    cluster,
    guard,
    head,
    integrity,
    jobs,
    lock,
    plan,
    progress,
    resume,
    watch,
)
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
        os.environ.pop(guard.OWNER, None)
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


# What is there already, read once. A job looks at its own cells only.
FOUND = integrity.survey(PLAN.directory, PLAN.cells) if workflow.is_main_process else {}
NEWER = resume.newer_than_all(FOUND)


def is_measured(cell):
    """Whether the cell has a whole, unchanged record with its present options."""
    finding = FOUND.get(cell.id)
    return finding.state == integrity.GOOD if finding else PLAN.is_measured(cell)


def is_unfit(cell):
    return resume.unfit(FOUND.get(cell.id))


# Of rows that are repeated until they are sure: what is asked for by now, and what nobody will ask for.
ASKED = {cell.id for cell in PLAN.asked()} if PLAN.criteria else None
SPARED = PLAN.spared()


def needed(cells):
    """Those of the cells that are asked for by now."""
    return [cell for cell in cells if ASKED is None or cell.id in ASKED]


progress.expected_seconds = plan.total_cost(
    cell for cell in needed(PLAN.cells) if not is_measured(cell)
).seconds


def measured():
    """What must be there before the tables: every record that is needed in any case, or the word of each node's jobs
    that all its records are."""
    if not BY_NODE:
        return [PLAN.record_name(cell) for cell in PLAN.surely()]
    done = {
        group: PLAN.directory / "nodes" / "{}.{}".format(*group) for group in GROUPS
    }
    if workflow.is_main_process:
        for group, path in done.items():
            if not all(is_measured(cell) for cell in needed(GROUPS[group])):
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
    decisions = adaptive.read(Path(path))
    cells = adaptive.asked(PLAN.cells, PLAN.criteria, decisions, number)
    return [path, *(PLAN.record_name(cell) for cell in cells)]


def asked_before(wildcards):
    return asked_in(int(wildcards.round))


def all_records(wildcards):
    """Every record that is needed, round by round."""
    return RECORDS + [
        path for number in range(1, ROUNDS + 1) for path in asked_in(number)
    ]


# Behind tables that still stand, Snakemake would not miss a lost record: it must be asked for by name.
LOST = [
    path
    for path in (RECORDS if (PLAN.directory / "tables").exists() else [])
    if not os.path.exists(path)
]


def take_machine():
    """Who measures must be alone: on this machine, or with this campaign. Then records that do not count are set aside."""
    try:
        held = [head.lock(PLAN.directory)]
        if CLUSTER is None:
            held.append(lock.acquire("campaign"))
            # A cell does not outlive a killed Snakemake here; jobs of a cluster do, until the next run.
            os.environ[guard.OWNER] = guard.own()
        else:
            head.check()
            head.cancel_left_over(PLAN)
        resume.begin(PLAN, FOUND)
        return held
    except PeakmarkError as error:
        raise WorkflowError(str(error)) from None


if CLUSTER is not None and workflow.is_main_process:
    watch.install(PLAN)


KERNELS_UP_TO_DATE = build.up_to_date()
# Asking each of ten thousand cells takes seconds; mostly no cell has anything to wait for.
NOTHING_FIRST = KERNELS_UP_TO_DATE and not any(is_unfit(cell) for cell in PLAN.cells)


def kernels_first(wildcards):
    """The kernels, where they must be compiled before this cell. A finished cell does not depend on them: kernels that
    were compiled anew or removed void no measurement (the record names the version that measured). `ancient` cannot
    say this: with it, Snakemake 9.27 takes all cells behind an outdated kernel for finished.
    """
    one = CELLS[wildcards.cell]
    # A record that does not count is older than this file, and so its cell is measured again.
    again = [NEWER] if is_unfit(one) else []
    if KERNELS_UP_TO_DATE or is_measured(one):
        return again
    return [*again, *build.programs()]


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
    left = [one for one in cells if not is_measured(one) and one.id not in SPARED]
    return left or cells


def kernels_first_of_node(wildcards):
    """The same for a node's job; it reads the plan, which must not void it either."""
    if all(is_measured(one) for one in needed(of_node(wildcards))):
        return []
    return (
        rules.plan.output.plan
        if KERNELS_UP_TO_DATE
        else [rules.plan.output.plan, *build.programs()]
    )


def for_report(name, title, caption="table"):
    """A table of the campaign, for snakemake --report too."""
    return report(
        f"{CAMPAIGN}/tables/{name}.csv",
        caption=f"../reports/captions/{caption}.rst",
        category="Tables",
        labels={"table": title},
    )
