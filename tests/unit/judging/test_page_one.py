"""Page one: sentences that an expert would not take back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.unit import campaign_data as make

from peakmark.figures import figures
from peakmark.judging import caveats, verdict
from peakmark.judging.judged import Judged
from peakmark.storage.results import Results

QUIET = (1.0, 1.002, 0.998)
WILD = (1.0, 1.5, 0.5)


def judged(folder: Path, wobble: Sequence[float], loopback: bool = True, limit: float = 2e10) -> Judged:
    """A CPU row and a network row of three repetitions each; the network's limit is stated where it is no loopback."""
    records = []
    for number, factor in enumerate(wobble):
        of = make.cell("cpubench", "DP", subsystem="cpu", repetition=number)
        records.append(make.record(of, [make.measurement(of, "rate", 5e10 * factor)]))
        of = make.cell("netbench", "TCP", subsystem="network", block=1024, repetition=number)
        context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
        records.append(make.record(of, [make.measurement(of, "throughput", 1e10 * factor)], context=context))
    site = {} if loopback else {"site_facts": {"network": {"speed_bps": limit, "mtu": 1500}}}
    return Judged(Results.read(make.write(folder, records, config=site)))


def said(of: Judged) -> list[str]:
    return caveats.build(of.rows, verdict.verdicts(of.rows), of.results.config)


def test_where_nothing_is_sure_that_is_said_first(tmp_path: Path) -> None:
    first = said(judged(tmp_path / "wild", WILD))[0]
    assert first.startswith("None of the 2 figures above is sure: another run may well give others.")
    assert not any("figures above is sure" in text for text in said(judged(tmp_path / "quiet", QUIET)))


def test_a_figure_over_loopback_says_so_in_its_row_and_asks_for_no_limit(tmp_path: Path) -> None:
    of = judged(tmp_path / "a", QUIET)
    (network,) = (one for one in verdict.verdicts(of.rows) if one.subsystem == "network")
    assert network.what == "TCP of 1 KiB, 1 stream, over loopback"
    assert network.limit == "none: no link"
    assert not any("network" in text and "site file" in text for text in said(of))
    (real,) = (one for one in verdict.verdicts(judged(tmp_path / "b", QUIET, False).rows) if one.subsystem == "network")
    assert real.what == "TCP of 1 KiB, 1 stream"
    assert real.limit.endswith("b/s")


def test_no_repetition_lies_outside_the_figure(tmp_path: Path) -> None:
    figure = figures.overview(judged(tmp_path / "c", (0.9, 1.0, 3.6), False).rows)
    assert figure is not None
    assert figure.axes[0].get_xlim()[1] > 1.8
