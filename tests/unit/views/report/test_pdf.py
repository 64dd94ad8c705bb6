"""The PDF: what it says, how its pages are filled, that hostile names cannot break it, and that it
never changes without a reason.
"""

import re
import shutil
import subprocess

import pytest
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark.resources import ROOT
from peakmark.views import rendering
from peakmark.workflow import status

HOSTILE = '#panic("x") $a$ *b* _c_ <d> @e [f] `g` \\ // "h" 漢字 \u202e\x07 🦄 ' + "very-long_" * 30
DPI = 20
TOP_MM, END_MM = 14, 283  # as in reports/template
PALE = 200
LEAST = 0.5


@pytest.fixture(scope="module")
def text(swept):
    return pdf.text(swept / "report.pdf")


@pytest.fixture(scope="module")
def long(preset, tmp_path_factory):
    """The report of a preset whose tables take several pages."""
    name = "four-subsystems-2018-prometheus"
    folder = shutil.copytree(preset(name), tmp_path_factory.mktemp("results") / name)
    return rendering.write(status.collect_report(folder), folder / "report.pdf")


def printed(folder, **more):
    """The text of the report of a campaign that is written first."""
    make.write(folder, more.pop("records", []), **more)
    return pdf.text(rendering.write(status.collect_report(folder), folder / "report.pdf"))


def test_the_report_holds_title_tables_runs_provenance_and_page_numbers(text):
    front = ("Limits", "Jane Dœ", "CS 553", "21 November 2026")
    programs = ("cpubench (peakmark)", "netbench (peakmark)")
    titles = ("CPU: operations per second", "Memory: latency", "Disk: throughput")
    commands = ("peakmark run sweep.yaml", "peakmark report sweep.zip")
    for words in (*front, *programs, *titles, *commands):
        assert words in text, words
    pages = text.split("\f")
    (memory,) = [
        number for number, page in enumerate(pages, 1) if re.search(r"(?m)^ *\d+ Memory$", page)
    ]
    assert f"Memory {memory} " in pages[0], "contents"


def test_the_results_come_first_and_tables_of_rates_have_figures(text):
    # Without a known limit there is no chapter on limits.
    expected = ["CPU", "Memory", "Disk", "Network", "Method", "Machine", "Reproduction"]
    chapters = re.findall(r"(?m)^ *\d+ ([A-Z][a-zA-Z ]+)$", text.replace("\f", "\n"))
    assert [title for title in chapters if title in expected] == expected
    results = text[: text.index(" Method\n")]
    parts = re.split(r"(?m)^\f? *Table \d+: ", results)[1:]
    # The table of IOPS has the points of that of latencies.
    assert len(parts) == 14
    rates = [part for part in parts if "throughput" in part.splitlines()[0]]
    assert all("Figure " in part for part in rates)


def test_the_same_figures_give_the_same_bytes_in_pdf_a_and_ua(swept, sweep):
    content = (swept / "report.pdf").read_bytes()
    assert rendering.pdf(rendering.collect(sweep, swept, swept / "figures")) == content
    assert b"<pdfaid:part>2</pdfaid:part>" in content  # archival
    assert b"<pdfaid:conformance>A</pdfaid:conformance>" in content
    assert b"<pdfuaid:part>1</pdfuaid:part>" in content  # accessible


def test_verapdf_finds_nothing_wrong(swept, tmp_path):
    """The standards' own checker, which envs/install.sh brings where it can; it holds a file to all
    that it claims to be.
    """
    jars = ROOT / ".venv" / "verapdf"
    if not jars.is_dir():
        pytest.skip("veraPDF is not installed: see what envs/install.sh says")
    # It ends before a compiler that optimises has paid.
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    java += [f"-Duser.home={tmp_path}", f"-Djava.io.tmpdir={tmp_path}", "-cp", f"{jars}/*"]
    file = str(swept / "report.pdf")
    words = [*java, "org.verapdf.apps.GreenfieldCliWrapper", "--format", "text", "-v", file]
    done = subprocess.run(words, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines() if file in line]
    verdicts = {words[-1]: words[0] for words in lines}
    assert verdicts == {"2a": "PASS", "ua1": "PASS"}, done.stdout + done.stderr


def drawn(file, folder, *options):
    """Width and pixels of each page."""
    pdf.poppler("pdftoppm", *options, file, folder / "page")
    pages = [path.read_bytes().partition(b"\n255\n") for path in sorted(folder.glob("page*.p*m"))]
    return [(int(header.split()[1]), pixels) for header, _, pixels in pages]


@pytest.mark.parametrize(("name", "fewest", "most"), [("sweep", 4, 10), ("long", 6, 8)])
def test_pages_are_filled_and_no_word_is_drawn_over_another(request, tmp_path, name, fewest, most):
    fixture = request.getfixturevalue("swept" if name == "sweep" else "long")
    file = fixture / "report.pdf" if fixture.is_dir() else fixture
    shares = []
    for width, pixels in drawn(file, tmp_path, "-r", str(DPI), "-gray"):
        ends = range(0, width * int(END_MM * DPI / 25.4), width)  # above the footer
        inked = [number for number, at in enumerate(ends) if min(pixels[at : at + width]) < PALE]
        shares.append((inked[-1] * 25.4 / DPI - TOP_MM) / (END_MM - TOP_MM))
    assert fewest <= len(shares) <= most, "the report grows"
    assert min(shares[:-1]) > LEAST, [f"{share:.2f}" for share in shares]
    assert pdf.overlaps(file) == []


def test_a_caption_stands_with_its_table(long):
    for page in pdf.text(long).split("\f"):
        # The last line is the footer.
        lines = [line for line in page.splitlines() if line.strip()][:-1]
        assert not any(re.match(r" *Table \d+: ", line) for line in lines[-2:]), lines[-2:]


def test_a_group_is_named_again_on_the_page_that_it_continues_on(tmp_path):
    records = []
    for many in range(1, 91):
        records += make.runs("cpubench", "DP", 4e10, concurrency=many)
    text = printed(tmp_path / "c", records=records)
    headings = re.findall(r"Workload +Threads", text)
    assert len(re.findall(r"(?m)^ *FP64 +\d", text)) == len(headings) > 1


def test_hostile_names_are_printed_not_executed(tmp_path):
    report = status.collect_report(make.called(tmp_path / "c", HOSTILE))
    text = pdf.text(rendering.write(report, tmp_path / "report.pdf"))
    assert text.count('#panic("x") $a$ *b*') > 3


def test_letters_without_a_font_are_told_and_others_drawn(tmp_path, capsys):
    section = {"title": "גבולות \U0001f600", "author": "Жанна Ω"}
    text = printed(tmp_path / "c", config={"report": section})
    assert "\ufffd" not in text and "\U0001f600" in text and "Жанна Ω" in text
    assert set("גבולות") <= set(text)
    assert capsys.readouterr().err == ""
    section = {"title": "Title \U0010fffd", "author": "Жанна"}
    text = printed(tmp_path / "d", config={"report": section})
    assert "Title" in text and "Жанна" in text
    assert "no PDF/A" in capsys.readouterr().err


@pytest.mark.parametrize("records", [[], make.runs("cpubench", "DP", 4e10)])
def test_missing_cells_are_shown(tmp_path, records):
    hole = make.cell("cpubench", "QP", subsystem="cpu")
    text = printed(tmp_path / "c", records=records, planned=[hole])
    assert "Partial report" in text and "not measured" in text
    assert ("nothing measured yet" in text) == (not records)
    assert "Open square" not in text  # no line has a bar
    assert "1970" not in text


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path, peakmark):
    folder = make.write(tmp_path / "c", [])
    for target in (tmp_path / "no" / "r.pdf", folder):
        done = peakmark("report", folder, "-o", target)
        (line,) = done.stderr.splitlines()
        assert done.returncode == 4 and str(target) in line
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert not (folder / "figures").exists()


def test_a_table_that_no_node_has_measured_is_no_obstacle_to_the_report(tmp_path):
    """Of the CPU nothing counts, of the memory nobody has measured anything."""
    records = []
    for name in (f"node{number}" for number in range(1, 7)):
        place = {"node": name, "host": name, "concurrency": 2}
        records += make.runs("cpubench", "DP", 1e10, context={"cpus": [0]}, **place)
        of = make.cell("rambench", "LAT", subsystem="memory", node=name, concurrency=2)
        records.append(make.record(of, status="unavailable", reason="no memory", host=name))
    folder = make.write(tmp_path / "c", records)
    make.tables(folder)
    assert "node6" in (folder / "tables" / "paper" / "memory_latency.tex").read_text()
    assert rendering.pdf(status.collect_report(folder))
