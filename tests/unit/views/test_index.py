"""The page of all campaigns: a line each, whatever the folders hold, and never over a file of others."""

import json
import shutil

import pytest
from tests.unit import campaign_data as make
from tests.unit.markup import HOSTILE, Page, must_need_nothing_else

from peakmark import cli, files
from peakmark.errors import PeakmarkError
from peakmark.rows import build
from peakmark.views import index, page_one
from peakmark.workflow import documents


def reported(folder, value=1e9, day=21):
    """A campaign with a report, of which the page reads only the summary."""
    context = {"started": f"2026-11-{day}T04:00:00+00:00"}
    make.write(folder, make.runs("cpubench", "DP", *make.near(value), context=context))
    frames = build.load(folder)
    page = page_one.build(frames, page_one.find_earlier(frames, folder))
    (folder / "summary.json").write_text(json.dumps(page))
    (folder / "report.html").touch()
    return folder


def page_of(results):
    return Page(index.build(results).decode())


def links_of(page):
    return [attributes["href"] for tag, attributes, _ in page.elements if tag == "a"][1:]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A folder of two campaigns of one machine; tests must not change it."""
    results = tmp_path_factory.mktemp("two") / "results"
    reported(results / "first")
    reported(results / "second", value=5e8, day=22)
    return results


@pytest.fixture
def results(two, tmp_path):
    """A copy of ``two``."""
    return shutil.copytree(two, tmp_path / "results")


def test_each_campaign_has_a_line_with_links_the_newest_first(results):
    (results / "first" / "report.pdf").touch()
    page = page_of(results)
    links = ["second/report.html", "first/report.html", "first/report.pdf"]
    assert links_of(page) == links
    must_need_nothing_else(page, links)
    (body,) = page.texts("tbody")
    first, second = body.index("21 November 2026"), body.index("22 November 2026")
    assert second < first
    assert "1 GFLOP/s" in body and "500 MFLOP/s" in body
    assert "FP64 multiply-add 50" in body, "what changed since the last run"


def test_a_campaign_that_cannot_be_read_is_listed_with_the_reason(results):
    (results / "new").mkdir()
    (results / "new" / "plan.json").write_text("{}")
    (results / "first" / "summary.json").write_text("{")
    (results / "second" / "summary.json").write_text('{"card": 1}')
    shutil.copytree(results / "first", results / "then")
    rows = results / "then" / "rows" / "campaign.json"
    rows.write_text(
        rows.read_text().replace("2026-11-21T04:00:00+00:00", "0001-01-01T00:00:00+14:00")
    )
    (results / "notes").mkdir()
    (results / "quick.zip").touch()
    page = page_of(results)
    listed = page.texts("li")
    assert [line.partition(":")[0] for line in listed] == ["first", "new", "second", "then"]
    assert "cannot be read (summary.json: " in listed[0]
    assert f"`peakmark report {results / 'new'} --html`".strip("`") in listed[1]
    assert "no report yet" in listed[1]
    assert not page.texts("tbody")


def test_hostile_names_and_summaries_are_shown_not_run(results):
    odd = results / "a b&c%<i>"
    (results / "first").rename(odd)
    summary = json.loads((odd / "summary.json").read_text())
    summary["card"][0]["title"] = summary["card"][0]["reason"] = HOSTILE
    (odd / "summary.json").write_text(json.dumps(summary))
    page = page_of(results)
    must_need_nothing_else(page, ["second/report.html", "a%20b%26c%25%3Ci%3E/report.html"])
    assert HOSTILE in page.texts("span")


def test_the_page_is_written_again_where_another_run_added_a_report_meanwhile(results, monkeypatch):
    later = (results / "second").rename(results.parent / "later")
    write_bytes = files.write_bytes

    def write_late(path, content):
        if later.exists():
            later.rename(results / "second")
        write_bytes(path, content)

    monkeypatch.setattr(files, "write_bytes", write_late)
    page = Page(index.write(results).read_text())
    assert links_of(page) == ["second/report.html", "first/report.html"]


def test_an_unchanged_page_is_not_written_again(results):
    before = index.write(results).stat().st_mtime_ns
    assert index.write(results).stat().st_mtime_ns == before


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_not_peakmarks_stays_and_fails_no_report(results, kind, capsys):
    target, own = results / index.NAME, results.parent / "own.html"
    own.write_text("<p>mine</p>")
    if kind == "file":
        own.rename(target)
    elif kind == "link":
        target.symlink_to(own)
    else:
        target.mkdir()
    with pytest.raises((PeakmarkError, OSError)):
        index.write(results)
    documents.refresh_index(results / "first")
    (line,) = capsys.readouterr().err.splitlines()
    assert str(target) in line
    assert target.is_dir() or target.read_text() == "<p>mine</p>"


def test_a_report_refreshes_only_a_page_of_its_results_folder(two, tmp_path):
    results = shutil.copytree(two, tmp_path / "mine")
    documents.refresh_index(results / "first")
    assert not (results / index.NAME).exists()
    index.write(results)
    (results / "second" / "report.html").unlink()
    documents.refresh_index(results / "first")
    assert links_of(Page((results / index.NAME).read_text())) == ["first/report.html"]


def test_the_command_writes_the_page_and_history_passes_over_it(results, peakmark):
    said = peakmark("index", results)
    assert (said.returncode, said.stdout.strip()) == (0, str(results / index.NAME))
    assert str(results / index.NAME) in peakmark("summary", results / "first").stdout
    assert "skipped" not in peakmark("history", *results.iterdir()).stderr
    assert "cannot list the campaigns" in peakmark("index", results / "none").stderr


def test_a_report_that_is_built_refreshes_the_page(results):
    (results / "first" / "report.html").unlink()
    assert cli.main(["html", str(results / "first")]) == 0
    page = Page((results / index.NAME).read_text())
    assert links_of(page) == ["second/report.html", "first/report.html"]
