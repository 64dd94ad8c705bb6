"""A module knows only what stands above its folder in CONTRIBUTING's list, and no two modules know
each other.

Imports within functions and those for type checkers count as all others do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from peakmark.resources import ROOT

PACKAGE = ROOT / "src" / "peakmark"
ITSELF = "itself"
TOP = ("cli", "__main__")


def layers() -> list[str]:
    """Folders in the order of CONTRIBUTING's table; ``itself`` stands for the package's own
    modules.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("| folder of `src/peakmark/`") :].partition("\n\n")[0]
    firsts = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    return [
        name
        for first in firsts
        for name in re.findall(r"`(\w+)(?:/|\.py)`|(itself)", first)
        for name in name
        if name
    ]


def modules() -> dict[str, Path]:
    """Dotted name below ``peakmark`` -> file."""
    names = (path.relative_to(PACKAGE).with_suffix("").parts for path in PACKAGE.rglob("*.py"))
    return {
        ".".join(parts).removesuffix(".__init__"): PACKAGE.joinpath(*parts).with_suffix(".py")
        for parts in names
    }


def layer(module: str, known: dict[str, Path]) -> str:
    """The folder that a module is in, or of which it is the ``__init__``."""
    if module in TOP:
        return "cli"
    first, inner, _ = module.partition(".")
    return (
        first if inner or (known[module].name == "__init__.py" and module != "__init__") else ITSELF
    )


def imports(module: str, known: dict[str, Path]) -> Iterator[tuple[str, int]]:
    """What a module of the package imports of it, wherever it does so, with the line."""
    for node in ast.walk(ast.parse(known[module].read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} line {node.lineno}: imports name the package"
            names = [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != "peakmark":
                continue
            while parts[1:] and ".".join(parts[1:]) not in known:
                parts.pop()
            if parts[1:]:
                yield ".".join(parts[1:]), node.lineno


def test_the_table_names_every_folder() -> None:
    known = modules()
    assert sorted({*layers()}) == sorted({layer(module, known) for module in known} - {"data"})
    assert len(known) > 150


def test_a_module_knows_only_what_stands_above_it() -> None:
    known, order = modules(), layers()
    wrong = [
        f"{module} line {line} imports {other}"
        for module in known
        for other, line in imports(module, known)
        if layer(other, known) in order
        and layer(module, known) in order
        and order.index(layer(other, known)) > order.index(layer(module, known))
    ]
    assert wrong == []


def test_no_modules_know_each_other() -> None:
    known = modules()
    graph = {
        module: {other for other, _ in imports(module, known) if other != module}
        for module in known
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle of imports: {' -> '.join(error.args[1])}") from None
