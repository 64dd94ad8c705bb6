# The configuration becomes the cells; everything else is looked up here.

import json
import shlex
import sys

from snakemake.exceptions import WorkflowError

from peakmark import lock, plan, progress
from peakmark.errors import PeakmarkError

PEAKMARK = f"{shlex.quote(sys.executable)} -m peakmark"

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
    if workflow.executor_plugin is not None and workflow.executor_plugin.common_settings.local_exec:
        try:
            return lock.acquire("campaign")
        except PeakmarkError as error:
            raise WorkflowError(str(error)) from None
    return None


rule plan:
    output:
        f"{CAMPAIGN}/plan.json",
    params:
        config=json.dumps(config, sort_keys=True),
        references=json.dumps([one.to_json() for one in PLAN.references]),
    log:
        f"{CAMPAIGN}/logs/plan.log",
    localrule: True
    shell:
        "{PEAKMARK} plan --config-json {params.config:q} --write {output:q} > {log:q} 2>&1"
