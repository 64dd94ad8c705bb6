"""Chapters of the author's: where they stand, and that they are words and nothing more."""

import pytest
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark import plan
from peakmark.catalogue import KERNELS
from peakmark.errors import ConfigError
from peakmark.rows import build
from peakmark.views import document, rendering
from peakmark.workflow import status

INTRODUCTION = """# Why we measured

Disks differ, see *there* and `iostat -x`. #panic("no") $x$ <script>alert(1)</script>

| disk | MB/s |
|------|------|
| old  | 7 |

- one
- two

[to the web](https://example.org/?a=1&b) [to code](javascript:alert(1)) [to a file](file:///etc)
"""
TEXTS = {
    "introduction.md": INTRODUCTION,
    "discussion.md": "## What it means\n\nThe disk is *slow*.\n",
    "notes.txt": "not for the report",
}
GRID = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}], "tools_on": "nodes"}


def texts(folder, contents):
    """A folder of an author's chapters."""
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return str(folder)


def test_chapters_stand_in_their_places_and_are_words_alone(tmp_path):
    authors = [{"name": name, "affiliation": "IIT"} for name in ("Jane Doe", "John Roe")]
    section = {"text": texts(tmp_path / "texts", TEXTS), "authors": authors}
    records = make.runs("cpubench", "DP", 4e10)
    folder = make.write(tmp_path / "c", records, config={"report": section})
    report = status.collect_report(folder)
    text = pdf.text(rendering.write(report, tmp_path / "report.pdf"))
    titles = ["Why we measured", "2 CPU", "What it means", "How each kernel measures"]
    places = [text.rindex(title) for title in titles]
    assert places == sorted(places)
    assert "Jane Doe, John" in text
    assert '#panic("no") $x$ <script>' in text and "not for the report" not in text
    kernels = text.rpartition("How each kernel")[2].partition("Reproduction")[0]
    assert "cpubench" in kernels and "diskbench" not in kernels
    page = rendering.html_page(report).decode()
    assert "<h2" in page and "Why we measured</h2>" in page and "&lt;script&gt;alert(1)" in page
    assert '<a href="https://example.org/?a=1&amp;b">to the web</a>' in page
    assert 'href="file' not in page and 'href="javascript' not in page


@pytest.mark.parametrize("draft", [True, False])
def test_what_to_write_is_printed_in_a_draft_alone(tmp_path, draft):
    folder = texts(tmp_path / "texts", {"design.md": "<!-- Say how\nit works. -->"})
    section = {"text": folder, "draft": draft}
    config = {"report": section}
    campaign = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10), config=config)
    chapters = document.build(build.load(campaign))["chapters"]["before"]
    assert ("To be written in design.md" in str(chapters)) == draft
    assert bool(chapters) == draft


def test_page_one_names_authors_as_a_course_knows_them(tmp_path):
    jane = {"name": "Jane Doe", "id": "A1", "email": "jane@example.org", "affiliation": "IIT"}
    section = {"authors": [jane, {"name": "John Roe"}], "course": "CS 553", "team": "Team 7"}
    frames = make.frames(
        tmp_path / "c", make.runs("cpubench", "DP", 4e10), config={"report": section}
    )
    meta = document.build(frames)["meta"]
    assert meta["author"] == "Jane Doe, A1, jane@example.org (IIT); John Roe"
    assert meta["course"] == "CS 553, Team 7"


def test_a_folder_that_is_not_here_any_more_leaves_its_chapters_out(tmp_path, capsys):
    section = {"text": str(tmp_path / "gone")}
    folder = make.write(
        tmp_path / "c", make.runs("cpubench", "DP", 4e10), config={"report": section}
    )
    assert document.build(build.load(folder))["chapters"]["before"] == []
    assert "gone', which is no folder here" in capsys.readouterr().err


def test_texts_of_a_resource_stand_below_their_table_or_end_its_chapter(tmp_path):
    of_cpu = (
        "Last of CPU.\n\n# Operations per second\n\nOf the table.\n\n# Discussion\n\n"
        "Of all.\n\n# Never printed\n\n<!-- to be\nwritten -->\n"
    )
    records = make.runs("cpubench", "DP", 4e10) + make.runs("diskbench", "RS", 1e8)
    section = {"text": texts(tmp_path / "texts", {"cpu.md": of_cpu})}
    report = status.collect_report(make.write(tmp_path / "c", records, config={"report": section}))
    expected = ["Table 1", "Of the table.", "Last of CPU.", "Discussion", "Of all.", "2 Disk"]
    for words in (expected, [*expected[1:-1], '<h2 id="disk">']):
        text = (
            pdf.text(rendering.write(report, tmp_path / "report.pdf")) if words is expected else ""
        )
        shown = text or rendering.html_page(report).decode()
        assert "Never printed" not in shown and "written" not in shown.partition("Method")[0]
        assert [shown.count(word) for word in words[1:-1]] == [1] * (len(words) - 2)
        places = [shown.index(word) for word in words]
        assert places == sorted(places)


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("introdution.md", b"x", r"introdution\.md is no chapter.*introduction.*allowed are introduction\.md"),
    ("design.typ", b"x", r"design\.typ is no chapter"),
    ("design.md", b"\xff\xfe\x00", r"design\.md is not readable as UTF-8"),
])  # fmt: skip
def test_a_text_that_cannot_be_used_is_refused_by_the_plan(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=rf"report\.text: .*{sentence}"):
        plan.make({**GRID, "report": {"text": str(tmp_path)}})


def test_a_folder_that_is_not_there_is_refused_by_the_plan(tmp_path):
    with pytest.raises(ConfigError, match=r"report\.text: there is no folder .*none'"):
        plan.make({**GRID, "report": {"text": str(tmp_path / "none")}})


def test_images_are_one_sentence():
    with pytest.raises(ConfigError, match=r"intro\.md shows an image, 'a\.png'"):
        document.parse_markdown("![a](a.png)", "intro.md")


def headings(blocks):
    return [document.plain_text(one["parts"]) for one in blocks if one["kind"] == "heading"]


def test_every_kernel_has_its_section_where_there_are_chapters_of_the_authors():
    assert headings(document.kernels(set(KERNELS.values()))) == [document.SHARED, *KERNELS.values()]
