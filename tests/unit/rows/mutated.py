"""Real campaigns, changed: cells lost, values and clocks moved, other load, steal, errors counted.

Every change is drawn by a seed, so that each campaign is the same wherever it is made.
"""

import copy
import json
import random

import msgspec
from tests.unit import campaign_data as make
from tests.unit import gpu_data
from tests.unit.plan.planned import where

from peakmark.cell import Cell
from peakmark.rows import checks
from peakmark.storage import planfile

OF_ATTEMPT = (
    "clock_hz_after", "clock_hz_before", "load_after", "load_before", "noise", "seconds",
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
            cell = Cell.from_json(record["cell"])
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
            cell = Cell.from_json(record["cell"])
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
    "eth0 rx_errors": 1, "eth0 tx_dropped": 2, "tcp RetransSegs": 5, "udp RcvbufErrors": 6,
}  # fmt: skip
"""Counters that went on."""
TIMES = "1138 500 4000 8000;1200 90 70;1436 1"
"""Operations by time, as kernels print them."""


def spoil_cpu(campaign):
    """Give rows of the CPU what their checks report."""
    kernel = "cpubench"
    for row in ("DP_none_x1/", "SP_none_x1/", "HP_none_xcores", "QP_none_x1/"):
        change(campaign, f"{kernel}/{row}", STEADY, during=CALM)
    change(campaign, f"{kernel}/DP_none_x1/", factor=0.3)
    slow = {"clock_hz_before": 1.5e9, "clock_hz_after": 1.5e9, "isa": "sse2"}
    change(campaign, f"{kernel}/SP_none_x1/", slow)
    change(campaign, f"{kernel}/HP_none_xcores", {"held_up": 1})
    first = campaign.of(f"{kernel}/HP_none_xcores")[0]
    first["measurements"][0]["details"]["held_up"] = 2
    change(campaign, f"{kernel}/QP_none_x1/", {"held_up": 1})
    change(campaign, f"{kernel}/FP32_none_x1/", options={"isa": "scalar"})
    change(campaign, f"{kernel}/QPDOT_none_x1/", options={"isa": "avx2"})
    change(campaign, f"{kernel}/QP_none_xcores", context={"cpus": [0]})
    for row, allowed in (("SP_none_xcores", {"cpu_quota": 1.5}), ("DP_none_xcores", {"cores": 1})):
        for record in campaign.of(f"{kernel}/{row}"):
            record["context"]["allowed"] |= allowed
    for number, record in enumerate(campaign.of(f"{kernel}/FP32_none_xcores")):
        record["context"]["placed"] |= {"cores": 1 + number % 2}
    change(campaign, f"{kernel}/QPDOT_none_xcores", during={"throttled_s": 0.5, "hot": 3})
    campaign.of(f"{kernel}/QPDOT_none_xcores")[0]["measurements"][0]["value"] *= 50
    change(campaign, "hpl/DP_none_xcores", {"residual": 20.0})
    change(campaign, "hpl/DP_none_x1/", {"clock_hz_before": 3e9, "clock_hz_after": 2e9})
    change(campaign, "likwid-bench/DP_none_x1/", factor=30)
    failed = campaign.of(f"{kernel}/DP_none_x1/")[0]
    campaign.records.remove(failed)
    failed |= {"status": "failed", "reason": "a wrong result", "measurements": []}
    failed["context"] |= {"host": "node1", "wrong_core": 1}
    campaign.attempts.append(failed)


def spoil_memory(campaign):
    """Give rows of the memory what their checks report, and the machine too few modules."""
    change(campaign, "rambench/RS-pool_1MiB_x1/", {"probe_before": 1e10, "probe_after": 9e9})
    held_up = {"probe_before": 5e9, "probe_after": 4e9}
    campaign.of("rambench/RS-pool_1MiB_x1/")[0]["measurements"][0]["details"] |= held_up
    change(campaign, "rambench/RWS-pool_1MiB_x1/", {"store": "streaming"})
    change(campaign, "likwid-bench/RS-pool_1MiB_xcores", {"estimate": "half of a copy"})
    change(campaign, "likwid-bench/RWS-pool_1MiB_xcores", {"store": "libc"})
    change(campaign, "rambench/WS-pool_1MiB_x1/", factor=1000)
    change(campaign, "rambench/RWR-pool_1KiB_x1/", {"working_set_bytes": 1 << 20})
    for facts in campaign.facts.values():
        facts["memory"] |= {"channels": 7, "speed_mts": 2400, "type": "DDR4"}
        facts["cpu"] |= {"model_name": "AMD EPYC 7763 64-Core Processor", "virtualised": None}


def spoil_disk(campaign):
    """Give rows of the disk what their checks report."""
    kernel = "diskbench"
    change(campaign, f"{kernel}/RS-psync_1MiB_x1/", {"filesystem": "tmpfs"})
    change(campaign, f"{kernel}/RS-psync_1MiB_x2/", {"device_bytes": 4096})
    change(campaign, f"{kernel}/RR-psync_1MiB_x1/", {"direct": False})
    change(campaign, f"{kernel}/RR-psync_1MiB_x2/", {"huge_pages": 2 << 20})
    change(campaign, f"{kernel}/WS-psync_1MiB_x1/", {"flush_seconds": 1e-5, "work": 1 << 30})
    limits = {"write_bps": 10**6, "write_iops": 100}
    change(campaign, f"{kernel}/WR-psync_4KiB_x1/", context={"io_limits": limits})
    change(campaign, f"{kernel}/RR-psync_4KiB_x1/", during={"moved": ERRORS})
    change(campaign, f"{kernel}/RR-psync_4KiB_x2/", {"histogram": TIMES, "p999": 9e-5})
    change(campaign, "fio/WS-psync_1MiB_x2/", {"sync": "each"})
    for facts in campaign.facts.values():
        facts["storage"]["pcie"] = {
            "current_width": 2, "current_speed": "8.0 GT/s PCIe", "max_width": 4,
            "max_speed": "16.0 GT/s PCIe",
        }  # fmt: skip
        facts["storage"] |= {"interface_limit": 2e9, "interface_limit_formula": "2 lanes"}


def spoil_network(campaign):
    """Give rows of the network what their checks report."""
    kernel = "netbench"
    change(campaign, f"{kernel}/LAT-UDP_1B_x1/", {"lost": 100, "round_trips": 400})
    change(campaign, f"{kernel}/UDP_1KiB_x2/", {"loss": 0.3})
    change(campaign, f"{kernel}/UDP_32KiB_x2/", {"loss": 0.7})
    for record in campaign.of(f"{kernel}/TCP_1KiB_x1/"):
        record["context"]["network"]["shaping"] = "tbf of 1 Gbit/s on eth0"
    for record in campaign.of(f"{kernel}/TCP_32KiB_x1/"):
        record["context"]["network"]["loopback"] = True
        record["context"] |= {"server_host": None, "server_noise": None}
    turned = campaign.of(f"{kernel}/TCP_32KiB_x2/")[0]["context"]
    turned["host"], turned["server_host"] = turned["server_host"], turned["host"]
    change(campaign, f"{kernel}/TCP_1KiB_x2/", during={"moved": ERRORS})
    for record in campaign.of(f"{kernel}/LAT-TCP_1B_x2/"):
        record["context"]["server_noise"]["during"] |= {"moved": ERRORS, "others": 1.5, "busy": 2}


def spoil(campaign):
    """Give a campaign of all subsystems every warning that real ones seldom have."""
    spoil_cpu(campaign)
    spoil_memory(campaign)
    spoil_disk(campaign)
    spoil_network(campaign)


# -- other campaigns made of the same records


def pairs(campaign):
    """Measure TCP between all pairs of five nodes; node2 and one link are slow, one switch is known."""
    nodes = [f"node{number}" for number in range(1, 6)]
    source = campaign.facts["node1"]
    campaign.facts = {node: source | {"host": node} for node in nodes}
    records = []
    for row in ("netbench/TCP_32KiB_x1/", "netbench/LAT-TCP_1B_x1/"):
        original = campaign.of(row)[0]
        is_time = "LAT" in row
        for place, (client, server) in enumerate(every_pair(nodes)):
            slower = 1.0 + (client == "node2" or server == "node2") * 0.5
            slower += (client, server) == ("node3", "node5")
            for repetition in range(6):
                record = copy.deepcopy(original)
                record["cell"] |= {"node": client, "peer": server, "repetition": repetition}
                context = record["context"]
                context |= {"host": client, "server_host": server}
                context["started"] = f"2026-11-23T05:{place:02}:{repetition:02}.000+00:00"
                wobble = 1 + 0.002 * ((place * 7 + repetition * 3) % 5 - 2)
                factor = slower * wobble if is_time else wobble / slower
                record["measurements"][0]["value"] *= factor
                records.append(record)
    campaign.records, campaign.attempts = records, []
    campaign.plan |= {"cells": [], "cluster": msgspec.to_builtins(where(nodes=tuple(nodes)))}


def one_slow(campaign):
    """Measure eight nodes six times, of which node3 is slow in rows of CPU and memory."""
    records = []
    for number, record in enumerate(campaign.records):
        node = record["cell"]["node"]
        for again in range(2):
            copied = copy.deepcopy(record)
            repetition = 2 * record["cell"]["repetition"] + again
            copied["cell"]["repetition"] = repetition
            slower = 0.9 if node == "node3" else 1.0
            for measurement in copied["measurements"]:
                is_time = measurement["unit"] == "s"
                value = 1e-8 if is_time else 1e10
                value *= 1 + 0.002 * ((number * 7 + repetition * 3) % 5 - 2)
                measurement["value"] = value / slower if is_time else value * slower
            records.append(copied)
    campaign.records = records
    campaign.facts["node3"]["cpu"]["microcode"] = "0x1"


def every_pair(names):
    """Return all pairs of names, the first of them first."""
    return [(a, b) for number, a in enumerate(names) for b in names[number + 1 :]]


CLOCKS = {"node1": 3.6e9, "node2": 3.2e9, "node3": 3.0e9}
"""Node -> clock under the work, of which all but the first are throttled."""


def energy(campaign):
    """Measure rows of the CPU four times on each of three nodes, which tell clocks and energy."""
    source = next(iter(campaign.facts.values()))
    cpu = {**source["cpu"], "governor": "performance", "turbo": True}
    cpu["clock_hz"] = {"nominal": 2.6e9, "maximum": 3.7e9, "observed": 3.6e9}
    campaign.facts = {node: source | {"host": node, "cpu": cpu} for node in CLOCKS}
    unread = {**cpu, "clock_hz": {**cpu["clock_hz"], "maximum": None}}
    campaign.facts["node3"] = campaign.facts["node3"] | {"cpu": unread}
    records = []
    for row in ("cpubench/DP_none_x1/", "cpubench/SP_none_xcores", "cpubench/QP_none_x1/"):
        original = campaign.of(row)[0]
        for repetition in range(12):
            record = copy.deepcopy(original)
            node = list(CLOCKS)[repetition % 3]
            record["cell"]["repetition"] = repetition
            record["context"] |= {"host": node}
            record["context"]["started"] = f"2026-11-23T05:{repetition:02}:00.000+00:00"
            record["context"]["noise"]["during"] |= CALM
            add_energy(record["measurements"][0], CLOCKS[node], repetition)
            records.append(record)
    for record in records:
        if record["cell"]["workload"] == "DP":  # by itself on each node
            record["cell"] |= {"node": record["context"]["host"]}
        if record["cell"]["workload"] == "QP":  # slower from time to time
            record["measurements"][0]["value"] *= 1 - 0.02 * record["cell"]["repetition"]
    campaign.records, campaign.attempts = records, []
    campaign.plan["cells"] = []


def add_energy(measurement, clock_hz, repetition):
    """Let a measurement of the CPU tell its clock and its energy."""
    details = measurement["details"]
    watts = clock_hz / 3e7 + repetition
    details |= STEADY | {"clock_hz_loaded": clock_hz, "watts": watts, "joules": watts / 2}
    measurement["value"] *= clock_hz / 3.6e9 * (1 + 0.001 * (repetition % 4))


def unequal(campaign):
    """Give the second host another kernel."""
    *_, last = campaign.facts.values()
    last["os"] = {**(last.get("os") or {}), "kernel": "5.14.0"}


def shapes(folder):
    """Write matrices, ladders and latencies under load, some without all threads at work."""
    loaded = make.loaded(3)
    for record in loaded:
        for measurement in record["measurements"]:
            for point in measurement["details"]["points"][:2]:
                point[2] = 0.9
    matrices = [*make.core_to_core(2, 1, 1, 2, 1, slow=(3,)), *make.numa(2, 1)]
    memory = {**make.VM["memory"], "channels": 8, "speed_mts": 3200}
    facts = {**make.VM, "memory": memory}
    return make.write(folder, [*loaded, *matrices, *make.ladders()], machines={"node1": facts})


def gpus(folder):
    """Write rows of an H100, and of a node with four GPUs of which one is slow and unwell."""
    made = gpu_data.h100()
    slower = {"clock": 1.9e9, "isa": "mma.sync.m16n8k16.bf16", "variant": "burst"}
    made += gpu_data.records("gpubench", "TC-BF16", [600e12], **slower)
    unwell = {"clock": 1.98e9, "isa": "fma.rn.f32", "variant": "burst", "concurrency": 4}
    moved = {}
    for number, names in enumerate(checks.OF_GPU.values(), 1):
        moved[f"0000:00:07.0 {names[0]}"] = number
    noise = gpu_data.noise(moved)
    values = [32e12, 29e12, 32e12, 32.1e12]
    made += gpu_data.records("gpubench", "FP32", values, context=noise, **unwell)
    return make.write(folder, made, machines={"node1": gpu_data.facts(folder, 4)})
