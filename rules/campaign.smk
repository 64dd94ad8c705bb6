# What the process that runs a campaign knows beyond its plan: what is there already, and what is asked for.

import os
from pathlib import Path

from peakmark import interrupts
from peakmark.measuring import build, guard, lock
from peakmark.reporting import captions, makers
from peakmark.running import head, preflight, progress, resume, watch
from peakmark.storage import integrity

# What is there already, read once.
FOUND = resume.survey(PLAN.directory, PLAN.cells)
NEWER = resume.newer_than_all(FOUND)


def is_measured(cell):
    """Whether the cell has a whole, unchanged record with its present options."""
    return FOUND[cell.id].state == integrity.GOOD


def is_unfit(cell):
    return resume.unfit(FOUND[cell.id])


WANTED = PLAN.wanted()
try:
    preflight.say(
        preflight.check(PLAN, [cell for cell in WANTED if not is_measured(cell)])
    )
except PeakmarkError as error:
    raise WorkflowError(str(error)) from None
progress.campaign = CAMPAIGN
progress.expected_seconds = plan.total_cost(
    cell for cell in WANTED if not is_measured(cell)
).seconds


def measured():
    """What must be there before the tables: every record that is needed in any case, or the word of each node's jobs
    that all its records are."""
    if not BY_NODE:
        return [PLAN.record_name(cell) for cell in PLAN.surely()]
    done = {
        group: PLAN.directory / "nodes" / "{}.{}".format(*group) for group in GROUPS
    }
    missing = {cell.id for cell in WANTED if not is_measured(cell)}
    for group, path in done.items():
        if any(cell.id in missing for cell in GROUPS[group]):
            path.unlink(missing_ok=True)
    return [str(path) for path in done.values()]


RECORDS = measured()
# Behind tables that still stand, Snakemake would not miss a lost record: it must be asked for by name.
LOST = [
    path
    for path in (RECORDS if (PLAN.directory / "tables").exists() else [])
    if not os.path.exists(path)
]


def take_machine():
    """Who measures must be alone: on this machine, or with this campaign. Then records that do not count are set aside."""
    interrupts.once()  # the last words are said undisturbed, however often Ctrl-C is pressed
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


if CLUSTER is not None:
    watch.install(PLAN)


KERNELS_UP_TO_DATE = build.up_to_date()
# To ask each of ten thousand cells takes seconds, and mostly none has anything to wait for.
SOMETHING_FIRST = not KERNELS_UP_TO_DATE or any(is_unfit(cell) for cell in PLAN.cells)


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


def kernels_first_of_node(wildcards):
    """The same for a node's job; it reads the plan, which must not void it either."""
    wanted = {cell.id for cell in WANTED}
    if all(is_measured(one) for one in of_node(wildcards) if one.id in wanted):
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
        caption=f"../reports/snakemake/{caption}.rst",
        category="Tables",
        labels={"table": title},
    )
