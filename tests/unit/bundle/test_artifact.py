"""``peakmark report --artifact``: the appendix has every row, and HPL's files are those of its record."""

import hashlib

import pytest
from tests.unit import campaign_data as make

from peakmark import bundle
from peakmark.analysis import Analysis
from peakmark.errors import PeakmarkError
from peakmark.storage import records

OUTPUTS = {"0.hpccoutf.txt": "T/V  N  NB\n", "0.hpccinf.txt": "1 # of problems\n", "0.stderr": "x"}
FASTEST = 2e10


@pytest.fixture
def campaign(tmp_path):
    """A real campaign of one machine; its records of HPL have outputs, as those of a run have."""
    folder = tmp_path / "local"
    make.golden("local", folder)
    for path in folder.glob("cells/cpu/hpl/*/any/0.json"):
        record = records.read(path)
        raw = path.with_suffix(".raw")
        raw.mkdir()
        point = path.parts[-3]
        record["measurements"][0]["value"] = FASTEST if point.endswith("xcores") else FASTEST / 2
        record["raw"] = {}
        for name, output in OUTPUTS.items():
            text = f"{point} {output}"
            (raw / name).write_text(text)
            record["raw"][f"{raw.name}/{name}"] = hashlib.sha256(text.encode()).hexdigest()
        path.unlink()
        records.write(path, record)
    return folder


def test_an_artifact_has_every_row_and_the_files_of_the_fastest_hpl(campaign):
    (campaign / "artifact").mkdir()
    foreign = campaign / "artifact" / "HPL.dat"
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

    files = {path.name: path.read_text() for path in (campaign / "artifact").iterdir()}
    assert files.keys() == {"appendix.tex", "HPL.out", "HPL.dat"}
    assert files["HPL.out"] == f"DP_none_xcores {OUTPUTS['0.hpccoutf.txt']}"
    assert files["HPL.dat"] == f"DP_none_xcores {OUTPUTS['0.hpccinf.txt']}"
    bundle.write_artifact(campaign)  # its own files may be replaced
