"""``peakmark status``: how far a campaign has come."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from peakmark import output


def add(commands: Any) -> None:
    """Declare the commands."""
    status = commands.add_parser("status", help="done, missing and failed cells")
    status.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/quick")
    status.add_argument("--failed", action="store_true", help="only what failed or is missing")
    status.add_argument(
        "--watch",
        type=float,
        nargs="?",
        const=10.0,
        metavar="SECONDS",
        help="show it again every so many seconds (default 10) until all cells are done",
    )
    status.set_defaults(run=_status)


def _status(options: argparse.Namespace) -> int:
    from peakmark.running import status
    from peakmark.storage.results import Results

    while True:
        standing = status.describe(Results.read(options.campaign), only_failed=options.failed)
        if options.watch is None:
            output.say(standing.text)
            return 0
        # Home, the text, and nothing of the one before below or beside it.
        output.say("\033[H\033[2J" + standing.text if sys.stdout.isatty() else standing.text)
        if standing.complete:
            return 0
        time.sleep(max(1.0, options.watch))
