"""What the summary, and with it page one, says of each subsystem."""

import pytest
from tests.unit import campaign_data as make

EQUAL = (4e10, 4.01e10, 3.99e10)


def summary(peakmark, folder, records):
    done = peakmark("summary", make.write(folder, records))
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


def beside_likwid(peakmark, folder, own, reference):
    records = make.runs("cpubench", "DP", *own) + make.runs("likwid-bench", "DP", *reference)
    text = summary(peakmark, folder, records)
    assert "likwid-bench" in text
    return text


@pytest.mark.parametrize("factor", [1.0, 0.9999, 1.0001])
def test_equal_values_are_neither_faster_nor_slower(peakmark, tmp_path, factor):
    own = [value * factor for value in EQUAL]
    text = beside_likwid(peakmark, tmp_path / "c", own, EQUAL)
    assert "faster" not in text and "slower" not in text


@pytest.mark.parametrize("factor", [0.99, 1.01, 1.03])
def test_single_values_within_what_repetitions_differ_by_are_level(peakmark, tmp_path, factor):
    text = beside_likwid(peakmark, tmp_path / "c", [4e10 * factor], [4e10])
    assert "faster" not in text and "slower" not in text


@pytest.mark.parametrize(("factor", "word"), [(1.5, "faster"), (0.6, "slower")])
def test_a_difference_is_one(peakmark, tmp_path, factor, word):
    own = [value * factor for value in EQUAL]
    assert word in beside_likwid(peakmark, tmp_path / "c", own, EQUAL)
