"""Whatever is registered has all of its places: what CONTRIBUTING says of an addition is held here."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import get_args, get_type_hints

import pytest
from tests.unit.tools.test_outputs import GOOD

from peakmark import data
from peakmark.analysis.checks import CHECKS
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.types import (
    AsNeeded,
    Author,
    Batch,
    Campaign,
    CampaignGrid,
    Chapters,
    ReferenceGrid,
    ReferenceTool,
    Report,
    Sample,
    SiteSlurm,
)  # fmt: skip
from peakmark.report import method_text
from peakmark.resources import ROOT
from peakmark.storage.types import Facts
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
    grids = re.search(rf"^ +{subsystem}: Grids .*", inspect.getdoc(Campaign) or "", re.MULTILINE)
    assert grids and workload in re.findall(r"[\w-]+", grids[0]), "config/types.py"
    shipped = (ROOT / "config" / "config.yaml").read_text()
    assert re.search(rf"workloads: \[.*\b{workload}\b.*\]", shipped), "config/config.yaml"
    if subsystem == "cpu":
        assert workload in {line["workload"] for line in data.table("operations")}
        for name in ("src/peakmark/config/types.py", "tests/kernels/emulated/run.py"):
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
    assert sorted(get_args(ReferenceTool)) == sorted(references()), "config/types.py"
    assert set(references()[name].options) <= set(ReferenceGrid.__struct_fields__)
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


def _facts() -> Iterator[tuple[str, str]]:
    """(part, name) of every fact that the types know."""
    for part, kind in get_type_hints(Facts).items():
        for choice in (kind, *get_args(kind)):
            for name in getattr(choice, "__annotations__", ()):
                yield part, name


def test_a_fact_of_a_node_has_its_places() -> None:
    parts = Facts.__annotations__
    makers = "".join(path.read_text() for path in (PACKAGE / "machine").glob("*.py"))
    others = (path for path in PACKAGE.rglob("*.py") if path.parent.name != "machine")
    readers = "".join(path.read_text() for path in others)
    assert [one for one in _facts() if f'"{one[1]}"' not in makers] == [], "machine/"
    unread = {".".join(one) for one in _facts() if f'"{one[1]}"' not in readers}
    assert unread == ONLY_IN_THE_FILE  # report/machine_text.py, or limits/, or analysis/
    modules = ("report/machine_text.py", "machine/__init__.py")
    shown = "".join((PACKAGE / name).read_text() for name in modules)
    assert {part for part in parts if f'"{part}"' not in shown} <= PARTS_WITHOUT_TEXT


def test_a_key_of_a_configuration_has_its_places() -> None:
    kinds = (Campaign, Report, Chapters, Author, AsNeeded, Sample, Batch, CampaignGrid)
    keys = [(f"{kind.__name__}.{key}", key) for kind in kinds for key in kind.__struct_fields__]
    pages = ("campaigns", "cluster", "report")
    told = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in pages)
    assert [place for place, key in keys if not re.search(rf"\b{key}\b", told)] == [], "docs"
    read = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    unread = [place for place, key in keys if f'"{key}"' not in read]
    assert [place for place in unread if place.lower() not in read] == []


def test_what_a_site_says_of_its_jobs_has_its_places() -> None:
    keys = SiteSlurm.__struct_fields__
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
