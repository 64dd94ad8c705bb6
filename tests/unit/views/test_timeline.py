"""The probes of a campaign over time: a panel for each host and probe, and one for the cells."""

from dataclasses import replace

import pytest
from tests.unit.rows import mutated
from tests.unit.rows.mutated import Campaign

from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.views import timeline
from peakmark.views.report import document, sections


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """A real campaign of one host with probes of DRAM."""
    folder = tmp_path_factory.mktemp("timeline")
    campaign = Campaign("two-nodes", folder / "golden")
    mutated.two_states(campaign)
    return build.judge(Results.read(campaign.write(folder / "campaign")))


def test_each_probe_has_a_panel_above_the_cells(frames):
    figure = timeline.plot(frames)
    *probes, cells = figure.axes
    assert [axis.get_ylabel() for axis in probes] == ["DRAM\n(GB/s)"]
    (dots,) = (points.get_offsets() for points in probes[0].collections)
    assert len(dots) == 2 * 15 and dots[:, 1].min() == pytest.approx(15)
    names = [label.get_text() for label in cells.get_yticklabels()]
    assert names == ["processor", "memory", "disk", "network"]
    assert len(cells.patches) == len(frames.runs.drop_duplicates(["record", "attempt"]))
    figure.draw_without_rendering()
    places = probes[0].transData.transform(dots)[:, 0]
    room = 2 * figure.dpi / 72  # points, within which a reading would be cut at an edge
    assert min(places) - room > cells.bbox.x0 and max(places) + room < cells.bbox.x1
    # A cell of a second is a thin line, which a white edge would cover.
    assert {bar.get_edgecolor() for bar in cells.patches} == {cells.patches[0].get_facecolor()}


def test_hosts_have_panels_with_their_names(frames):
    hosts = frames.runs["repetition"].mod(2).map({0: "node1", 1: "node2"})
    figure = timeline.plot(replace(frames, runs=frames.runs.assign(host=hosts)))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["node1", "node2", ""]


def test_the_report_has_it_where_there_are_probes(frames, golden):
    assert document.build(frames)["timeline"]["name"] == "timeline"
    assert "timeline" in sections.figure_names(frames)
    without = build.load(golden("two-nodes"))
    assert timeline.plot(without) is None
    assert document.build(without)["timeline"] is None
    assert "timeline" not in sections.figure_names(without)
