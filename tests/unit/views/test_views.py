"""What a view may know: the frames, and what formats texts; nothing of what measures or judges."""

import ast

import pytest

from peakmark.resources import ROOT

VIEWS = ROOT / "src" / "peakmark" / "views"
ALLOWED = {
    "catalogue", "comparability", "config.layouts", "data", "errors", "files", "formatting", "messages", "output",
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
