"""``peakmark report --artifact``: the appendix has every row, and another's file stays."""

from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis.analysis import Analysis
from peakmark.bundle import bundle
from peakmark.errors import PeakmarkError


def test_an_artifact_has_every_row_and_replaces_only_its_own_file(tmp_path: Path) -> None:
    campaign = tmp_path / "local"
    make.golden("local", campaign)
    (campaign / "artifact").mkdir()
    foreign = campaign / "artifact" / "appendix.tex"
    foreign.write_text("of the user")
    with pytest.raises(PeakmarkError, match=str(foreign)):
        bundle.write_artifact(campaign)
    assert foreign.read_text() == "of the user"

    foreign.unlink()
    text = bundle.write_artifact(campaign).read_text()
    rows = [row for rows in Analysis.of(campaign).rows.values() for row in rows if row.own]
    table = text.partition("\\endlastfoot")[2].partition("\\end{longtable}")[0]
    assert table.count("\\\\\n") == len(rows) == 12
    assert text.count("\\begin{") == text.count("\\end{")
    bundle.write_artifact(campaign)  # its own file may be replaced
