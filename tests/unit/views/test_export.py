"""What ``peakmark export`` writes is what OpenMetrics and the schema expect."""

import json
import re

import pytest

from peakmark.resources import ROOT
from peakmark.rows import build, schema
from peakmark.tools.tables import BY_NAME
from peakmark.views import table_files


@pytest.fixture(scope="module")
def frames(golden):
    """A campaign of one machine."""
    return build.load(golden("node"))


def test_a_line_of_json_has_the_columns_of_rows_csv(frames):
    lines = [json.loads(line) for line in table_files.json_lines(frames).splitlines()]
    columns = [column.name for column in schema.ROWS]
    assert all(list(line) == columns for line in lines)
    assert len(lines) == (frames.rows["n"] > 0).sum() > 10
    assert all(isinstance(line["hosts"], list) and line["value"] > 0 for line in lines)


def test_openmetrics_has_families_in_one_piece_and_an_end(frames):
    lines = table_files.openmetrics(frames).splitlines()
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


@pytest.fixture(scope="module")
def dashboard():
    """The dashboard of Grafana for these metrics."""
    return json.loads((ROOT / "docs" / "grafana.json").read_text())


def test_each_metric_has_a_panel_of_the_dashboard_and_no_panel_another(dashboard, frames):
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    named = re.findall(r"peakmark_\w+", " ".join(expressions))
    known = [table_files.RATIO, *map(table_files.metric_of, BY_NAME)]
    assert sorted(named) == sorted(known)
    printed = re.findall(r"^# TYPE (\w+)", table_files.openmetrics(frames), re.MULTILINE)
    assert set(printed) <= set(known)


def test_the_dashboard_uses_labels_that_are_exported(dashboard):
    labels = {"campaign", "statistic", *table_files.LABELS}
    used = set()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            used |= set(re.findall(r"(\w+)=", target["expr"]))
            used |= set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert used <= labels
    assert used >= set(variables) - {"datasource"}
    assert variables["statistic"]["query"].split(",") == list(table_files.STATISTICS)
