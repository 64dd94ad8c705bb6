"""Whatever is registered has all of its places: what CONTRIBUTING says of an addition is held here."""

import ast
import inspect
import re
import subprocess
from functools import cache
from typing import get_args, get_type_hints

import pytest
from tests.unit.tools.test_outputs import GOOD

from peakmark import data
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config import types
from peakmark.messages import captions
from peakmark.resources import ROOT
from peakmark.rows.checks import CHECKS
from peakmark.storage.types import Facts
from peakmark.tools import REGISTRY, references
from peakmark.tools.tables import TABLES
from peakmark.views.report import appendix

PACKAGE = ROOT / "src" / "peakmark"


def read(*names):
    """The text of files, by their paths in the checkout."""
    return "".join((ROOT / name).read_text() for name in names)


def modules(*patterns):
    """The text of modules, by patterns of their paths in the package."""
    return "".join(path.read_text() for pattern in patterns for path in PACKAGE.glob(pattern))


UNIT = ROOT / "tests" / "unit"
WITHOUT_PACKAGE = {
    "pmbw": "no distribution carries it",
    "nvbandwidth": "no distribution carries it",
    "cublas": "gpubench opens NVIDIA's library",
    "cuda-memcpy": "gpubench calls NVIDIA's driver",
}
PARTS_WITHOUT_TEXT = {"schema", "unknown", "tools"}
"""Parts of the facts without a line in the chapter Machine. The chapter Method lists the tools."""
ONLY_IN_THE_FILE = {
    "memory.available",  # of one moment
    "storage.mount_point",  # where others are from
    *("memory.transparent_huge_pages_defrag", "os.io_uring_disabled"),
    "network.mode",  # the remark on the speed names it
}
"""Facts for whoever reads ``machine/<node>.json``: no report shows them and no limit takes them."""
WORKLOADS = [(one.name, workload) for one in SUBSYSTEMS.values() for workload in one.workloads]


@pytest.mark.parametrize(("subsystem", "workload"), WORKLOADS)
def test_a_workload_has_its_places(subsystem, workload):
    one = SUBSYSTEMS[subsystem]
    assert any(workload in row.workloads for row in REGISTRY[one.kernel].rows)
    named = {
        name for title, names, _ in appendix.COUNTED if title == one.title for name in names.split()
    }
    assert named & {workload, workload.partition("-")[0]}, "reports/method.yaml: counted"
    assert any(table.subsystem == subsystem and table.takes(workload, 1 << 20) for table in TABLES)
    folder = ROOT / "src" / "kernels" / {"network": "net"}.get(subsystem, subsystem)
    sources = "".join(path.read_text() for path in folder.glob("*.[ci]*"))
    word = {"LAT-TCP": "latency", "LAT-UDP": "latency"}.get(workload, workload)
    assert re.search(rf"\b{word}\b", sources), folder
    if subsystem != "gpu":  # gpubench runs on a GPU alone: tests/gpu
        runs = read(f"tests/kernels/runs/{one.kernel}.sh")
        assert re.search(rf"\b{word}\b", runs), "tests/kernels/runs/"
    told = inspect.getdoc(types.Campaign) or ""
    grids = re.search(rf"^ +{subsystem}: Grids .*", told, re.MULTILINE)
    assert grids and workload in re.findall(r"[\w-]+", grids[0]), "config/types.py"
    shipped = read("config/config.yaml")
    assert re.search(rf"workloads: \[.*\b{workload}\b.*\]", shipped), "config/config.yaml"
    if subsystem == "cpu":
        assert workload in {line["workload"] for line in data.table("operations")}
        for name in ("src/peakmark/config/types.py", "tests/kernels/emulated/run.py"):
            assert f'"{workload}"' in read(name), name


@cache
def packages():
    """The Debian packages of reference tools that envs/install.sh knows: package, kind, columns."""
    argv = ["bash", "-c", "purpose=run; . envs/debian.bash; packages_of_tools"]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("name", references())
def test_a_reference_tool_has_its_places(name):
    instrument = REGISTRY[name]
    assert any((UNIT / "data" / name).iterdir()), "real output"
    assert any(case.startswith(f"{name}/") for case in GOOD), "data/cases/tools.yaml"
    assert name in {series.instrument for table in TABLES for series in table.references}
    line = f"{instrument.package} {instrument.component or 'optional'} {instrument.heading} columns"
    assert line in packages() or name in WITHOUT_PACKAGE, "envs/debian.bash"
    assert instrument.reference
    assert set(references()[name].options) <= set(types.ReferenceGrid.__annotations__)
    assert instrument.package or instrument.build, "ways to get it"
    for path in ("config/config.yaml", "config/presets/quick.yaml"):
        assert re.search(rf"^ +{name}: ", read(path), re.MULTILINE), path
    of_gpu = instrument.rows[0].subsystem == "gpu"  # its failures need a driver
    assert of_gpu or f'"{name}"' in read("tests/faults/test_tools.py") or name == "pmbw"
    assert len(instrument.homes) == len(instrument.executables)


def test_a_check_is_called():
    functions = {
        f"{path.stem}.{node.name}"
        for path in (PACKAGE / "rows").glob("*checks.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and "measured: RowRuns" in ast.unparse(node.args)
        and "Messages" in ast.unparse(node.returns or ast.Constant(None))
        and not node.name.startswith("_")
    }
    called = {f"{check.__module__.rpartition('.')[2]}.{check.__name__}" for check in CHECKS}
    assert functions <= called, "checks.CHECKS"


def test_a_figure_has_its_places():
    for table in TABLES:
        if table.name == "gpu_latency":  # one row
            continue
        assert any(name.startswith(table.name) for name in captions()), table.name


def _facts():
    """(part, name) of every fact that the types know."""
    for part, kind in get_type_hints(Facts).items():
        for choice in (kind, *get_args(kind)):
            for name in getattr(choice, "__annotations__", ()):
                yield part, name


def test_a_fact_of_a_node_has_its_places():
    others = (path for path in PACKAGE.rglob("*.py") if path.parent.name != "machine")
    readers = "".join(path.read_text() for path in others)
    assert [one for one in _facts() if f'"{one[1]}"' not in modules("machine/*.py")] == []
    shown = set(re.findall(r"\w+", read("reports/machine.yaml")))
    quoted = {".".join(one) for one in _facts() if f'"{one[1]}"' in readers or one[1] in shown}
    unread = {".".join(one) for one in _facts()} - quoted
    assert unread == ONLY_IN_THE_FILE  # reports/machine.yaml, or limits/, or rows/
    assert Facts.__annotations__.keys() - shown <= PARTS_WITHOUT_TEXT


KINDS = ("Campaign", "Report", "Author", "Sample", "Batch", "CampaignGrid")


def test_a_key_of_a_configuration_has_its_places():
    keys = [
        (f"{kind}.{key}", key) for kind in KINDS for key in getattr(types, kind).__annotations__
    ]
    text = modules("**/*.py")
    unread = [place for place, key in keys if f'"{key}"' not in text]
    assert [place for place in unread if place.lower() not in text] == []


def test_what_a_site_says_of_its_jobs_has_its_places():
    keys = types.SiteSlurm.__annotations__
    page, text = read("docs/cluster.md"), modules("plan/*.py", "workflow/*.py")
    assert [key for key in keys if f"`{key}" not in page] == [], "docs/cluster.md"
    assert [key for key in keys if f'"{key}"' not in text] == [], "plan/jobs.py"


def test_a_layout_of_a_report_has_its_places():
    patterns = ("reports/layouts/*.yaml", "reports/published/*.csv", "config/presets/*.yaml")
    layouts, published, presets = ({path.stem for path in ROOT.glob(one)} for one in patterns)
    reports = layouts - {"paper"}  # no report's
    assert reports == published and reports <= presets
    page = read("docs/report.md")
    assert [name for name in sorted(reports) if f"`{name}`" not in page] == [], "docs/report.md"


def test_contributing_names_places_that_are_there():
    text = read("CONTRIBUTING.md")
    named = {
        word
        for word in re.findall(r"`([\w./*-]+)`", text)
        if "/" in word or word.endswith((".py", ".c", ".inc"))
    }
    named -= {"build/"}  # made when it is needed
    roots = [ROOT, PACKAGE, ROOT / "tests" / "kernels"]
    roots += [path for path in (ROOT / "src" / "kernels").iterdir() if path.is_dir()]
    places = {word: [root for root in roots if any(root.glob(word.rstrip("/")))] for word in named}
    assert [word for word, found in places.items() if not found] == [], "CONTRIBUTING.md"
