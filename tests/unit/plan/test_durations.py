"""Times of a plan: by records of the same row or kind, by the network's speed, or estimated."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit import campaign_data

from peakmark import plan
from peakmark.config import campaign
from peakmark.plan import durations, jobs, plan_text
from peakmark.plan.cluster import Cluster
from peakmark.resources import ROOT
from peakmark.run import job
from peakmark.storage import planfile
from peakmark.storage.records import GOOD, Finding

FIRST = ROOT / "config/presets/four-subsystems-2018-hyperion.yaml"
TWO = Cluster("main", "any", ("any",), cpus=8, memory=64_000, limit=None, count=2)
WITHIN = 1.5


def first(cluster=TWO, **changes):
    """The plan of the first report, with all its reference tools."""
    return plan.make({**campaign.read([FIRST]), "tools_on": "nodes", **changes}, cluster)


def measured(made, cells, taking):
    """The plan once ``cells`` have records that say how long each took."""
    records = [campaign_data.record(cell, context={"seconds": taking(cell)}) for cell in cells]
    campaign_data.write(made.directory, records)
    return replace(made)


def one_of_each(cells):
    """One cell for each instrument, workload and block."""
    found = {}
    for cell in cells:
        found.setdefault((cell.instrument, cell.workload, cell.variant, cell.block), cell)
    return list(found.values())


def a_machine(cell):
    """Seconds on a machine with a slow disk, fast cores and a network of 3 Gb/s."""
    threads, total = min(cell.concurrency, 8), float(cell.options.get("total") or 0)
    size = float(cell.options.get("size") or 0)
    if cell.instrument == "cpubench":
        rate = {"QP": 9e10, "HP": 4e10}.get(cell.workload, 1e10)
        return 0.4 + float(cell.options["operations"]) / (rate * threads)
    if cell.workload == "LAT":
        return 0.4 + float(cell.options.get("accesses", 0)) * (cell.block or 1) ** 0.5 * 1e-12
    if cell.instrument == "rambench":
        return 1.2 + total / (6e9 * threads**0.5)
    if cell.instrument == "diskbench":
        return 0.4 + size / 9e7 + total / min(9e7, (cell.block or 1) * 2e3 * cell.concurrency**0.1)
    if cell.instrument == "iozone":
        slept = 17.0 if cell.concurrency > 1 else 0.0
        return slept + 6 * size / min(8e7, (cell.block or 1) * 2e3 * cell.concurrency**0.1)
    if cell.instrument == "fio":
        return 0.6 + (size + total) / 9e7
    if cell.subsystem == "network" and total:
        return 1.5 + 8 * total / 3e9
    if cell.instrument == "netbench":
        return 1.5 + float(cell.options["round_trips"]) * 5e-5 / cell.concurrency**0.8
    return {"hpl": 48.0, "pmbw": 7.0, "iperf3": 11.0, "ping": 3.5}[cell.instrument]


def test_one_cell_of_each_kind_makes_the_times_those_of_the_machine():
    made = first()
    kinds = one_of_each(made.cells)
    assert len(kinds) * 4 < len(made.cells)
    assert f"times of {len(made.cells)} cells are estimated" in plan_text.describe(made)
    told = measured(made, kinds, a_machine)
    for subsystem in ("", "cpu", "memory", "disk", "network"):
        cells = [cell for cell in made.cells if subsystem in ("", cell.subsystem)]
        truth = sum(map(a_machine, cells))
        assert truth / WITHIN < told.durations.total(cells) < truth * WITHIN, subsystem
    text = plan_text.describe(told)
    assert f"{len(kinds)} measured, about " in text and " left" in text
    assert "estimated" not in text


def test_a_row_takes_what_it_took():
    made = first()
    row = [cell for cell in made.cells if cell.row == made.cells[0].row]
    told = measured(made, row[:2], lambda cell: 40.0 + cell.repetition).durations
    assert (told.expected(row[2]), told.longest(row[2])) == (40.5, 41.0)
    assert not told.is_estimate(row[2])


def test_records_of_a_shorter_run_correct_the_estimate_of_the_long_one():
    short, long = first(scale=0.01), first()
    kinds = one_of_each(short.cells)
    measured(short, kinds, a_machine)
    told = long.durations
    assert not any(told.is_measured(cell) for cell in long.cells)
    own = ("rambench", "diskbench", "netbench")
    cells = [cell for cell in long.cells if cell.instrument in own]
    truth = sum(map(a_machine, cells))
    assert truth / 2 < told.total(cells) < truth * 2


def test_what_one_machine_cannot_says_nothing_of_its_like():
    made = first()
    cell, *others = (cell for cell in made.cells if cell.instrument == "pmbw")
    took = {"seconds": 0.01}
    nothing = campaign_data.record(cell, status="unavailable", reason="absent", context=took)
    campaign_data.write(made.directory, [nothing])
    told = replace(made).durations
    assert told.expected(cell) == pytest.approx(0.01)
    other = next(other for other in others if other.row != cell.row)
    assert told.is_estimate(other)
    assert told.expected(other) == made.durations.expected(other) - made.durations.between_s


@pytest.mark.parametrize("slower", [0.25, 4.0])
def test_one_measured_cell_moves_the_others_little(slower):
    """A cell of some milliseconds once made its kind take days."""
    made = plan.make(campaign.read([ROOT / "config/presets/quick.yaml"]), None)
    before, kinds = made.durations, one_of_each(made.cells)
    for cell in kinds:
        others = [other for other in kinds if other.row != cell.row]
        record = campaign_data.record(cell, context={"seconds": slower * before.expected(cell)})
        told = replace(before, findings={cell.id: Finding(GOOD, data=record)}).total(others)
        # Where no reference tool is installed, half of all others are of its kind.
        assert min(1.0, slower) <= told / before.total(others) <= max(1.0, slower), cell.id


def test_the_network_is_as_fast_as_the_site_file_says():
    Path("site.yaml").write_text("{schema: 1, name: here, network: {speed_bps: 56.0e+9}}")
    unknown, said = first(), first(site="site.yaml")
    slow, fast = (
        next(cell for cell in made.cells if (cell.instrument, cell.workload) == ("netbench", "TCP"))
        for made in (unknown, said)
    )
    assert said.durations.link_bps == 56e9 and unknown.durations.link_bps is None
    assert said.durations.expected(fast) < unknown.durations.expected(slow) < 1200
    # An unknown network was once taken for 100 Mb/s: 401 minutes a cell.
    assert jobs.minutes([fast], said) < jobs.minutes([slow], unknown) < 90
    assert "network.speed_bps" in plan_text.describe(unknown)
    assert "network.speed_bps" not in plan_text.describe(said)


def test_a_plan_says_what_measuring_again_may_take():
    never, twice = first(repeat_disturbed=0), first(repeat_disturbed=2)
    cells, times = twice.cells, twice.durations
    assert never.durations.repeated(cells) == 0.0
    waiting = durations.WAIT_S * len(cells)
    assert times.repeated(cells) == pytest.approx(2 * times.total(cells) + waiting)
    lines = {plan_text.describe(made).count("repeat_disturbed: 2") for made in (never, twice)}
    assert lines == {0, 1}
    part = planfile.Part(Path("results/c"), twice.to_json(), cells)
    assert job.request(part, cells[0], Path()).repeats == 2


def test_here_both_ends_are_one_machine():
    assert first(cluster=None, nodes="any").durations.link_bps == durations.LOOPBACK_LINK


def test_a_job_may_take_several_times_as_long_as_expected():
    """Whatever is known: nobody must lose a measurement because a node was slower than another."""
    made = first()
    for told in (made, measured(made, one_of_each(made.cells), a_machine)):
        for cell in made.cells:
            assert jobs.minutes([cell], told) * 60 >= 2.5 * told.durations.expected(cell)
    cells = [cell for cell in made.cells if cell.row == made.cells[0].row]
    assert jobs.minutes(cells, told) * 60 < 6 * told.durations.total(cells) + 120
