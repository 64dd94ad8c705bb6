# The configuration becomes the cells; all rules look them up here.

import json
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from peakmark import build, lock, plan, progress
from peakmark.errors import PeakmarkError

# Rules call the peakmark that stands beside this Python, on a node of a cluster as well as here.
shell.prefix(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"; ')

try:
    PLAN = plan.make(config)
except PeakmarkError as error:
    raise WorkflowError(str(error)) from None

CAMPAIGN = str(PLAN.directory)
CELLS = {cell.id: cell for cell in PLAN.cells}
RECORDS = [str(PLAN.record_path(cell)) for cell in PLAN.cells]

progress.expected_seconds = PLAN.seconds_left()


def take_machine():
    """The lock of a campaign that measures on this machine; on a cluster each node has its own."""
    if (
        workflow.executor_plugin is not None
        and workflow.executor_plugin.common_settings.local_exec
    ):
        try:
            return lock.acquire("campaign")
        except PeakmarkError as error:
            raise WorkflowError(str(error)) from None
    return None


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
