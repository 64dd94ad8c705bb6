"""A campaign measured and reported before the package had its layers: its records count, and its
tables say the same.

``tests/unit/data/campaigns/before-the-layers.zip`` was measured with peakmark as of commit 2e79cdc
(version 0.1.0), on two cores that were busy with other things, so that there is much to remark on.
Names of host, user and folders were replaced; ``tables/`` in it are those that the same commit made
of the records. Whoever changes how old records are read or summarised has to explain here what is
different.
"""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import pytest

from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import tables

OLD = ROOT / "tests" / "unit" / "data" / "campaigns" / "before-the-layers.zip"
RENAMED = {
    "95 % interval of the median, low": "Interval of the median, low",  # of few runs its level is another, and is told
    "95 % interval of the median, high": "Interval of the median, high",
}
SENTENCES = {"Notes", "theoretical_formula", "theoretical_source"}
"""These may be put better, and more may be remarked on."""
SAID = {"findings.csv"}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The old campaign with the tables made of it now; those from then are in ``then/``."""
    folder = tmp_path_factory.mktemp("old") / "before"
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(folder)
    (folder / "tables").rename(folder / "then")
    tables.build(folder)
    return folder


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    with path.open(encoding="utf-8", newline="") as stream:
        lines = csv.DictReader(stream)
        return list(lines.fieldnames or ()), list(lines)


def test_every_old_record_counts(campaign: Path) -> None:
    results = Results.read(campaign)
    assert results.left_out == ()
    assert results.missing == ()
    assert len(results.records) == 53 and all(record.ok for record in results.records)
    assert list(results.facts) == ["host1"]


def test_old_tables_have_the_same_numbers(campaign: Path) -> None:
    """Each table of then, row by row, in every column that it had."""
    compared = 0
    for then in sorted((campaign / "then").glob("*.csv")):
        if then.name in SAID:
            continue
        headings, before = _read(then)
        now, after = _read(campaign / "tables" / then.name)
        kept = {old: RENAMED.get(old, old) for old in headings if old not in SENTENCES}
        assert set(kept.values()) <= set(now), then.name
        assert [{old: row[new] for old, new in kept.items()} for row in after] == [
            {old: row[old] for old in kept} for row in before
        ], then.name
        compared += len(kept) * len(before)
    assert compared > 3000


def test_old_outputs_are_those_that_the_records_name(campaign: Path) -> None:
    assert (campaign / "tables/checksums.txt").read_bytes() == (
        campaign / "then/checksums.txt"
    ).read_bytes()


def test_old_rows_have_their_limits_and_remarks(campaign: Path) -> None:
    """What a reader is told of a row does not get lost: whatever had a note or a formula has one
    still.
    """
    for then in sorted((campaign / "then").glob("*.csv")):
        headings, before = _read(then)
        _, after = _read(campaign / "tables" / then.name)
        for column in SENTENCES & set(headings):
            lost = [
                row
                for row, old in zip(after, before, strict=True)
                if old[column] and not row[column]
            ]
            assert lost == [], f"{then.name}: {column}"
