# The configuration becomes the cells; all rules look them up here.

import json
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from peakmark import lock, plan, progress
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


def cell(wildcards):
    return CELLS[
        "{subsystem}/{instrument}/{point}/{node}/{repetition}".format(**wildcards)
    ]
