"""Snakemake executor ``peakmark``: submit the shell command of each job to Slurm, and follow the jobs.

The plugin needs only Snakemake's executor interface. No Snakemake starts on a node, because the rule's
shell command is the job script. ``peakmark.slurm.queue`` follows the jobs in this process.
"""

from snakemake_executor_plugin_peakmark.executor import Executor, ExecutorSettings, common_settings

__all__ = ["Executor", "ExecutorSettings", "common_settings"]
