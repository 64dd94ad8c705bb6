"""The numbers of published reports, as ``reports/published`` has them, and the rows files made of
them: ``PEAKMARK_GOLDEN=write pytest tests/unit/config/test_published.py`` writes these anew.
"""

import csv
from dataclasses import dataclass

from tests.unit import campaign_data as make

from peakmark import plan
from peakmark.config import campaign
from peakmark.formatting import quantity
from peakmark.resources import ROOT
from peakmark.tools.tables import BY_NAME

FOLDER = ROOT / "reports" / "published"
THEORETICAL = "theoretical"
COPIES = ("RWS", "RWR")
RUNS = ("run", "mean", "", "final")
"""Averages count only where the runs themselves are not printed; the first kind that there is."""
INSTRUMENTS = {"hpl": "hpl", "pmbw": "pmbw", "iozone": "iozone", "iperf": "iperf3", "ping": "ping"}
"""Programs as reports call them -> the instrument here; any other is a kernel's."""
WHOLE_LINES = {1000: 1024}
"""Block of a report -> that of the preset that repeats it, which moves whole cache lines."""


@dataclass(frozen=True)
class Entry:
    """One line: a value in SI base units; ``block`` is in bytes, None where there is none."""

    source: str
    hardware: str
    table: str
    workload: str
    concurrency: int
    block: int | None
    program: str
    metric: str
    value: float
    unit: str
    run: str
    note: str
    definition: dict[str, str]

    @property
    def instrument(self):
        return INSTRUMENTS.get(self.program.lower(), BY_NAME[self.table].own.instrument)

    @property
    def is_measured(self):
        return self.program != THEORETICAL and self.metric == BY_NAME[self.table].metric

    @property
    def like_here(self):
        """The value as peakmark counts it: a copied byte is read and written."""
        once = self.definition.get("copied") == "once" and self.workload in COPIES
        return 2 * self.value if once and self.table == "memory_throughput" else self.value

    @property
    def key(self):
        block = WHOLE_LINES.get(self.block, self.block)
        return self.table, self.workload, block, self.concurrency, self.instrument

    @property
    def notes(self):
        """The note on the value, and what peakmark made of it."""
        found = [self.note] if self.note else []
        if self.note.startswith("the mean of the three runs"):
            found = [f"the printed average differs: {self.note}"]
        if self.like_here != self.value:
            found.append("twice what is printed: here a copied byte is read and written")
        if self.block in WHOLE_LINES:
            found.append(f"printed for {self.block} bytes, here beside whole cache lines")
        if self.source == "lab on file I/O" and self.instrument == "diskbench":
            found.append("threads stand for the processes of the report")
        if self.table == "disk_throughput" and "direct" not in self.definition:
            found.append("the report does not say whether the page cache took part")
        if self.program == "memorybench":
            found.append("the report calls its program memorybench")
        if self.table == "memory_latency" and self.program not in INSTRUMENTS:
            found.append("copies of 1 byte, which overlap: no limit of a load holds for them")
        return found

    @property
    def notes_beside(self):
        """The note on a limit or a deviation, for the row of the value beside it."""
        if self.note and self.program == THEORETICAL:
            value = quantity(self.value, self.unit)
            return [f"limit that the report printed ({value}): {self.note}"]
        if self.note and self.metric == "standard_deviation":
            return [f"the printed standard deviation is {self.note}"]
        return []


def load(name):
    """Read every line of a set."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [_entry(line) for line in csv.DictReader(file)]


def _entry(line):
    parts = (part.partition("=") for part in line.pop("definition").split(";") if part.strip())
    program = line.pop("instrument")
    numbers = {
        "concurrency": int(line["concurrency"]),
        "block": int(line["block"]) if line["block"] else None,
        "value": float(line["value"]),
        "definition": {name.strip(): word.strip() for name, _, word in parts},
    }
    return Entry(**{**line, **numbers, "program": program})


def measured(name):
    """Read the measured values of a set: no limits, efficiencies and deviations."""
    return [entry for entry in load(name) if entry.is_measured]


def runs(name):
    """Return the measured values of each row: the single runs, else the average that is printed."""
    by_key = {}
    for entry in measured(name):
        kind = "run" if entry.run.isdecimal() else entry.run
        by_key.setdefault(entry.key, {}).setdefault(kind, []).append(entry.like_here)
    return {key: kinds[min(kinds, key=RUNS.index)] for key, kinds in by_key.items()}


SITES = {
    "four-subsystems-2018-hyperion": "hyperion", "four-subsystems-2018-prometheus": "prometheus",
    "disk-patterns-2020": "chameleon-skylake-ssd", "six-core-evaluation": "phenom-x6",
}  # fmt: skip
"""Report -> the site file of its machine, where the report tells what machine it is."""
VARIANTS = {"memory_throughput": "pool", "memory_latency": "", "disk": "psync"}
AREAS = {"RWS": 16 << 10, "RWR": 256 << 20}
"""Order of a copy of 1 byte -> the area that dependent loads walk in its place."""


def records(name, values_of=list, definitions=True):
    """Return the records of a campaign with a report's numbers, at the points of its preset.

    Each row has every run that the report prints, else its average as one. ``values_of`` returns
    the values to record from those of the report. Without ``definitions`` the numbers count as
    peakmark's own, measured as the preset measures, for example past the page cache.
    """
    printed, notes, found = {}, {}, {}
    for entry in measured(name):
        printed[entry.key] = entry
        notes.setdefault(entry.key, {}).update(dict.fromkeys(entry.notes))
    deviations = {
        entry.key: entry.value for entry in load(name) if entry.metric == "standard_deviation"
    }
    for entry in load(name):
        notes.get(entry.key, {}).update(dict.fromkeys(entry.notes_beside))
    for key, values in runs(name).items():
        table_name, workload, block, threads, tool = key
        entry, table = printed[key], BY_NAME[table_name]
        if table_name == "network_latency":
            workload = f"LAT-{workload}"
        if table_name == "memory_latency":
            workload, block = "LAT", AREAS[workload]
        variant = VARIANTS.get(table_name, VARIANTS.get(table.subsystem, ""))
        place = {"variant": variant, "block": block, "concurrency": threads}
        place |= {"subsystem": table.subsystem, "metric": table.metric}
        details = dict(entry.definition) if definitions else {}
        details.pop("copied", None)
        if details.pop("direct", "yes") == "no":
            details["direct"] = False
        if definitions and key in deviations:
            details["printed_sd"] = deviations[key] * entry.like_here / entry.value
        if definitions:
            details |= {"printed_in": entry.source, "notes": list(notes[key])}
        # A report does not say which version of a program ran, from where and when.
        context = {"tool": {"name": tool, "path": "", "version": ""}, "commands": []}
        context |= {"started": "1970-01-01T00:00:00+00:00"}
        if definitions and "over loopback" in entry.note:
            context |= make.reached("lo", loopback=True)
        made = make.runs(
            tool, workload, *values_of(values), details=details, context=context, **place
        )
        for each in made:
            first = found.setdefault(make.cell_of(each["cell"]).id, each)
            first["measurements"] += each["measurements"] if first is not each else []
    return list(found.values())


def config(name):
    """Return the configuration of a report's preset at its site."""
    site = f"config/sites/{SITES[name]}.yaml" if name in SITES else None
    words = [f"site={ROOT / site}"] if site else []
    preset = ROOT / "config" / "presets" / f"{name}.yaml"
    return plan.make(campaign.read([preset], words)).to_json()["config"] | {"site": site}


def frames(name, folder):
    """Return a report as a judged campaign, from records that are written to ``folder``."""
    hardware = {entry.table: entry.hardware for entry in measured(name)}
    disk, _, processor = measured(name)[0].hardware.rpartition("; ")
    cpu = {"model_name": processor, "caches": []}
    facts = {"host": "node1", "cpu": cpu}
    if model := disk or hardware.get("disk_throughput"):
        facts["storage"] = {"model": model}
    return make.frames(folder / name, records(name), config=config(name), facts=facts)
