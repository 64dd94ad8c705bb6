"""What is said once: remedies, brackets of formulas, failures that
recur.
"""

from __future__ import annotations

from pathlib import Path

from tests.unit import campaign_data as make

from peakmark.analysis import analysis
from peakmark.analysis.analysis import Analysis
from peakmark.messages import Sentence
from peakmark.report import appendix, method_text
from peakmark.report.sections import Sections
from peakmark.storage.results import Results
from peakmark.tables import footnotes

REMEDY = "repeat on an idle node, or set pool: auto"


def test_a_remedy_stands_at_the_first_note_that_names_it() -> None:
    sentences = {
        "a": Sentence("Mine: it spread by 7 %", REMEDY),
        "b": Sentence("Mine: 1 of 3 not measured: the disk is full", REMEDY),
        "c": Sentence("Mine: something else", "see there"),
        "d": Sentence("Mine: the clock fell"),
    }
    notes = footnotes.Notes({}, sentences, (), {})
    assert [note.text for note in notes.footnotes()] == [
        f"Mine: it spread by 7 %: {REMEDY}.",
        "Mine: 1 of 3 not measured: the disk is full.",
        "Mine: something else: see there.",
        "Mine: the clock fell.",
    ]


def test_words_of_a_column_are_not_counted_below_it(tmp_path: Path) -> None:
    records = [
        make.record(of, [make.measurement(of, "throughput", 1e9 * value)])
        for threads, values in ((1, (1.0, 1.0, 1.0)), (2, (0.6, 1.0, 1.4)))
        for run, value in enumerate(values)
        for of in [make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=1 << 20, concurrency=threads,
                             repetition=run)]
    ]  # fmt: skip
    results = Results.read(make.write(tmp_path / "c", records))
    sections = Sections(Analysis(results), {}).build()
    parts = [part for section in sections for part in section["parts"]]
    topics = {finding["topic"] for part in parts for finding in part["findings"]}
    assert topics and "Doubt" not in topics


def test_brackets_that_formulas_share_are_told_once(tmp_path: Path) -> None:
    facts = {
        "host": "node1",
        "cpu": {
            "clock_hz": {"nominal": 3e9},
            "cores": 2,
            "isa_best": "avx2",
            "microarchitecture": "Zen 3",
        },
        "limits": {"physical_cores_allowed": 2},
    }
    cells = [
        make.cell("cpubench", "DP", subsystem="cpu", concurrency=threads) for threads in (1, 2)
    ]
    records = [make.record(of, [make.measurement(of, "rate", 4e10)]) for of in cells]
    found = analysis.build_rows(Results.read(make.write(tmp_path / "c", records, facts=facts)))[
        "cpu"
    ]
    made = method_text.build_formulas(found, {})
    assert all(row.limit.detail for row in found), "otherwise this tests nothing"
    assert len(made["lines"]) == 2
    assert all("(Zen 3" not in line["formula"] for line in made["lines"])
    (told,) = [source for source in made["sources"] if "Zen 3" in source]
    number = told.partition(".")[0]
    assert all(number in line["source"].split(", ") for line in made["lines"])


def test_a_failure_that_recurs_is_one_line(tmp_path: Path) -> None:
    of = make.cell("hpl", "DP", subsystem="cpu")
    failed = [make.record(of, status="failed", reason="no output") for _ in range(5)]
    folder = make.write(tmp_path / "c", [], planned=[of], attempts=failed)
    assert appendix.problems(Results.read(folder))["lines"] == [
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
    assert len(appendix.problems(Results.read(few))["lines"]) == 3
    assert appendix.problems(Results.read(many))["lines"] == [
        ["cpubench: 30 cells", "not measured", "no record yet"]
    ]
