"""What a view may know: the frames, and what formats texts; nothing of what measures or judges.

Every view shows the same where nothing but the rows files of a campaign is left.
"""

import ast
import hashlib
import shutil

import pytest

from peakmark.resources import ROOT

VIEWS = ROOT / "src" / "peakmark" / "views"
ALLOWED = {
    "catalogue", "comparability", "config.layouts", "data", "errors", "files", "formatting", "messages",
    "resources", "rows.labels", "rows.schema", "statistics", "tools.tables", "views", "yamlfile",
}  # fmt: skip


def imports(path):
    """Yield the modules of the package that a file imports, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name.name}" for name in node.names]
        else:
            continue
        yield from (name.removeprefix("peakmark.") for name in names if "peakmark." in name)


def is_allowed(name):
    parts = name.split(".")
    return any(".".join(parts[:length]) in ALLOWED for length in range(1, len(parts) + 1))


@pytest.mark.parametrize("path", sorted(VIEWS.rglob("*.py")), ids=lambda path: path.stem)
def test_a_view_knows_the_frames_and_nothing_that_measures_or_judges(path):
    assert [name for name in imports(path) if not is_allowed(name)] == []


def test_the_rule_tells_what_is_not_allowed():
    assert not is_allowed("storage.results.Results")
    assert not is_allowed("rows.build.load")
    assert is_allowed("rows.schema.CampaignFrames")


SHOWN = {
    "tables": ["tables"],
    "report": ["report"],
    "fleet": ["fleet"],
    "export": ["export", "--json-lines"],
    "compare": ["compare", "CAMPAIGN"],
}
"""Commands that show a campaign."""
MADE = ("tables", "figures", "report.pdf", "report.html")
RECORDS = ("cells", "attempts", "machine", "plan.json")


def everything(peakmark, folder):
    """What each command prints and writes; of files their checksums."""
    said = {}
    for name, words in SHOWN.items():
        done = peakmark(*(folder if word == "CAMPAIGN" else word for word in words), folder)
        assert "Traceback" not in done.stderr
        said[name] = (done.returncode, done.stdout)
    for name in MADE:
        for path in sorted((folder / name, *(folder / name).rglob("*"))):
            if path.is_file():
                said[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return said


@pytest.mark.parametrize("name", ["node", "cluster"])
def test_every_view_is_the_same_where_nothing_but_the_rows_is_left(
    tmp_path, peakmark, golden, name
):
    folder = shutil.copytree(golden(name), tmp_path / name)
    before = everything(peakmark, folder)
    assert before["report"][0] == 0
    assert len(before) > len(SHOWN) + 10
    for part in (*MADE, *RECORDS):
        path = folder / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    assert everything(peakmark, folder) == before
