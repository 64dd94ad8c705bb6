"""What a view may know: the frames, and what formats texts; nothing of what measures or judges.

Every view shows the same where nothing but the rows files of a campaign is left.
"""

import shutil

import pytest
from tests.unit.test_layers import imports

ALLOWED = {
    "catalogue", "comparability", "config.layouts", "data", "errors", "files", "formatting", "messages",
    "resources", "rows.labels", "rows.schema", "statistics", "tools.tables", "views", "yamlfile",
}  # fmt: skip


def is_allowed(name):
    parts = name.split(".")
    return any(".".join(parts[:length]) in ALLOWED for length in range(1, len(parts) + 1))


def test_a_view_knows_the_frames_and_nothing_that_measures_or_judges():
    views = {name: of for name, of in imports().items() if name.startswith("views.")}
    assert len(views) > 10
    wrong = [(name, other) for name, of in views.items() for other in of if not is_allowed(other)]
    assert wrong == []


SHOWN = {
    "tables": ["tables"],
    "fleet": ["fleet"],
    "export": ["export", "--json-lines"],
    "compare": ["compare", "CAMPAIGN"],
}
"""Commands that show a campaign."""
RECORDS = ("cells", "attempts", "machine", "plan.json")


def everything(peakmark, folder):
    """What each command prints, and the tables."""
    said = {}
    for name, words in SHOWN.items():
        done = peakmark(*(folder if word == "CAMPAIGN" else word for word in words), folder)
        assert "Traceback" not in done.stderr
        said[name] = (done.returncode, done.stdout)
    return said | contents(folder, "tables")


def contents(folder, *names):
    """Path -> content of the files of these names, and of all in folders of these names."""
    found = [path for name in names for path in (folder / name, *(folder / name).rglob("*"))]
    return {path.relative_to(folder): path.read_bytes() for path in found if path.is_file()}


@pytest.mark.parametrize("name", ["node", "cluster"])
def test_every_view_is_the_same_where_nothing_but_the_rows_is_left(
    tmp_path, peakmark, golden, name
):
    folder = shutil.copytree(golden(name), tmp_path / name)
    before = everything(peakmark, folder)
    assert before["tables"][0] == 0
    assert len(before) > len(SHOWN) + 10
    for part in ("tables", *RECORDS):
        path = folder / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    assert everything(peakmark, folder) == before


def test_the_report_is_the_same_where_nothing_but_the_rows_is_left(swept, tmp_path, peakmark):
    shutil.copytree(swept / "rows", tmp_path / swept.name / "rows")
    assert peakmark("report", tmp_path / swept.name).returncode == 0
    names = ("figures", "report.pdf", "report.html")
    found, made = (contents(folder, *names) for folder in (swept, tmp_path / swept.name))
    assert len(made) > 20 and made.keys() == found.keys()
    assert [path for path, content in made.items() if content != found[path]] == []
