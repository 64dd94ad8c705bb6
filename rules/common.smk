# The configuration becomes a plan, which all rules ask. What decides is in src/peakmark/workflow/.

import sys
from functools import partial

from peakmark.config import campaign
from peakmark.run import kernel_build
from peakmark.resources import code_digest
from peakmark.rows import CAMPAIGN, CHECK, FRAMES
from peakmark.workflow import run, startup
from peakmark.workflow.startup import as_workflow_error
from peakmark.messages import captions
from peakmark.tools.tables import BY_NAME, tables_of
from snakemake_executor_plugin_peakmark import ExecutorSettings


def on_command_line():
    """Values of --default-resources that are words."""
    defaults = workflow.resource_settings.default_resources
    values = dict(word.split("=", 1) for word in defaults.args) if defaults else {}
    return {name: values[name] for name in run.RESOURCE_SETTINGS if name in values}


# Not `configfile:`, which passes over what is lost, such as a key that stands twice.
config = as_workflow_error(
    partial(
        campaign.read,
        workflow.overwrite_configfiles,
        workflow.config_settings.config_args,
        config,
    )
)


def read_run():
    """The run; inside a job of an executor that starts Snakemake there, the run's plan."""
    if not workflow.is_main_process:
        return run.RunInJob(config)
    # Jobs are counted only by executors that hand them elsewhere.
    return run.Run(
        config,
        remote=workflow.resource_settings.nodes is not None,
        overrides=on_command_line(),
        has_queue=ExecutorSettings.chosen,
    )


RUN = as_workflow_error(read_run)
for name in RUN.limited_resources:
    workflow.register_resource(name, 1)
shell.prefix(run.shell_prefix())
MEASURE = run.measure_command(RUN.plan.directory)


def for_report(name, title, caption="table"):
    """A table of the campaign, for snakemake --report too."""
    return report(
        f"{RUN.folder}/tables/{name}.csv",
        caption=f"../reports/snakemake/{caption}.rst",
        category="Tables",
        labels={"table": title},
    )
