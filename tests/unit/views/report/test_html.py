"""The HTML page: whole, offline, safe, with the PDF's numbers, and its scripts in a browser."""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit.markup import HOSTILE, Page, must_need_nothing_else

from peakmark.views import document, rendering
from peakmark.views.rendering import code, sort_value
from peakmark.workflow import status

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def text(swept):
    return (swept / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def in_browser(page, folder):
    """The page's DOM after its scripts ran."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on PATH (Debian package chromium)")
    (folder / "page.html").write_text(page, encoding="utf-8")
    options = "--headless --no-sandbox --disable-gpu --window-size=1200,900 --dump-dom"
    argv = [browser, *options.split(), "--virtual-time-budget=5000"]
    argv += [f"--user-data-dir={folder / 'profile'}", (folder / "page.html").as_uri()]
    home = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(argv, env=home, capture_output=True, text=True, timeout=120)
    if done.returncode != 0 and "</html>" not in done.stdout:
        last = done.stderr.strip().splitlines()[-1:]
        pytest.skip(f"this machine's chromium does not start: {last}")
    return done.stdout


def without_policy(text):
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)


def title_of(dom):
    """The JSON that a script left in the title."""
    title = re.search(r"<title>found(.*?)</title>", dom, re.DOTALL)
    plain = title[1].replace("&lt;", "<").replace("&amp;", "&").replace("\xa0", " ")
    return json.loads(plain)


@pytest.fixture(scope="module")
def pressed(text, tmp_path_factory):
    """What is found in the page while its tables are sorted, filtered and its figures opened."""
    script = (HERE / "user.js").read_text()
    changed = without_policy(text).replace("</body>", f"<script>{script}</script></body>")
    return title_of(in_browser(changed, tmp_path_factory.mktemp("browser")))


def test_it_needs_nothing_else_and_forbids_everything_else(text, page):
    must_need_nothing_else(page)
    assert "https://" not in text.partition('<h2 id="provenance"')[0]


def test_the_numbers_are_those_of_the_pdf(sweep, page):
    report = document.build(sweep)
    shown = [cell.strip() for cell in page.texts("td", "th")]
    whole = " ".join(page.texts("body")[0].split())
    links = {"".join(text): a["href"] for tag, a, text in page.elements if tag == "a"}
    for line in report["page_one"]["card"]:
        assert line["title"] in shown and line["text"] in shown
        # Each line leads to its row.
        assert links[line["title"]] == f"#{line['point']}"
    parts = [part for section in report["sections"] for part in section["parts"]]
    lines = [line[:-1] for part in parts for line in part["table"]["body"]]
    assert len(lines) > 50
    for line in lines:
        texts = ["".join(cell.values()) if isinstance(cell, dict) else cell for cell in line]
        assert any(shown[at : at + len(texts)] == texts for at, _ in enumerate(shown)), texts
    for finding in (finding for part in parts for finding in part["findings"]):
        assert " ".join(finding["text"].split()) in whole


def test_headings_captions_and_regions_are_named_for_those_who_listen(page):
    tags = [tag for tag, _, _ in page.elements]
    assert tags.count("h1") == tags.count("main") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    identifiers = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for tag, attributes, content in page.elements:
        if tag == "img" and attributes.get("src"):
            assert attributes.get("alt"), attributes.get("data-title")
        if tag == "th":
            assert attributes.get("scope"), content
        if str(attributes.get("href")).startswith("#"):
            assert attributes["href"].removeprefix("#") in identifiers
        if attributes.get("role") == "region":
            assert attributes.get("aria-label")


def test_hostile_names_are_shown_not_run(tmp_path):
    folder = make.called(tmp_path / "c", HOSTILE)
    page = Page(rendering.html_page(status.collect_report(folder)).decode())
    assert len(page.texts("script")) == 1
    assert page.texts("h1") == [HOSTILE]
    assert any(HOSTILE in cell for cell in page.texts("td"))
    # How to cite the report names it too.
    assert any(f"“{HOSTILE}”" in block for block in page.texts("pre"))


@pytest.mark.parametrize(("cell", "value"), [
    ("38.4", 38.4), ("12", 12), ("1 KiB", 1024), ("16 MiB", 16 << 20), ("10 MB", 10**7), ("×8", 8),
    ("RWS", None), ("", None), ("RWS, 1 MiB", None), ("not measured", None),
])  # fmt: skip
def test_cells_are_sorted_by_their_value(cell, value):
    assert sort_value(cell) == value


def test_the_page_runs_under_its_own_policy(text, tmp_path):
    dom = in_browser(text, tmp_path)
    assert re.search(r'<html lang="en" class="js"', dom)
    assert dom.count("<button") > 60


def test_tables_sort_by_value_both_ways_and_back(pressed):
    found = pressed["sort"]
    numbers = [float(value) for value in found["before"]]
    assert numbers != sorted(numbers)
    assert found["up"] == [sorted(found["before"], key=float), "ascending"]
    assert found["down"] == [sorted(found["before"], key=float, reverse=True), "descending"]
    assert found["back"] == [found["before"], "none"]
    assert found["blocks"] == ["1 KiB", "1 MiB", "10 MiB"]


def test_the_filter_leaves_the_rows_that_hold_every_word(pressed):
    found = pressed["filter"]
    assert 0 < len(found["some"]) < found["all"]
    assert all("copy" in row and "1" in row and "mib" in row for row in found["some"])
    assert found["status"] == f"{len(found['some'])} of {found['all']} rows"
    assert re.search(r"\d+ of \d+ rows$", found["count"])
    assert found["without"], "a minus leaves out"
    assert not any("copy" in row for row in found["without"])
    assert (found["none"], found["again"], found["quiet"]) == (0, found["all"], "")


def test_figures_open_large_and_the_theme_changes(pressed):
    found = pressed["zoom"]
    assert found["title"] == "Overview"
    for key in ("open", "same", "larger", "smaller", "fit", "wheel", "closed"):
        assert found[key] is True, key
    assert found["theme"][0] != found["theme"][1]


def test_tables_and_figures_are_copied(pressed):
    found = pressed["copies"]
    names, rule, *lines = found["markdown"].splitlines()
    assert names.startswith("| Workload | Threads |") and not rule.strip("|- ")
    assert {line.count(" | ") for line in lines} == {names.count(" | ")}
    assert found["latex"].count(r"\\") == len(lines) + 1
    # The head has two lines.
    assert "Measured Throughput (GB/s), peakmark" in names
    assert found["png"] == "data:image/png;base64,"


def test_it_fits_a_phone_and_no_heading_is_hidden(text, tmp_path):
    inner = json.dumps(without_policy(text)).replace("</", "<\\/")
    script = f"const page = {inner};\n{(HERE / 'phone.js').read_text()}"
    head = "<!DOCTYPE html><html><head><title>none</title></head>"
    found = title_of(in_browser(f"{head}<body><script>{script}</script></body></html>", tmp_path))
    assert found["narrow"] <= 390
    # On a telephone the rows of tables are paragraphs; names of facts and cells stay in their columns.
    assert not found["scrolled"] and not found["overlaps"]
    # The hint in the field of the filter is whole.
    assert 0 < found["hint"] <= 1
    # At 1,200 pixels every table shows all columns.
    assert found["wide"] <= 1000 and found["cut"] == 0
    assert found["bar"] <= found["room"]


def test_code_between_backticks_is_marked_and_escaped():
    assert code("see `dmidecode <x>`") == "see <code>dmidecode &lt;x&gt;</code>"


def test_a_row_shows_its_runs_as_bars_of_their_shares(text):
    bars = re.findall(r'<svg class="spark".*?aria-label="Runs: (.*?)">(.*?)</svg>', text, re.DOTALL)
    assert bars
    for runs, drawn in bars:
        heights = [float(height) for height in re.findall(r'height="([\d.]+)"', drawn)]
        assert len(heights) == 3 and max(heights) == 16, runs
