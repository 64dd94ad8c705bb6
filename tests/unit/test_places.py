"""Whatever is registered has all of its places: what CONTRIBUTING says of an addition is held here."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from tests.unit.tools.test_outputs import GOOD

from peakmark import data
from peakmark.analysis.checks import CHECKS
from peakmark.catalogue import SUBSYSTEMS
from peakmark.report import method_text
from peakmark.resources import ROOT, schema
from peakmark.tables import captions
from peakmark.tools import REGISTRY, references
from peakmark.tools.tables import TABLES

PACKAGE = ROOT / "src" / "peakmark"
UNIT = ROOT / "tests" / "unit"
WITHOUT_PACKAGE = {"pmbw": "no distribution carries it"}
SPACK = {"likwid-bench": "likwid", "ping": "", "pmbw": ""}
"""What Spack calls a tool; empty for one that it does not carry."""
PLANNING = ("jobs", "plan", "cluster", "durations")
PARTS_WITHOUT_TEXT = {"schema", "unknown"}
"""What the facts hold that is no fact of a node."""
ONLY_IN_THE_FILE = {
    *("memory.available", "storage.free"),  # of one moment
    *("memory.channels_source", "storage.mount_point"),  # where others are from
    *("memory.transparent_huge_pages_defrag", "os.io_uring_disabled"),
    "network.mode",  # the remark on the speed names it
}
"""Facts for whoever reads ``machine/<node>.json``: no report shows them and no limit takes them."""
WORKLOADS = [(one.name, workload) for one in SUBSYSTEMS.values() for workload in one.workloads]


@pytest.mark.parametrize(("subsystem", "workload"), WORKLOADS)
def test_a_workload_has_its_places(subsystem: str, workload: str) -> None:
    one = SUBSYSTEMS[subsystem]
    assert any(workload in row.workloads for row in REGISTRY[one.kernel].rows)
    named = [names.split() for title, names, _ in method_text.COUNTED if title == one.title]
    # Reports/method.yaml: counted.
    assert any(name in (workload, workload.partition("-")[0]) for names in named for name in names)
    assert any(table.subsystem == subsystem and table.takes(workload, 1 << 20) for table in TABLES)
    folder = ROOT / "src" / "kernels" / {"network": "net"}.get(subsystem, subsystem)
    said = "".join(path.read_text() for path in [*folder.glob("*.c"), *folder.glob("*.inc")])
    word = {"LAT-TCP": "latency", "LAT-UDP": "latency"}.get(workload, workload)
    runs = (ROOT / "tests" / "kernels" / "runs" / f"{one.kernel}.sh").read_text()
    for where, text in ((folder, said), (f"tests/kernels/runs/{one.kernel}.sh", runs)):
        assert re.search(rf"\b{word}\b", text), where
    grids = schema("config")["properties"][subsystem]["description"]
    assert workload in re.findall(r"[\w-]+", grids), "config/schema/config.schema.json"
    shipped = (ROOT / "config" / "config.yaml").read_text()
    assert re.search(rf"workloads: \[.*\b{workload}\b.*\]", shipped), "config/config.yaml"
    if subsystem == "cpu":
        assert workload in {line["workload"] for line in data.table("operations")}
        for name in ("config/schema/site.schema.json", "tests/kernels/emulated/run.py"):
            assert f'"{workload}"' in (ROOT / name).read_text(), name


@cache
def packages() -> list[str]:
    """The Debian packages of reference tools that envs/install.sh knows: package, kind, columns."""
    script = "purpose=run; . envs/debian.bash; packages_of_tools"
    words = ["bash", "-c", script]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("name", references())
def test_a_reference_tool_has_its_places(name: str) -> None:
    instrument = REGISTRY[name]
    assert any((UNIT / "data" / name).iterdir()), "real output"
    assert any(case.startswith(f"{name}/") for case in GOOD), "tools/test_outputs.py"
    columns = {series.instrument for table in TABLES for series in table.references}
    assert name in columns
    line = f"{instrument.package} {instrument.component or 'optional'} {instrument.heading} columns"
    assert line in packages() or name in WITHOUT_PACKAGE, "envs/debian.bash"
    config = schema("config")
    of_grid = config["$defs"]["grids"]["items"]["properties"]["references"]
    for named in (config["properties"]["tools"], config["properties"]["modules"], of_grid):
        assert sorted(named["propertyNames"]["enum"]) == sorted(references()), "config.schema.json"
    assert set(references()[name].options) <= set(of_grid["additionalProperties"]["properties"])
    shipped = (ROOT / "config" / "config.yaml").read_text()
    assert re.search(rf"^ +{name}: ", shipped, re.MULTILINE), "config/config.yaml"
    page = (ROOT / "docs" / "campaigns.md").read_text()
    assert references()[name].heading in page, "docs/campaigns.md"
    spack = page.partition("`spack install ")[2].partition("`")[0].split()
    assert SPACK.get(name, name) in [*spack, ""], "docs/campaigns.md"
    quick = (ROOT / "config" / "presets" / "quick.yaml").read_text()
    assert re.search(rf"^ +{name}: ", quick, re.MULTILINE), "config/presets/quick.yaml"
    assert f'"{name}"' in (UNIT / "plan" / "test_plan.py").read_text(), "test_plan.py"
    broken = (ROOT / "tests" / "faults" / "test_tools.py").read_text()
    assert name == "pmbw" or f'"{name}"' in broken, "tests/faults/test_tools.py"
    assert len(instrument.homes) == len(instrument.executables)


def test_a_check_is_called() -> None:
    functions = {
        f"{path.stem}.{node.name}"
        for path in (PACKAGE / "analysis").glob("*checks.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and "row: Measured" in ast.unparse(node.args)
        and "Iterator[Message]" in ast.unparse(node.returns or ast.Constant(None))
    }
    called = {f"{check.__module__.rpartition('.')[2]}.{check.__name__}" for check in CHECKS}
    assert functions <= called, "checks.CHECKS"


def test_a_figure_has_its_places() -> None:
    kinds = {*captions.FIGURES, *captions.KINDS, captions.WORKLOAD, captions.NODES}
    assert set(captions.sentences()) == kinds
    for table in TABLES:
        assert any(name.startswith(table.name) for name in captions.FIGURES), table.name


def _facts(parts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(part, name) of every fact that the schema knows."""
    for part, definition in parts.items():
        for choice in (definition, *definition.get("anyOf", ())):
            for name in choice.get("properties", ()):
                yield part, name


def test_a_fact_of_a_node_has_its_places() -> None:
    parts = schema("machine")["properties"]
    makers = "".join(path.read_text() for path in (PACKAGE / "machine").glob("*.py"))
    others = (path for path in PACKAGE.rglob("*.py") if path.parent.name != "machine")
    readers = "".join(path.read_text() for path in others)
    assert [one for one in _facts(parts) if f'"{one[1]}"' not in makers] == [], "machine/"
    unread = {".".join(one) for one in _facts(parts) if f'"{one[1]}"' not in readers}
    assert unread == ONLY_IN_THE_FILE  # report/machine_text.py, or limits/, or analysis/
    modules = ("report/machine_text.py", "machine/__init__.py")
    shown = "".join((PACKAGE / name).read_text() for name in modules)
    assert {part for part in parts if f'"{part}"' not in shown} <= PARTS_WITHOUT_TEXT


def _keys(section: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """(place, key) of every key that a schema knows."""
    for key, inner in section.get("properties", {}).items():
        yield f"{place}{key}", key
        yield from _keys(inner, f"{place}{key}.")


def test_a_key_of_a_configuration_has_its_places() -> None:
    config = schema("config")
    grid = config["$defs"]["grids"]["items"]
    keys = [
        *_keys({"properties": {**config["properties"], "tools": {}, "modules": {}}}),
        *_keys(grid, "grid."),
    ]
    pages = ("campaigns", "cluster", "report")
    told = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in pages)
    assert [place for place, key in keys if not re.search(rf"\b{key}\b", told)] == [], "docs"
    read = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    # Config/, planning/ or reporting/.
    assert [place for place, key in keys if f'"{key}"' not in read] == []


def test_what_a_site_says_of_its_jobs_has_its_places() -> None:
    keys = [key for _, key in _keys(schema("site")["properties"]["slurm"])]
    page = (ROOT / "docs" / "cluster.md").read_text()
    assert [key for key in keys if f"`{key}" not in page] == [], "docs/cluster.md"
    modules = [PACKAGE / "plan" / f"{name}.py" for name in PLANNING]
    modules += (PACKAGE / "workflow").glob("*.py")
    read = "".join(path.read_text() for path in modules)
    assert [key for key in keys if f'"{key}"' not in read] == [], "plan/jobs.py"


def test_a_layout_of_a_report_has_its_places() -> None:
    named = {
        folder: {path.stem for path in (ROOT / folder).glob(f"*.{kind}")}
        for folder, kind in (
            ("reports/layouts", "yaml"),
            ("reports/published", "csv"),
            ("config/presets", "yaml"),
        )
    }
    reports = named["reports/layouts"] - {"paper"}  # no report's
    assert reports == named["reports/published"] and reports <= named["config/presets"]
    page = (ROOT / "docs" / "report.md").read_text()
    assert [name for name in sorted(reports) if f"`{name}`" not in page] == [], "docs/report.md"


def test_contributing_names_places_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {
        word
        for word in re.findall(r"`([\w./*<>-]+)`", text)
        if "/" in word or word.endswith((".py", ".c", ".inc"))
    }
    named -= {"build/"}  # made when it is needed
    roots = (
        ROOT,
        PACKAGE,
        PACKAGE / "analysis",
        ROOT / "tests" / "kernels",
        *(ROOT / "src" / "kernels").iterdir(),
    )
    missing = [
        word
        for word in named
        if "<" not in word
        and not any(list(root.glob(word.rstrip("/"))) for root in roots if root.is_dir())
    ]
    assert missing == [], "CONTRIBUTING.md"
    changes = text[text.index("## Ten changes") :].partition("\n## ")[0]
    assert len(re.findall(r"^\| (?:an?|the|what) ", changes, re.MULTILINE)) == 10
