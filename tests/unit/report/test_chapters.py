"""Chapters of the author's: where they stand, that they are words and nothing more, and that they
travel with a bundle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.pdf import text as pdf_text

from peakmark.bundle import bundle, unbundle
from peakmark.catalogue import KERNELS
from peakmark.errors import ConfigError
from peakmark.plan import plan
from peakmark.report import chapters, html_report, pdf_report
from peakmark.storage.results import Results

INTRODUCTION = """# Why we measured

Disks differ [@doe2024], see *there* and `iostat -x`. #panic("no") $x$ <script>alert(1)</script>

| disk | MB/s |
|------|------|
| old  | 7 |

- one
- two

[to the web](https://example.org/?a=1&b) [to code](javascript:alert(1)) [to a file](file:///etc)
"""
DISCUSSION = "== What it means\nThe disk is *slow*, as @doe2024 says.\n"
BIBLIOGRAPHY = "@misc{doe2024, author={Doe, Jane}, title={Notes on disks}, year={2024}}\n"


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """The ``report:`` section that names an author's three files."""
    here = tmp_path / "texts"
    here.mkdir()
    files = {"intro.md": INTRODUCTION, "discussion.typ": DISCUSSION, "refs.bib": BIBLIOGRAPHY}
    for name, content in files.items():
        (here / name).write_text(content, encoding="utf-8")
    return {
        "text": {
            "discussion": str(here / "discussion.typ"),
            "introduction": str(here / "intro.md"),
        },
        "bibliography": str(here / "refs.bib"),
        "authors": [
            {"name": "Jane Doe", "affiliation": "IIT"},
            {"name": "John Roe", "affiliation": "IIT"},
        ],
    }


def _campaign(folder: Path, config: dict[str, Any]) -> Path:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    record = make.record(of, [make.measurement(of, "rate", 4e10)]) | {"raw": {}}
    return make.write(folder, [record], config={"report": config})


def test_they_stand_where_they_belong_and_cite_the_authors_bibliography(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    folder = _campaign(tmp_path / "c", config)
    text = pdf_text(pdf_report.build(folder))
    words = (
        "Why we measured",
        "2 CPU",
        "What it means",
        "How each kernel measures",
        "Notes on disks",
    )
    places = [text.rindex(one) for one in words]
    assert places == sorted(places), dict(zip(words, places, strict=True))
    assert "Jane Doe, John" in text
    assert '#panic("no") $x$ <script>' in text
    assert (
        "cpubench" in text
        and "diskbench" not in text.partition("How each kernel")[2].partition("Every run")[0]
    )
    page = html_report.build(folder).read_text()
    assert "<h2" in page and "Why we measured</h2>" in page and "&lt;script&gt;alert(1)" in page
    assert "written in Typst" in page
    assert '<a href="https://example.org/?a=1&amp;b">to the web</a>' in page
    assert 'href="file' not in page and 'href="javascript' not in page


def test_a_typst_text_may_have_its_ending_in_capitals(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    discussion = Path(config["text"]["discussion"])
    loud = discussion.rename(discussion.with_suffix(".TYP"))
    folder = _campaign(tmp_path / "c", config | {"text": {"discussion": str(loud)}})
    section = Results.read(folder).report_config
    assert chapters.build(section, [])["behind"][0]["file"] in chapters.sources(section)


def test_they_travel_with_the_bundle(tmp_path: Path, config: dict[str, Any]) -> None:
    made = bundle.write(_campaign(tmp_path / "c", config), tmp_path / "c.zip")
    for path in (tmp_path / "texts").iterdir():
        path.unlink()
    rebuilt = unbundle.report(made, tmp_path / "again.pdf", partial=False)
    assert rebuilt.comparison.startswith("the same")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.docx",
            b"x",
            r"report\.text\.design: '.*a\.docx' is of no kind .*: allowed are \.md and \.typ files",
        ),
        ("a.md", b"\xff\xfe\x00", r"report\.text\.design: '.*a\.md' is not readable as UTF-8"),
        ("none.md", None, r"report\.text\.design: '.*none\.md' is not a file that exists here"),
    ],
)
def test_a_text_that_cannot_be_read_is_one_sentence_before_anything_is_measured(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    grid = {"cpu": [{"workloads": ["SP"], "concurrency": [1]}]}
    with pytest.raises(ConfigError, match=sentence):
        plan.make({**grid, "report": {"text": {"design": str(tmp_path / name)}}})


def test_images_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"intro\.md shows an image, 'a\.png'"):
        chapters.parse_markdown("![a](a.png)", "intro.md")


def test_every_kernel_has_its_section() -> None:
    blocks = chapters.kernels(set(KERNELS.values()))
    titles = [chapters.plain_text(block["words"]) for block in blocks if block["kind"] == "heading"]
    assert titles == ["All four", *KERNELS.values()]


def test_without_chapters_of_the_authors_there_is_none_on_the_kernels(tmp_path: Path) -> None:
    grid = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
    completed = plan.make({**grid, "tools_on": "nodes"}).config["report"]
    assert chapters.build(completed, ["cpubench"])["kernels"] == []
    told = chapters.build({**completed, "kernels": True}, ["cpubench"])["kernels"]
    assert "cpubench" in [chapters.plain_text(block["words"]) for block in told]
