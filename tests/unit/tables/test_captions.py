"""What stands below figures and above tables."""

from __future__ import annotations

from peakmark.figures import selection
from peakmark.tables import captions
from peakmark.tools.tables import BY_NAME


def test_every_figure_has_a_caption() -> None:
    assert set(captions.sentences()) == {
        *captions.FIGURES,
        *captions.KINDS,
        captions.NODES,
        captions.WORKLOAD,
    }
    assert set(captions.FIGURES) == {
        "overview",
        "fleet",
        *(one.name for table in BY_NAME.values() for one in selection.figures_of(table, [])),
    }


def test_a_caption_speaks_of_the_limit_only_where_it_is_drawn() -> None:
    assert "dashed" in captions.text("cpu")
    for name in captions.FIGURES:
        if name not in ("overview", "fleet"):
            without = captions.text(name, {"limit"})
            assert "dashed" not in without
            assert without.endswith(".")
            assert len(without) > 60


def test_a_caption_names_the_resource_once() -> None:
    assert captions.of_table("Throughput", "disk") == "Disk: throughput"
    assert captions.of_table("Disk latency (IOPS)", "disk") == "Disk latency (IOPS)"
    assert captions.of_table("TCP and UDP", "network") == "Network: TCP and UDP"


def test_a_caption_is_silent_about_programs_that_are_not_in_the_figure() -> None:
    assert "qperf" in captions.text("network_latency")
    without = captions.text("network_latency", {"qperf"})
    assert "qperf" not in without
    assert "ping" in without


def test_figures_of_one_workload_have_a_caption_that_fits_them() -> None:
    told = captions.texts()
    assert "panel" in told["disk_throughput_RS"]
    assert "whether random access" not in told["disk_throughput_RS"]
    assert "lower is better" in told["disk_latency_RR"]
