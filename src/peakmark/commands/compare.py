"""``peakmark compare``: two campaigns, or a campaign and published results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from peakmark import output
from peakmark.errors import ConfigError
from peakmark.run import build


def add(commands: Any) -> None:
    """Declare the commands."""
    compare = commands.add_parser(
        "compare",
        help="two campaigns, or a campaign and published results: what became better or worse",
        description="Ratio of medians B / A of every row that both have, with a bootstrap interval and a verdict.",
    )
    for side in ("A", "B"):
        compare.add_argument(
            side.lower(),
            metavar=side,
            help="folder of a campaign, or name or CSV file of published results",
        )
    compare.add_argument(
        "--interleave",
        action="store_true",
        help="A and B are configuration files: measure both on this machine in turn, then compare them round by round; "
        "of B one without a grid says what it does otherwise than A",
    )
    compare.add_argument(
        "--kernels", type=Path, default=build.folder(), help="folder of the compiled kernels"
    )
    compare.add_argument(
        "--confidence", type=_share, default=0.95, help="level of the intervals, default 0.95"
    )
    compare.add_argument(
        "--tolerance",
        type=_share,
        help="share by which a row may differ without a verdict, default 0.03; 0.01 for what was measured in turn",
    )
    compare.add_argument(
        "--repeat",
        metavar="A2",
        help="a second campaign of what A measured: its difference from A is how much rows drift",
    )
    compare.add_argument(
        "--fail-on", choices=["worse"], help="exit with 1 when a row became worse (for CI)"
    )
    compare.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from peakmark.analysis import compare, datasets

    first, second = options.a, options.b
    if options.interleave:
        from peakmark.workflow import interleave

        if options.repeat:
            raise ConfigError(
                "--repeat measures the drift between two times, which --interleave has not: leave one out"
            )
        first, second = map(str, interleave.run(Path(first), Path(second), options.kernels))
    text, counts = compare.report(
        datasets.read(first),
        datasets.read(second),
        options.confidence,
        options.tolerance,
        datasets.read(options.repeat) if options.repeat else None,
    )
    output.say(text)
    return 1 if options.fail_on and counts["worse"] else 0


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is not allowed: give a share from 0 to below 1, such as 0.95"
        )
    return value
