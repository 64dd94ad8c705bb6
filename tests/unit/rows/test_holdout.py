"""Changed campaigns are judged as they were, and show every warning that there is: cells lost, values and
clocks moved, other load, steal, errors counted. Each change is drawn by a seed.

``tests/unit/data/holdout.csv`` has a checksum of each column of the rows, warnings and verdicts of each
campaign. ``PEAKMARK_GOLDEN=write pytest tests/unit/rows/test_holdout.py`` writes it anew: a change of a
column that you did not mean to change is a fault.
"""

import ast
import copy
import csv
import hashlib
import json
import os
import random

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark import data
from peakmark.resources import ROOT
from peakmark.rows import build
from peakmark.storage import planfile
from peakmark.storage.results import Results

KEPT = ROOT / "tests" / "unit" / "data" / "holdout.csv"
FILES = ("rows", "warnings", "fleet")
GOLDEN = ("node", "cluster")
SEEDS = (1, 2)
JUDGES = ("checks", "rows", "row_warnings")
"""Modules of ``rows/`` that make warnings."""


OF_ATTEMPT = (
    "clock_hz_after", "clock_hz_before", "noise", "seconds",
    "server_noise", "started",
)  # fmt: skip
"""What the context of a disturbed attempt has of its own."""


class Campaign:
    """The records, facts and plan of a golden campaign, to be changed and written."""

    def __init__(self, name, folder):
        """Read a golden campaign, which is unpacked below ``folder``."""
        source = make.golden(name, folder / f"golden-{name}")
        self.records = [read(path) for path in sorted(source.glob("cells/**/*.json"))]
        self.attempts = [read(path) for path in sorted(source.glob("attempts/**/*.json"))]
        self.facts = {path.stem: read(path) for path in sorted(source.glob("machine/*.json"))}
        self.plan = read(source / "plan.json")

    def write(self, folder):
        """Write the campaign into a folder."""
        planned = {entry["id"]: entry for entry in self.plan["cells"]}
        for record in self.records:
            cell = make.cell_of(record["cell"])
            planned[cell.id] = {"id": cell.id, **cell.to_json()}
        self.plan["cells"] = list(planned.values())
        make.write(folder, self.records, attempts=self.attempts, machines=self.facts)
        (folder / "plan.json").unlink()
        planfile.write(folder / "plan.json", self.plan)
        return folder

    def of(self, row):
        """Return the records of a row, such as ``diskbench/RS-psync_1MiB_x1``, or of many by its start."""
        found = []
        for record in self.records:
            cell = make.cell_of(record["cell"])
            if cell.row.partition("/")[2].startswith(row) and record["status"] == "ok":
                found.append(record)
        assert found, row
        return found


def read(path):
    """Return a file of a campaign without its checksum."""
    data = json.loads(path.read_text(encoding="utf-8"))
    data.pop("sha256", None)
    return data


# -- changes at random


def shake(campaign, seed):
    """Change all records of a campaign at random."""
    lot = random.Random(seed)  # noqa: S311 - not a secret
    factors = {}
    kept = []
    for record in campaign.records:
        if lot.random() < 0.06:
            continue
        kept.append(record)
        kind = record["cell"]["instrument"], record["cell"]["workload"]
        factor = factors.setdefault(kind, lot.choice([1, 1, 1, 0.3, 2.5]))
        shake_record(record, factor * lot.choice([1, 1, 1.02, 0.97, 1.3]), lot)
    campaign.records = kept


def shake_record(record, factor, lot):
    """Change values, clocks, load and losses of a record, and let a few be measured again."""
    context = record["context"]
    during = (context.get("noise") or {}).get("during")
    if during:
        during["others"] = lot.choice([0.0, 0.0, 0.1, 0.5, 1.7])
        during["steal"] = lot.choice([0.0, 0.0, 0.01, 0.03, 0.2])
        during["busy"] = lot.choice([0, 1, 3])
        during["users"] = min(during["busy"], lot.choice([0, 1]))
    after = lot.choice([1, 1, 1.08, 0.9])
    if context.get("clock_hz_after"):
        context["clock_hz_after"] *= after
    for measurement in record["measurements"]:
        measurement["value"] *= factor
        details = measurement["details"]
        if "cpu_share" in details:
            details["cpu_share"] = lot.choice([1, 0.999, 0.95, 0.8])
        if details.get("clock_hz_after"):
            details["clock_hz_after"] *= after
        if details.get("lost") is not None:
            details["lost"] = lot.choice([0, 5, 300, 10**5])
    if record["status"] == "ok" and lot.random() < 0.08:
        own = {name: context.get(name) for name in OF_ATTEMPT}
        attempt = {
            "context": own,
            "measurements": record["measurements"],
            "reasons": {"steal": 0.2},
        }
        record["disturbed"] = [copy.deepcopy(attempt)]


# -- what is seldom seen


def change(campaign, row, details=None, context=None, during=None, options=None, factor=1):
    """Change what the records of a row say, at the same places in each."""
    for record in campaign.of(row):
        record["context"] |= context or {}
        if during:
            record["context"]["noise"]["during"] |= during
        record["cell"]["options"] |= options or {}
        for measurement in record["measurements"]:
            measurement["details"] |= details or {}
            measurement["value"] *= factor


CALM = {"steal": 0.0, "others": 0.0, "busy": 0, "users": 0, "throttled_s": 0.0, "hot": None}
"""Nothing else went on."""
STEADY = {
    "clock_hz_before": 3e9, "clock_hz_after": 3e9, "clock_hz_loaded": None, "cpu_share": 1.0,
    "held_up": 0,
}  # fmt: skip
"""The threads had their cores for themselves, at one clock."""
ERRORS = {
    "mc0 ce_count": 3, "mc0 ue_count": 1, "cpu MCE": 1, "0000:01:00.0 aer_dev_correctable": 2,
    "0000:01:00.0 aer_dev_nonfatal": 1, "cpu0 package_power_limit_count": 4, "vda temp1_alarm": 1,
    "eth0 rx_errors": 1, "eth0 tx_dropped": 2,
}  # fmt: skip
"""Counters that went on."""
TIMES = "1138 500 4000 8000;1200 90 70;1436 1"
"""Operations by time, as kernels print them."""


def spoil_cpu(campaign):
    """Give rows of the CPU what their checks report."""
    kernel = "cpubench"
    for row in ("DP_none_x1/any", "SP_none_x1/any", "HP_none_xcores", "QP_none_x1/any"):
        change(campaign, f"{kernel}/{row}", STEADY, during=CALM)
    change(campaign, f"{kernel}/DP_none_x1/any", factor=0.3)
    slow = {"clock_hz_before": 1.5e9, "clock_hz_after": 1.5e9, "isa": "sse2"}
    change(campaign, f"{kernel}/SP_none_x1/any", slow)
    change(campaign, f"{kernel}/HP_none_xcores", {"held_up": 1})
    first = campaign.of(f"{kernel}/HP_none_xcores")[0]
    first["measurements"][0]["details"]["held_up"] = 2
    change(campaign, f"{kernel}/QP_none_x1/any", {"held_up": 1})
    change(campaign, f"{kernel}/FP32_none_x1/any", options={"isa": "scalar"})
    change(campaign, f"{kernel}/QPDOT_none_x1/any", options={"isa": "avx2"})
    change(campaign, f"{kernel}/QP_none_xcores", context={"cpus": [0]})
    for row, allowed in (("SP_none_xcores", {"cpu_quota": 1.5}), ("DP_none_xcores", {"cores": 1})):
        for record in campaign.of(f"{kernel}/{row}"):
            record["context"]["allowed"] |= allowed
    for number, record in enumerate(campaign.of(f"{kernel}/FP32_none_xcores")):
        record["context"]["placed"] |= {"cores": 1 + number % 2}
    change(campaign, f"{kernel}/QPDOT_none_xcores", during={"throttled_s": 0.5, "hot": 3})
    campaign.of(f"{kernel}/QPDOT_none_xcores")[0]["measurements"][0]["value"] *= 50
    change(campaign, "hpl/DP_none_xcores", {"residual": 20.0})
    change(campaign, "hpl/DP_none_x1/any", {"clock_hz_before": 3e9, "clock_hz_after": 2e9})
    change(campaign, "likwid-bench/DP_none_x1/any", factor=30)
    failed = campaign.of(f"{kernel}/DP_none_x1/any")[0]
    campaign.records.remove(failed)
    failed |= {"status": "failed", "reason": "a wrong result", "measurements": []}
    failed["context"] |= {"host": "node1", "wrong_core": 1}
    campaign.attempts.append(failed)


def spoil_memory(campaign):
    """Give rows of the memory what their checks report, and the machine too few modules."""
    change(campaign, "rambench/RS-pool_1MiB_x1/any", {"probe_before": 1e10, "probe_after": 9e9})
    held_up = {"probe_before": 5e9, "probe_after": 4e9}
    first = campaign.of("rambench/RS-pool_1MiB_x1/any")[0]["measurements"][0]
    first["details"] |= held_up
    first["value"] *= 0.7
    change(campaign, "rambench/RWS-pool_1MiB_x1/any", {"store": "streaming"})
    change(campaign, "likwid-bench/RS-pool_1MiB_xcores", {"estimate": "half of a copy"})
    change(campaign, "likwid-bench/RWS-pool_1MiB_xcores", {"store": "libc"})
    change(campaign, "rambench/WS-pool_1MiB_x1/any", factor=1000)
    change(campaign, "rambench/RWR-pool_1KiB_x1/any", {"working_set_bytes": 1 << 20})
    for facts in campaign.facts.values():
        facts["memory"] |= {"channels": 7, "speed_mts": 2400, "type": "DDR4"}
        facts["cpu"] |= {"model_name": "AMD EPYC 7763 64-Core Processor", "virtualised": None}


def spoil_disk(campaign):
    """Give rows of the disk what their checks report."""
    kernel = "diskbench"
    change(campaign, f"{kernel}/RS-psync_1MiB_x1/any", {"filesystem": "tmpfs"})
    change(campaign, f"{kernel}/RS-psync_1MiB_x2/any", {"device_bytes": 4096})
    change(campaign, f"{kernel}/RR-psync_1MiB_x1/any", {"direct": False})
    change(campaign, f"{kernel}/RR-psync_1MiB_x2/any", {"huge_pages": 2 << 20})
    change(campaign, f"{kernel}/WS-psync_1MiB_x1/any", {"flush_seconds": 1e-5, "work": 1 << 30})
    limits = {"write_bps": 10**6, "write_iops": 100}
    change(campaign, f"{kernel}/WR-psync_4KiB_x1/any", context={"io_limits": limits})
    change(campaign, f"{kernel}/RR-psync_4KiB_x1/any", during={"moved": ERRORS})
    change(campaign, f"{kernel}/RR-psync_4KiB_x2/any", {"histogram": TIMES, "p999": 9e-5})
    change(campaign, "fio/WS-psync_1MiB_x2/any", {"sync": "each"})
    for facts in campaign.facts.values():
        facts["storage"]["pcie"] = {
            "current_width": 2, "current_speed": "8.0 GT/s PCIe", "max_width": 4,
            "max_speed": "16.0 GT/s PCIe",
        }  # fmt: skip
        facts["storage"] |= {"interface_limit": 2e9, "interface_limit_formula": "2 lanes"}


def spoil_network(campaign):
    """Give rows of the network what their checks report."""
    kernel = "netbench"
    change(campaign, f"{kernel}/LAT-UDP_1B_x1/any", {"lost": 100, "round_trips": 400})
    campaign.of(f"{kernel}/LAT-TCP_1B_x2/any")[0]["measurements"][0]["details"]["p999"] = 1.0
    printed = {"printed_in": "a report", "notes": ["wrong: a misprint"]}
    change(campaign, f"{kernel}/UDP_1KiB_x1/any", printed)
    change(campaign, f"{kernel}/UDP_1KiB_x2/any", {"loss": 0.3})
    change(campaign, f"{kernel}/UDP_32KiB_x2/any", {"loss": 0.7})
    for record in campaign.of(f"{kernel}/TCP_1KiB_x1/any"):
        record["context"]["network"]["shaping"] = "tbf of 1 Gbit/s on eth0"
    for record in campaign.of(f"{kernel}/TCP_32KiB_x1/any"):
        record["context"]["network"]["loopback"] = True
        record["context"] |= {"server_host": None, "server_noise": None}
    turned = campaign.of(f"{kernel}/TCP_32KiB_x2/any")[0]["context"]
    turned["host"], turned["server_host"] = turned["server_host"], turned["host"]
    change(campaign, f"{kernel}/TCP_1KiB_x2/any", during={"moved": ERRORS})
    for record in campaign.of(f"{kernel}/LAT-TCP_1B_x2/any"):
        record["context"]["server_noise"]["during"] |= {"moved": ERRORS, "others": 1.5, "busy": 2}


def spoil(campaign):
    """Give a campaign of all subsystems every warning that real ones seldom have."""
    spoil_cpu(campaign)
    spoil_memory(campaign)
    spoil_disk(campaign)
    spoil_network(campaign)


CLOCKS = {"node1": 3.6e9, "node2": 3.2e9, "node3": 3.0e9, "node4": 3.6e9}
"""Node -> clock under the work in Hz."""


def energy(campaign):
    """Let rows of the CPU tell their clock, which is lowered on two of four nodes, energy and placements."""
    for facts in campaign.facts.values():
        known = {"nominal": 2.6e9, "maximum": 3.7e9, "observed": 3.6e9}
        facts["cpu"] |= {"governor": "performance", "turbo": True, "clock_hz": known}
    campaign.facts["node3"]["cpu"]["clock_hz"] = {**known, "maximum": None}
    for number, record in enumerate(campaign.of("cpubench/SP_none_x2/node")):
        record["cell"] |= {"node": "any", "repetition": number}
    for record in campaign.of("cpubench/SP_none_x1/node1"):
        slower = 1 - 0.02 * record["cell"]["repetition"]
        record["measurements"][0]["value"] *= slower
    placed = {"cpubench/DP_none_x2/node1": 3, "cpubench/SP_none_x2/any": 3}
    for row, every in (placed | {"rambench/LAT_1MiB_x1/node1": 2}).items():
        for number, record in enumerate(campaign.of(row)):
            seconds = 10e-9 if number % every == 0 else 26e-9
            times = {"core_to_core_before": seconds, "core_to_core_after": seconds}
            record["measurements"][0]["details"] |= times
            record["measurements"][0]["value"] *= 0.9 if number % every == 0 else 1
    for row in ("cpubench/DP_none_x1/node", "cpubench/SP_none_x2/any"):
        for record in campaign.of(row):
            record["context"]["noise"]["during"] |= CALM
            clock_hz = CLOCKS[record["context"]["host"]]
            (measurement,) = record["measurements"]
            watts = clock_hz / 3e7 + record["cell"]["repetition"]
            told = {"clock_hz_loaded": clock_hz, "watts": watts, "joules": watts / 2}
            measurement["details"] |= STEADY | told
            measurement["value"] *= clock_hz / 3.6e9


def other_facts(campaign):
    """Tell the memory of nodes that are no virtual machines, and give node2 another kernel."""
    for host, facts in campaign.facts.items():
        facts["memory"] |= {"channels": 8, "speed_mts": 3200}
        facts["cpu"] |= {"virtualised": None}
        facts["os"] |= {"kernel": "5.14.0" if host == "node2" else "6.1.0"}


# -- the campaigns


def made(folder):
    """Yield name and folder of each changed campaign."""
    for name in GOLDEN:
        for seed in SEEDS:
            campaign = Campaign(name, folder / f"{name}-{seed}")
            shake(campaign, f"{name} {seed}")
            if seed == SEEDS[-1]:
                other_facts(campaign)
            yield f"{name}-{seed}", campaign.write(folder / f"{name}-{seed}" / "campaign")
    for change_of in (spoil, energy):
        name = change_of.__name__
        campaign = Campaign("cluster", folder / name)
        change_of(campaign)
        yield name, campaign.write(folder / name / "campaign")


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Name of each campaign -> its frames."""
    folder = tmp_path_factory.mktemp("holdout")
    return {name: build.judge(Results.read(path)) for name, path in made(folder)}


def checksums(frame):
    """Return column -> checksum, of numbers with nine digits."""
    found = {}
    for column in frame:
        text = frame[[column]].to_csv(index=False, float_format="%.9g")
        found[column] = hashlib.sha256(text.encode()).hexdigest()[:8]
    return found


def test_changed_campaigns_are_judged_as_they_were(judged):
    now = {}
    for name, frames in judged.items():
        for file in FILES:
            for column, digest in checksums(getattr(frames, file)).items():
                now.setdefault((file, column), {})[name] = digest
    if os.environ.get("PEAKMARK_GOLDEN") == "write":
        lines = [{"file": file, "column": column, **each} for (file, column), each in now.items()]
        pd.DataFrame(lines).to_csv(KEPT, index=False)
    with KEPT.open() as stream:
        lines = {(line.pop("file"), line.pop("column")): line for line in csv.DictReader(stream)}
    assert [*lines] == [*now]
    differ = {place: sorted(each.items() - lines[place].items()) for place, each in now.items()}
    assert {place: each for place, each in differ.items() if each} == {}


def test_every_column_has_a_value_in_some_campaign(judged):
    rows = pd.concat([frames.rows for frames in judged.values()])
    is_empty = (rows.isna() | rows.eq("") | rows.eq(False)).all()
    assert rows.columns[is_empty].tolist() == []


def test_every_warning_is_shown_by_some_campaign(judged):
    seen = set()
    for frames in judged.values():
        seen |= set(frames.warnings["code"])
    assert sorted(seen ^ codes_of_modules()) == []


def codes_of_modules():
    """Return the codes of all messages that the modules make, by their source."""
    codes = {line["code"] for line in data.table("counters")}
    for name in JUDGES:
        tree = ast.parse((ROOT / "src" / "peakmark" / "rows" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and called(node) in ("message", "repeated"):
                parts = ast.walk(node.args[0])
                if isinstance(node.args[0], ast.Constant | ast.IfExp):
                    values = [part.value for part in parts if isinstance(part, ast.Constant)]
                    codes |= {value for value in values if isinstance(value, str)}
    return codes


def called(node):
    """Return the name of what a call calls."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")
