"""The summary names what was measured, whatever of it there is."""

import pytest
from tests.unit import campaign_data as make


def summary(peakmark, folder, records):
    done = peakmark("report", make.write(folder, records))
    assert done.returncode == 0, done.stderr
    return done.stdout


MEASURED = {
    "memory LAT": make.runs("rambench", "LAT", *make.near(1e-7), block=256 << 20),
    "C2C": make.core_to_core(2, 1, 1, 2, 1),
    "ladder": make.ladders(),
    "disk blocks of 4 KiB": make.runs(
        "diskbench", "RR", *make.near(1e4), metric="iops", block=4096
    ),
    "LAT-TCP": make.runs("netbench", "LAT-TCP", *make.near(1e-5), block=1),
    "LAT-UDP": make.runs("netbench", "LAT-UDP", *make.near(1e-5), block=1),
}


@pytest.mark.parametrize("what", MEASURED)
def test_what_is_measured_is_not_called_not_measured(peakmark, tmp_path, what):
    assert "not measured" not in summary(peakmark, tmp_path / "c", MEASURED[what]).lower()
