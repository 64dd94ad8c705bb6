"""A module knows only what is above its folder in CONTRIBUTING's list, and no two know each other."""

import ast
import re
from graphlib import CycleError, TopologicalSorter

from peakmark.resources import ROOT

PACKAGE = ROOT / "src" / "peakmark"
ITSELF = "itself"
TOP = {"bundle": "bundle", "cli": "cli", "__main__": "cli"}


def layers():
    """Folders in the order of CONTRIBUTING's table; ``itself``: the package's own modules."""
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


def modules():
    """Dotted name below ``peakmark`` -> file."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }


def layer(module):
    """The folder that a module is in, or of which it is the ``__init__``."""
    if module in TOP:
        return TOP[module]
    first, inner, _ = module.partition(".")
    return first if inner or (PACKAGE / first).is_dir() else ITSELF


def imports():
    """Module -> the modules of the package that it imports, wherever it does so."""
    known = modules()
    graph = {module: set() for module in known}
    for module, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{module} line {node.lineno}"
                names = [f"{node.module}.{name.name}" for name in node.names]
            elif isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            for parts in (name.split(".")[1:] for name in names if name.startswith("peakmark.")):
                while parts and ".".join(parts) not in known:
                    parts.pop()
                graph[module] |= {".".join(parts)} - {"", module}
    return graph


def test_the_table_names_every_folder():
    known = modules()
    assert sorted({*layers()}) == sorted({layer(module) for module in known} - {"data"})
    assert len(known) > 100


def test_a_module_knows_only_what_stands_above_it():
    places = {name: place for place, name in enumerate(layers())}
    wrong = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if {layer(module), layer(other)} <= places.keys()
        and places[layer(other)] > places[layer(module)]
    ]
    assert wrong == []


def test_no_modules_know_each_other():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle of imports: {' -> '.join(error.args[1])}") from None
