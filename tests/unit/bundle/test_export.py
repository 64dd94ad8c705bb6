"""What ``peakmark export`` writes is what ReFrame, OpenMetrics and the schema expect."""

import json
import re

import jsonschema
import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import Analysis
from peakmark.bundle import export
from peakmark.config import schemas


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    """A real campaign of one machine."""
    folder = tmp_path_factory.mktemp("export") / "local"
    make.golden("local", folder)
    return Analysis.of(folder)


def test_a_line_of_json_is_a_row_of_the_schema(analysis):
    schema = schemas.schema("export", export.ExportRow)
    lines = [json.loads(line) for line in export.json_lines(analysis).splitlines()]
    validator = jsonschema.Draft202012Validator(schema)
    assert [error for line in lines for error in validator.iter_errors(line)] == []
    measured = [row for rows in analysis.rows.values() for row in rows]
    assert len(lines) == sum(len(row.series) for row in measured) > 10


def test_a_reference_of_reframe_takes_the_interval_and_no_wrong_row(analysis):
    names = {}
    exec(export.reframe(analysis), names)  # noqa: S102 - as ReFrame does with a test
    reference = names["reference"]["*"]
    rows = {row.name: row for row in export.rows(analysis)}
    assert set(reference) == {name for name, row in rows.items() if row.doubt != "wrong"}
    for name, (value, lower, upper, _) in reference.items():
        row = rows[name]
        bound = lower if row.better == "higher" else upper
        assert bound is not None and None in (lower, upper)
        worst = value * (1 + bound)
        healthy = (row.low, row.high, value * (1 - export.TOLERANCE / 2))
        reached = [worst <= each * 1.001 for each in healthy]
        assert all(reached) if row.better == "higher" else worst >= row.high * 0.999


def test_openmetrics_has_families_in_one_piece_and_an_end(analysis):
    lines = export.openmetrics(analysis).splitlines()
    sample = re.compile(r'(\w+)\{(?:\w+="(?:[^"\\\n]|\\.)*",?)*\} (\S+)')
    order = []
    for line in lines[:-1]:
        name = line.split()[2] if line.startswith("# ") else str(sample.fullmatch(line)[1])
        if line.startswith("# UNIT"):
            assert name.endswith(f"_{line.split()[3]}")
        order += [name] if order[-1:] != [name] else []
    assert len(order) == len(set(order)) and lines[-1] == "# EOF"
    samples = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(samples) == len(set(samples))
