"""Chapters of the author's: where they stand, that they are words and nothing more, and that they
travel with a bundle.
"""

import re
from pathlib import Path

import pytest
import yaml
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark import plan
from peakmark.bundle import pack
from peakmark.catalogue import KERNELS
from peakmark.config import layouts
from peakmark.errors import ConfigError
from peakmark.report import ReportContent, chapters, rendering
from peakmark.resources import ROOT

INTRODUCTION = """# Why we measured

Disks differ [@doe2024], see *there* and `iostat -x`. #panic("no") $x$ <script>alert(1)</script>

| disk | MB/s |
|------|------|
| old  | 7 |

- one
- two

[to the web](https://example.org/?a=1&b) [to code](javascript:alert(1)) [to a file](file:///etc)
"""
TEXTS = {
    "intro.md": INTRODUCTION,
    "discussion.typ": "== What it means\nThe disk is *slow*, as @doe2024 says.\n",
    "refs.bib": "@misc{doe2024, author={Doe, Jane}, title={Notes on disks}, year={2024}}\n",
}
PRESETS = [
    ROOT / "config" / "presets" / f"{path.name}.yaml"
    for path in sorted((ROOT / "config" / "presets" / "text").iterdir())
]
GRID = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}], "tools_on": "nodes"}


@pytest.fixture
def config(tmp_path):
    """The ``report:`` section that names an author's three files."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, content in TEXTS.items():
        (folder / name).write_text(content, encoding="utf-8")
    discussion, introduction, bibliography = sorted(map(str, folder.iterdir()))
    return {
        "text": {"discussion": discussion, "introduction": introduction},
        "bibliography": bibliography,
        "authors": [{"name": name, "affiliation": "IIT"} for name in ("Jane Doe", "John Roe")],
    }


def test_place_bibliography_and_bundle(tmp_path, config):
    records = [record | {"raw": {}} for record in make.runs("cpubench", "DP", 4e10)]
    folder = make.write(tmp_path / "c", records, config={"report": config})
    text = pdf.text(rendering.write_pdf(ReportContent.read(folder)))
    titles = ["Why we measured", "2 CPU", "What it means", "How each kernel measures"]
    places = [text.rindex(title) for title in (*titles, "Notes on disks")]
    assert places == sorted(places)
    assert "Jane Doe, John" in text
    assert '#panic("no") $x$ <script>' in text
    kernels = text.rpartition("How each kernel")[2].partition("Reproduction")[0]
    assert "cpubench" in kernels and "diskbench" not in kernels
    page = rendering.write_html(ReportContent.read(folder)).read_text()
    assert "<h2" in page and "Why we measured</h2>" in page and "&lt;script&gt;alert(1)" in page
    assert "written in Typst" in page
    assert '<a href="https://example.org/?a=1&amp;b">to the web</a>' in page
    assert 'href="file' not in page and 'href="javascript' not in page
    packed = pack.write(folder, tmp_path / "c.zip")
    for path in (tmp_path / "texts").iterdir():
        path.unlink()
    _, comparison = pack.rebuild(packed, tmp_path / "again.pdf")
    assert comparison.startswith("the same")


def test_texts_of_a_resource_stand_below_their_table_or_end_its_chapter(tmp_path):
    path = tmp_path / "cpu.md"
    path.write_text(
        "Last of CPU.\n\n# Operations per second\n\nOf the table.\n\n# Discussion\n\n"
        "Of all.\n\n# Never printed\n\n<!-- to be\nwritten -->\n"
    )
    records = make.runs("cpubench", "DP", 4e10) + make.runs("diskbench", "RS", 1e8)
    section = {"text": {"cpu": str(path)}}
    report = ReportContent.read(make.write(tmp_path / "c", records, config={"report": section}))
    expected = ["Table 1", "Of the table.", "Last of CPU.", "Discussion", "Of all.", "2 Disk"]
    for words in (expected, [*expected[1:-1], '<h2 id="disk">']):
        text = pdf.text(rendering.write_pdf(report)) if words is expected else ""
        shown = text or rendering.write_html(report).read_text()
        assert "Never printed" not in shown and "written" not in shown.partition("Method")[0]
        assert [shown.count(word) for word in words[1:-1]] == [1] * (len(words) - 2)
        places = [shown.index(word) for word in words]
        assert places == sorted(places)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_presets_ship_headings_that_stay_silent_until_something_is_written(preset):
    section = yaml.safe_load(preset.read_text())["report"]
    assert section["text"]
    layout = layouts.load(section["tables"])
    titles = {table.title for table in layout.layout_tables}
    for key, path in section["text"].items():
        text = (ROOT / path).read_text()
        blocks = chapters.parse_markdown(text, path)
        assert blocks == []
        written = chapters.parse_markdown(re.sub("<!-- (.*) -->", r"\1", text), path)
        headings = [block for block in written if block["kind"] == "heading"]
        assert headings and len(written) == 2 * len(headings)
        if len(headings) > 1 and key == "disk":
            assert {chapters.plain_text(block["parts"]) for block in headings} <= titles


def test_a_typst_text_may_have_its_ending_in_capitals(config):
    discussion = Path(config["text"]["discussion"])
    loud = discussion.rename(discussion.with_suffix(".TYP"))
    section = config | {"text": {"discussion": str(loud)}}
    assert chapters.build(section, [], [])["behind"][0]["file"] in chapters.sources(section)


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("a.docx", b"x", r"'.*a\.docx' is of no kind .*: allowed are \.md and \.typ files"),
    ("a.md", b"\xff\xfe\x00", r"'.*a\.md' is not readable as UTF-8"),
    ("none.md", None, r"'.*none\.md' is not a file that exists here"),
])  # fmt: skip
def test_a_text_that_cannot_be_read_is_refused_by_the_plan(tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=rf"report\.text\.design: {sentence}"):
        plan.make({**GRID, "report": {"text": {"design": str(tmp_path / name)}}})


def test_images_are_one_sentence():
    with pytest.raises(ConfigError, match=r"intro\.md shows an image, 'a\.png'"):
        chapters.parse_markdown("![a](a.png)", "intro.md")


def headings(blocks):
    return [chapters.plain_text(one["parts"]) for one in blocks if one["kind"] == "heading"]


def test_every_kernel_has_its_section_where_there_are_chapters_of_the_authors():
    assert headings(chapters.kernels(set(KERNELS.values()))) == [chapters.SHARED, *KERNELS.values()]
    completed = plan.make(GRID).config["report"]
    assert chapters.build(completed, ["cpubench"], [])["kernels"] == []
    section = {**completed, "kernels": True}
    assert "cpubench" in headings(chapters.build(section, ["cpubench"], [])["kernels"])


def test_a_citation_may_name_several_works():
    (block,) = chapters.parse_markdown("see [@a; @b]", "intro.md", cites=True)
    assert block["parts"][-1] == {"kind": "cite", "keys": ["a", "b"]}
