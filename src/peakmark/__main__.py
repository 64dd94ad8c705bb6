"""``python -m peakmark``, and ``python -S .../peakmark/__main__.py``, as the rules call it: without the packages that are
installed, which take longer to look through than a small cell to measure. Who needs one of them gets it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Installed:
    """Asked last where a module is: then the installed packages are needed, and looked through after all. Python's own
    modules look for some that only other systems have.
    """

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, _: ModuleType | None = None, /) -> ModuleSpec | None:
        if path is None and name not in sys.stdlib_module_names:
            sys.meta_path.remove(cls)
            import site
            from importlib.util import find_spec

            site.main()
            return find_spec(name)
        return None


def _paths_without_urls() -> None:
    """Load pathlib without ``urllib.parse`` and ``ipaddress``, a tenth of what a cell's process loads: it makes file://
    addresses with them, and nothing else.
    """

    def quote_from_bytes(path: bytes) -> str:
        from urllib.parse import quote_from_bytes

        return quote_from_bytes(path)

    stand_in = type(sys)("urllib.parse")
    stand_in.quote_from_bytes = quote_from_bytes  # type: ignore[attr-defined] # a module takes any name
    sys.modules[stand_in.__name__] = stand_in
    import pathlib  # noqa: F401 - for all who import it after this

    del sys.modules[stand_in.__name__]


def main() -> int:
    """Run one command. Returns the exit code. A cell's process loads no parser of command lines."""
    if sys.argv[1:2] == ["measure"]:
        from peakmark.command import outcome
        from peakmark.measuring import command

        order = command.order(sys.argv[1:])
        if order is not None:
            return outcome(lambda: command.run(order))
    from peakmark import cli

    return cli.main()


if __name__ == "__main__":
    if not __package__:  # started by its path, whose folder is not to be looked into
        sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
        if sys.flags.no_site:
            sys.meta_path.append(_Installed)
            _paths_without_urls()
    code = main()
    if sys.argv[1:2] == ["measure"]:
        # All is written and nothing is left running: to take the interpreter apart would take longer than a cell's record.
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)
