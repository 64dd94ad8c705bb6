"""The documentation: its commands can be typed, and its generated pages are whole."""

import csv
import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import pages
import pytest
import schemas

from peakmark import cli, messages
from peakmark.errors import ExitCode
from peakmark.resources import ROOT
from peakmark.rows.schema import FILES
from peakmark.tools import references

PAGES = [*pages.pages(".", *pages.FOLDERS), ROOT / "README.md"]
PLACEHOLDER = re.compile(r"\b(CHECKOUT|FOLDER|PLACE|FILE|[AB]\.yaml)\b|quick\.zip|\.\.\.")


def commands(page):
    """The commands in the blocks of a page, as words."""
    for block in pages.blocks(page):
        if block.language not in ("sh", "bash"):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words = []
            for word in [*lexer, ";"]:
                if word.strip("|&;<>"):
                    words.append(word)
                elif words:
                    yield words
                    words = []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_can_be_typed(page):
    titles = {block.title for block in pages.blocks(page)}
    for words in commands(page):
        program = Path(words[0]).name
        if program == "peakmark":
            end = words.index("--") if "--" in words else len(words)
            cli.build_parser().parse_args(words[1:end])
        if program == "make":
            makefile = (ROOT / "Makefile").read_text()
            goals = [word for word in words[1:] if "=" not in word]
            assert [goal for goal in goals if f"\n{goal}:" not in makefile] == []
        files = [word for word in words if word.endswith((".yaml", ".smk"))]
        if program in ("peakmark", "snakemake") and not PLACEHOLDER.search(" ".join(words)):
            known = titles | {"config/sites/mine.yaml", "before.yaml", "after.yaml", "again.yaml"}
            named = {word.rpartition("=")[2] for word in files}
            assert [name for name in named - known if not (ROOT / name).exists()] == []


@pytest.fixture(scope="module")
def reference():
    """The hook that writes the generated pages."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "dev" / "reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_name_everything(reference):
    texts = {name: page() for name, page in reference.PAGES.items()}
    for word in ("plan", "report", "export", "tools", "--fail-on"):
        assert word in texts["reference/commands.md"]
    for code in ExitCode:
        assert f"| `{code.value}` | " in texts["reference/commands.md"]
    for name in ("config", "site", "layout"):
        schema = schemas.schema(name, reference.SCHEMAS[name])
        for part in (schema, *schema["$defs"].values()):
            for key in part["properties"]:
                assert f"| `{key}` |" in texts["reference/configuration.md"], key
    for code in messages.catalogue():
        assert f"| `{code}` |" in texts["reference/warnings.md"]
    for name, columns in FILES.items():
        part = texts["reference/rows.md"].partition(f"## {name}.csv")[2]
        assert all(f"| `{column.name}` | {column.kind} |" in part for column in columns), name
    for name in references():
        assert f"`{name}` measures" in texts["reference/tools.md"]


def test_every_column_of_a_table_has_a_meaning(reference):
    cells = re.findall(r"^\| `(.*?)` \| (.*) \|$", reference.table_columns(), re.MULTILINE)
    known = {name for name, meaning in cells if meaning}
    for path in (ROOT / "tests/unit/data/golden").glob("*/*.csv"):
        with path.open() as file:
            assert set(next(csv.reader(file))) <= known, path


def test_links_of_pages_outside_the_site_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for link, anchor in re.findall(r"\]\(([\w/.-]+)(?:#([\w-]+))?\)", page.read_text()):
            target = page.parent / link
            assert target.exists(), link
            if anchor:
                titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
                slugs = {
                    re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles
                }
                assert anchor in slugs, f"{link}#{anchor}"


def test_the_figure_of_ones_own_is_drawn(golden, tmp_path, monkeypatch):
    shutil.copytree(golden("cluster"), tmp_path / "results" / "quick")
    page = (ROOT / "docs/howto/draw-your-own-figure.md").read_text()
    (script,) = re.findall(r'```python title="figure.py"\n(.*?)```', page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "figure.py", "exec"), {})  # noqa: S102 - the page's own words
    assert (tmp_path / "figure.png").stat().st_size > 10_000
