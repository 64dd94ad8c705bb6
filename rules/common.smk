# The configuration becomes a plan, which all rules ask. What decides is in src/peakmark/workflow/.

import sys
from functools import partial

from peakmark.config import overrides
from peakmark.run import build
from peakmark.report import makers
from peakmark.workflow import head, run
from peakmark.workflow.user_errors import as_workflow_error
from peakmark.tables import captions


def on_command_line():
    """--default-resources, as far as they are words."""
    given = workflow.resource_settings.default_resources
    return {
        name: str(given[name].raw) for name in run.OVERRIDES if given and name in given
    }


# Not `configfile:`, which passes over what is lost, such as a key that stands twice.
config = as_workflow_error(
    partial(
        overrides.read,
        workflow.overwrite_configfiles,
        workflow.config_settings.config_args,
    )
)
# Jobs are counted only by executors that hand them elsewhere.
RUN = as_workflow_error(
    partial(
        run.Run,
        config,
        main=workflow.is_main_process,
        remote=workflow.resource_settings.nodes is not None,
        given=on_command_line(),
    )
)
shell.prefix(run.shell_prefix())
MEASURE = run.measuring()


def for_report(name, title, caption="table"):
    """A table of the campaign, for snakemake --report too."""
    return report(
        f"{RUN.folder}/tables/{name}.csv",
        caption=f"../reports/snakemake/{caption}.rst",
        category="Tables",
        labels={"table": title},
    )


wildcard_constraints:
    campaign=RUN.plan.campaign.replace(".", "[.]"),
