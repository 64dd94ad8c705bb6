"""The command line: the commands with their options, and how each ends: one sentence for every
mistake, and the exit code.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from peakmark import __version__, commands, data, interrupts, output, resources
from peakmark.errors import ConfigError, PeakmarkError, Terminated, sentence
from peakmark.run import build


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(
        prog="peakmark",
        description="How close a cluster node comes to its physical limits. To measure: peakmark run",
    )
    parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
    group = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, entry in tomllib.loads(data.text("commands.toml")).items():
        arguments, one_of = entry.pop("arguments", {}), entry.pop("one_of", {})
        command = group.add_parser(name, **entry)
        command.set_defaults(run=getattr(commands, name))
        _declare(command, arguments)
        if one_of:
            _declare(command.add_mutually_exclusive_group(required=True), one_of)
    return parser


def _declare(group: Any, arguments: Mapping[str, dict[str, Any]]) -> None:
    """Add arguments to the parser of a command, or to a group of it."""
    for names, settings in arguments.items():
        if "between" in settings:
            settings["type"] = partial(_number, settings.pop("between"))
        elif "type" in settings:
            settings["type"] = TYPES[settings["type"]]
        group.add_argument(*names.split(", "), **settings)


def _number(bounds: Sequence[float], text: str) -> float:
    least, most = bounds
    if not least <= float(text) <= most:
        raise argparse.ArgumentTypeError(
            f"{text} is not allowed: give a number from {least:g} to {most:g}"
        )
    return float(text)


TYPES: dict[str, Callable[[str], Any]] = {
    "path": Path,
    "integer": int,
    "kernels": lambda text: Path(text) if text else build.folder(),
}
"""Type of an argument in ``commands.toml`` -> what converts its text."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 1 (failed), 2 (wrong use), and 128 and more when
    told to end.
    """
    output.open_streams()
    os.umask(os.umask(0o077) | 0o002)  # whatever the user's says, nothing is for everybody to write
    try:
        with interrupts.handled():
            try:
                return _execute(list(sys.argv[1:] if arguments is None else arguments))
            finally:
                output.flush()  # here, where what cannot be written is still one sentence
    except ConfigError as error:
        return _said(str(error), 2)
    except PeakmarkError as error:
        return _said(str(error), 1)
    except BrokenPipeError:
        output.drop()
        return 1
    except OSError as error:
        output.drop()
        return _said(sentence(error), 1)
    except Terminated:
        return _said("told to end", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return _said("interrupted", 130)


def _execute(words: list[str]) -> int:
    end = words.index("--") if words[:1] == ["run"] and "--" in words else len(words)
    resources.keep_matplotlib()
    options = build_parser().parse_args(words[:end])
    options.snakemake = words[end + 1 :]
    return int(options.run(options) or 0)


def _said(text: str, code: int) -> int:
    with suppress(OSError):
        output.tell(text)
    return code
