"""Which figures a campaign has, that they never change without a reason, and the overview."""

import re
from dataclasses import replace

import pytest
from tests.unit import campaign_data as make

from peakmark import figures
from peakmark.analysis import verdict
from peakmark.figures import panels, style
from peakmark.limits import Limit
from peakmark.tools.tables import BY_NAME

UNKNOWN = Limit(None, "op/s", "", "", "unknown")


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    """Two threads, three repetitions, HPL beside them; the limit from the site facts."""
    records = [record for record in make.sweep() if record["cell"]["subsystem"] == "cpu"]
    return make.judge(tmp_path_factory.mktemp("results") / "c", records, facts=make.ZEN3)


def limited(analysis, limit):
    return {
        name: [replace(row, limit=limit) for row in rows] for name, rows in analysis.rows.items()
    }


def stems(analysis):
    """The names of the figures that a campaign has now."""
    written = figures.build(analysis)
    assert {path.suffix for path in written} <= {".svg", ".png"}
    assert len(written) == 2 * len({path.stem for path in written})
    return {path.stem for path in written}


def test_figures_of_measured_tables_only_and_the_same_again(cpu):
    folder = cpu.results.directory / "figures"
    assert stems(cpu) == {"cpu", "overview"}
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert b"<dc:date>" not in before["cpu.svg"]
    figures.build(cpu)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_figures_of_another_layout_disappear(tmp_path):
    records = make.runs("diskbench", "RS", 1e8, block=1 << 16)
    records += make.runs("diskbench", "WS", 1e8, block=1 << 16)
    folder = make.write(tmp_path / "c", records)
    assert stems(folder) == {"disk_throughput"}
    make.write(folder, records, config={"report": {"tables": "file-io-lab"}})
    assert stems(folder) == {"disk_throughput_RS", "disk_throughput_WS"}


def test_dram_caches_and_a_single_point_are_figures(tmp_path):
    place = {"block": 1024, "node": "n_1.x_y-2"}
    records = make.runs("rambench", "LAT", 1e-9, **place)
    for variant in ("pool", "block"):
        records += make.runs("rambench", "RS", 1e10, variant=variant, **place)
    # Without limits there is no overview.
    assert stems(make.write(tmp_path / "c", records)) == {
        "memory_latency", "memory_throughput_pool", "memory_throughput_block"
    }  # fmt: skip


def test_percentiles_of_single_operations_are_a_figure(tmp_path):
    details = {"p50": 1e-5, "p90": 2e-5, "p99": 3e-5, "p999": 4e-5}
    found = make.judge(tmp_path / "c", make.runs("netbench", "LAT-TCP", 1e-5, details=details))
    assert stems(found) == {"network_latency", "network_latency_percentiles"}
    rows = found.rows["network_latency"]
    (axis,) = panels.plot_percentiles(rows[0].table, rows).axes
    assert list(axis.lines[0].get_ydata()) == pytest.approx([10, 20, 30, 40])
    assert [label.get_text() for label in axis.get_xticklabels()] == ["50", "90", "99", "99.9"]


def test_figures_carry_the_names_and_units_of_the_layout(tmp_path):
    records = make.runs("diskbench", "RS", 1e8, block=1 << 16)
    found = make.judge(tmp_path / "lab", records, config={"report": {"tables": "file-io-lab"}})
    figure = figures.overview(limited(found, Limit(1e9, "B/s", "", "", "site")))
    text = " ".join(one.get_text() for one in figure.axes[0].texts)
    assert "FileIO" in text and "64KB" in text and "MyDiskBench" not in text and "KiB" not in text


def test_the_overview_draws_the_limit_where_it_is_known(cpu):
    style.begin()
    figure = figures.overview(cpu.rows)
    assert [1, 1] in [[*line.get_xdata()] for line in figure.axes[0].lines]
    row = verdict.headline(cpu.rows, "cpu")
    assert row is not None and row.measured.efficiency is not None
    assert figure.axes[0].patches[0].get_width() == row.measured.efficiency
    assert figures.overview(limited(cpu, UNKNOWN)) is None
    assert panels.plot(BY_NAME["cpu"], []) is None


def test_the_decimal_mark_reaches_ticks_limits_and_words(sweep):
    figure = figures.overview(limited(sweep, Limit(5e10, "op/s", "", "", "site")))
    style.use_decimal_mark(figure, ",")
    texts = [text.get_text() for text in figure.axes[0].texts if "MyCPUBench" in text.get_text()]
    assert texts and not any(re.search(r"\d\.\d", text) for text in texts)
    for name in ("disk_latency", "memory_latency"):
        # In the unit of the table, not in that of the rows, the values need a decimal mark.
        rows = [replace(row, table=BY_NAME[name]) for row in sweep.rows[name]]
        figure = panels.plot(BY_NAME[name], rows)
        style.use_decimal_mark(figure, ",")
        figure.draw_without_rendering()
        labels = [label.get_text() for axis in figure.axes for label in axis.get_yticklabels()]
        assert any("," in label for label in labels), name
        assert not any("." in label for label in labels), name
