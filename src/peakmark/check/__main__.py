"""Run ``peakmark check`` with any Python from 3.11 on, without an environment: see ``check.command``.

A prolog that ends with another code than 0 drains its node. Therefore no error here ends with 1, the exit
code of a slow node and of Python's own tracebacks.
"""

import sys
from pathlib import Path

ERROR = 4
"""Exit code of errors, as in ``errors.ExitCode``."""


def main() -> int:
    """Make the package importable, and run the command."""
    if sys.version_info < (3, 11):  # noqa: UP036 - any Python may read this file
        print(f"peakmark: {sys.executable} is older than Python 3.11", file=sys.stderr)
        return ERROR
    sys.dont_write_bytecode = True  # nothing is written into the installation
    # Python put the folder ``check`` there. The package is importable from the folder that contains it.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    try:
        from peakmark.check import command
    except ImportError as error:
        print(f"peakmark: the installation is incomplete: {error}", file=sys.stderr)
        return ERROR
    return command.main()


if __name__ == "__main__":
    sys.exit(main())
