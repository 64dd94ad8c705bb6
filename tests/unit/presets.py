"""Presets that repeat published reports: plans, and campaigns with values that nobody measured."""

import itertools
import json
from functools import cache, partial

from tests.unit import campaign_data as make

from peakmark import plan
from peakmark.config import campaign
from peakmark.resources import ROOT

PRESETS = (
    "four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus", "disk-patterns-2020",
    "six-core-evaluation", "file-io-lab",
)  # fmt: skip
METRICS = {"cpu": ["rate"], "disk": ["throughput", "iops", "latency"]}


def planned(name, **changes):
    """The plan of a preset for nodes that have every reference tool."""
    return _plan(name, json.dumps(changes))


@cache
def _plan(name, changes):
    values = campaign.read([ROOT / "config" / "presets" / f"{name}.yaml"])
    return plan.make({**values, "tools_on": "nodes", **json.loads(changes)})


def record(cell, number):
    """A record with all the values that the cell's instrument would give, none of them measured."""
    if cell.workload == "ALL":
        metrics = ("iops", "latency") if cell.options.get("ops") else ("throughput",)
        every = itertools.product(("RS", "WS", "RR", "WR"), metrics)
        of_cell = partial(make.measurement, cell, value=2e9 + number)
        return make.record(cell, [of_cell(metric, workload=name) for name, metric in every])
    latency = cell.workload.startswith("LAT")
    metrics = METRICS.get(cell.subsystem, ["latency" if latency else "throughput"])
    return make.record(cell, [make.measurement(cell, metric, 1e9 + number) for metric in metrics])


def small_campaign(folder, name):
    """A campaign of every planned cell of a preset, one repetition each, of listed runs three."""
    kept = 3 if name == "disk-patterns-2020" else 1
    cells = [cell for cell in planned(name).cells if cell.repetition < kept]
    records = [record(cell, number) for number, cell in enumerate(cells)]
    return make.write(folder / name, records, config=planned(name).to_json()["config"])
