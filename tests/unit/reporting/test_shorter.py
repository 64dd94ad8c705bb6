"""What paper says once: remedies, doubts that all rows share, brackets of formulas, failures that
recur.
"""

from __future__ import annotations

from pathlib import Path

from tests.unit import campaign_data as make

from peakmark.judging import rows
from peakmark.messages import Sentence
from peakmark.reporting import document, formulas, runs_text, shorter
from peakmark.reporting.sections import Sections
from peakmark.storage.results import Results
from peakmark.tables import footnotes, presentation, webtables
from peakmark.tables.presentation import PrintedColumn, PrintedTable

REMEDY = "repeat on an idle node, or set pool: auto"


def _grid(notes: list[footnotes.Footnote], specific_warnings: list[str]) -> PrintedTable:
    """A table of a workload, a measured column, the doubt and the notes."""
    columns = (
        PrintedColumn("W"),
        PrintedColumn("Measured", kind="number"),
        presentation.DOUBT,
        presentation.NOTES,
    )
    return PrintedTable(
        "cpu",
        "CPU",
        columns,
        tuple(("DP", "1", doubt, "a") for doubt in specific_warnings),
        tuple(notes),
    )


def _note(letter: str, fact: str, remedy: str = "") -> footnotes.Footnote:
    return footnotes.Footnote.of(letter, Sentence(fact, remedy), ".")


def _shortened(*notes: list[footnotes.Footnote]) -> list[list[str]]:
    """The texts of the notes of tables that follow each other."""
    told: set[str] = set()
    return [
        [note.text for note in shorter.grid(_grid(each, ["unsure", ""]), told).notes]
        for each in notes
    ]


def test_a_remedy_stands_at_the_first_note_that_names_it() -> None:
    first = [_note("a", "7 %", REMEDY), _note("b", "clock", REMEDY)]
    second = [_note("a", "9 %", REMEDY), _note("b", "else", "see there")]
    assert _shortened(first, second) == [
        [f"7 %: {REMEDY}.", "clock."],
        ["9 %.", "else: see there."],
    ]


def test_a_fact_is_said_of_each_table_whatever_colons_are_in_it() -> None:
    """Said of two tables it is true of both."""
    facts = [
        "Mine: 1 of 3 not measured: the disk is full",
        "theoretical value: that of two cores, as told: here",
    ]
    notes = [_note("a", fact) for fact in facts]
    assert _shortened(notes, notes) == [[f"{fact}." for fact in facts]] * 2


def test_a_doubt_that_all_rows_share_is_a_sentence() -> None:
    alike, mixed = (
        shorter.grid(_grid([], ["unsure", level]), set()) for level in ("unsure", "wrong")
    )
    assert [column.label for column in alike.columns] == ["W", "Measured", "Notes"]
    assert alike.body == (("DP", "1", "a"), ("DP", "1", "a"))
    assert len(alike.below) == 1 and "unsure" in alike.below[0]
    assert [column.label for column in mixed.columns][2] == "Doubt"


def test_words_of_a_column_are_not_counted_below_it(tmp_path: Path) -> None:
    records = make.runs("diskbench", "RS", 1e9, 1e9, 1e9)
    records += make.runs("diskbench", "RS", 0.6e9, 1e9, 1.4e9, concurrency=2)
    results = Results.read(make.write(tmp_path / "c", records))
    told = {}
    for page in (False, True):
        sections = Sections(results, rows.build(results), {}, page).build()
        parts = [part for section in sections for part in section["parts"]]
        told[page] = {finding["topic"] for part in parts for finding in part["findings"]}
    assert "Doubt" in told[True] and "Doubt" not in told[False]


def test_the_page_keeps_doubts_and_remedies_where_readers_filter(tmp_path: Path) -> None:
    records = []
    for threads in (1, 2):
        values = (0.6e11, 1e11, 1.4e11 + threads * 1e10)
        records += make.runs("cpubench", "DP", *values, concurrency=threads)
    results = Results.read(make.write(tmp_path / "c", records))
    found = rows.build(results)
    heads = {}
    for page in (False, True):
        data = document.build(results, found, {}, None, partial=False, page=page)
        heads[page] = [entry["title"] for entry in data["sections"][0]["parts"][0]["table"]["head"]]
    assert "Doubt" not in heads[False] and "Doubt" in heads[True]


def test_brackets_that_formulas_share_are_told_once(tmp_path: Path) -> None:
    one, two = (make.runs("cpubench", "DP", 4e10, concurrency=threads) for threads in (1, 2))
    found = make.judge(tmp_path / "c", [*one, *two], facts=make.ZEN3).rows["cpu"]
    made = formulas.build(found, {})
    assert all(row.limit.detail for row in found)
    assert len(made["lines"]) == 2
    assert all("(Zen 3" not in line["formula"] for line in made["lines"])
    (told,) = [source for source in made["sources"] if "Zen 3" in source]
    number = told.partition(".")[0]
    assert all(number in line["source"].split(", ") for line in made["lines"])


def test_a_failure_that_recurs_is_one_line(tmp_path: Path) -> None:
    of = make.cell("hpl", "DP", subsystem="cpu")
    failed = [make.record(of, status="failed", reason="no output") for _ in range(5)]
    folder = make.write(tmp_path / "c", [], planned=[of], attempts=failed)
    assert runs_text.problems(Results.read(folder))["lines"] == [
        ["hpl DP_none_x1 any 0", "failed (5 times)", "no output (node1)"]
    ]


def test_what_an_unfinished_campaign_lacks_is_counted(tmp_path: Path) -> None:
    planned = [
        make.cell("cpubench", "DP", subsystem="cpu", concurrency=threads)
        for threads in range(1, 31)
    ]
    few, many = (
        make.write(tmp_path / name, [], planned=cells)
        for name, cells in (("few", planned[:3]), ("many", planned))
    )
    assert len(runs_text.problems(Results.read(few))["lines"]) == 3
    assert runs_text.problems(Results.read(many))["lines"] == [
        ["cpubench: 30 cells", "not measured", "no record yet"]
    ]


def test_letters_lead_to_notes_and_own_numbers_stand_beside_them() -> None:
    text = f"a{footnotes.BOUND}7{footnotes.BOUND}%{footnotes.BETWEEN}b"
    cell = webtables._cell(3, text, "notes", "cpu", ".")
    assert cell == '<td><a href="#cpu-a">a</a>\u00a07\u00a0%, <a href="#cpu-b">b</a></td>'
