"""Snakemake logger ``peakmark``: one bar with the time left, and one line for each failure.

The time left is the expected time of the cells, corrected by their pace since the first job began to
measure (``status.Progress``). The wait before that does not predict the time left. A bar by the number of
jobs would jump, because a reference tool can take fifty times as long as a kernel.
"""

from snakemake_logger_plugin_peakmark.handler import LogHandler, LogHandlerSettings

__all__ = ["LogHandler", "LogHandlerSettings"]
