"""Where the numbers come from."""

from __future__ import annotations

from pathlib import Path

from tests.unit import campaign_data as make

from peakmark.report import appendix
from peakmark.storage.results import Results


def test_the_first_start_is_that_of_the_earliest_moment(tmp_path: Path) -> None:
    """In the night in which clocks go back the later start has the smaller time of day."""
    starts = ("2026-10-25T02:50:00.000+02:00", "2026-10-25T02:10:00.000+01:00")
    records = make.runs("cpubench", "DP", 4e10, 4e10)
    for record, start in zip(records, starts, strict=True):
        record["context"]["started"] = start
    facts = dict(appendix.provenance(Results.read(make.write(tmp_path, records)))["facts"])
    assert " to ".join(starts) in facts.values()
