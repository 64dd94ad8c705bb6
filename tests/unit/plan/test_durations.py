"""Times of a plan, by the estimates of its programs."""

from pathlib import Path

import pytest

from peakmark import plan
from peakmark.config import campaign
from peakmark.plan import durations, jobs
from peakmark.plan.cluster import Cluster
from peakmark.plan.plan import _times, describe
from peakmark.resources import ROOT
from peakmark.run import job
from peakmark.storage import planfile

FIRST = ROOT / "config/presets/four-subsystems-2018-hyperion.yaml"
TWO = Cluster("main", "any", ("any",), cpus=8, memory=64_000, limit=None, count=2)


def first(cluster=TWO, **changes):
    """The plan of the first report, with all its reference tools."""
    return plan.make({**campaign.read([FIRST]), "tools_on": "nodes", **changes}, cluster)


def test_an_unknown_network_is_an_ordinary_one():
    """An unknown network was once taken for 100 Mb/s: 401 minutes a cell."""
    made = first()
    (cell, *_) = (c for c in made.cells if (c.instrument, c.workload) == ("netbench", "TCP"))
    assert made.durations.expected(cell) < 1200
    assert jobs.minutes([cell], made) < 90


def test_a_plan_says_what_measuring_again_may_take():
    never, twice = first(repeat_disturbed=0), first(repeat_disturbed=2)
    cells, times = twice.cells, twice.durations
    assert never.durations.repeated(cells) == 0.0
    waiting = durations.WAIT_S * len(cells)
    assert times.repeated(cells) == pytest.approx(2 * times.total(cells) + waiting)
    lines = {describe(made).count("repeat_disturbed: 2") for made in (never, twice)}
    assert lines == {0, 1}
    part = planfile.Part(Path("results/c"), twice.results.plan, cells)
    assert job.request(part, cells[0], Path()).repeats == 2


def test_here_both_ends_are_one_machine():
    assert first(cluster=None, nodes="any").durations.link_bps == durations.LOOPBACK_LINK


def test_a_job_may_take_several_times_as_long_as_expected():
    """Nobody must lose a measurement because a node was slower than another."""
    made = first()
    for cell in made.cells:
        assert jobs.minutes([cell], made) * 60 >= 2.5 * made.durations.expected(cell)
    cells = [cell for cell in made.cells if cell.row == made.cells[0].row]
    assert jobs.minutes(cells, made) * 60 < 6 * made.durations.total(cells) + 120


def test_pairs_that_are_measured_together_take_the_time_of_one():
    """Three rounds of two pairs: their 6 pairs alone, and each round at one moment."""
    nodes = ("n1", "n2", "n3", "n4")
    four = Cluster("main", "all", nodes, cpus=8, memory=64_000, limit=None, count=4)

    def wall(**pairs):
        grid = {"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1], "seconds": 600}
        values = {"nodes": "all", "fan_out": "node", "network": [{**grid, "pairs": "all", **pairs}]}
        return _times(plan.make({**values, "repetitions": 1}, four), four)[1]

    assert wall(together=True) == pytest.approx(1.5 * wall(), rel=0.05)
