"""Run Snakemake for ``peakmark run``, with the exit codes of peakmark."""

from __future__ import annotations

import signal
import sys

from peakmark.errors import ExitCode
from peakmark.run import cleanup
from peakmark.workflow.startup import UserError

_FAILED = 1
"""Exit code of Snakemake for every failure except a wrong command line, which has the exit code 2."""


def main() -> int:
    """Run Snakemake with the arguments of this process, and return the exit code."""
    from snakemake import cli

    sys.argv[0] = "snakemake"
    try:
        cli.main()
    except SystemExit as end:
        if end.code == _FAILED and cleanup.pressed:
            return 128 + signal.SIGINT
        if end.code == _FAILED:
            return UserError.exit_code
        return int(end.code or 0)
    return ExitCode.GOOD


if __name__ == "__main__":
    raise SystemExit(main())
