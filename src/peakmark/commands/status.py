"""``peakmark status``: how far a campaign has come."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from peakmark import output
from peakmark.command import seconds


def add(commands: Any) -> None:
    """Declare the commands."""
    status = commands.add_parser("status", help="done, missing and failed cells")
    status.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/quick")
    status.add_argument("--failed", action="store_true", help="only what failed or is missing")
    status.add_argument(
        "--watch",
        type=seconds(1, 86400),
        nargs="?",
        const=10.0,
        metavar="SECONDS",
        help="show it again every so many seconds (default 10) until all cells are done",
    )
    status.set_defaults(run=_status)


def _status(options: argparse.Namespace) -> int:
    from peakmark.storage.results import Results
    from peakmark.workflow import status

    while True:
        standing = status.describe(Results.read(options.campaign), only_failed=options.failed)
        if options.watch is None:
            output.say(standing.text)
            return 0
        output.clear()
        output.say(standing.text)
        if standing.complete:
            return 0
        time.sleep(options.watch)
