"""A campaign folder made of small record files. Nothing here is measured."""

import itertools
import json
import math
import statistics
import tarfile
from collections import defaultdict
from functools import cache, partial
from pathlib import Path

import msgspec

from peakmark import plan
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell, CellKeys
from peakmark.config import campaign as configuration
from peakmark.resources import ROOT
from peakmark.rows import build, schema
from peakmark.storage.record_types import Record
from peakmark.storage.records import text_of
from peakmark.storage.results import Results
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed
from peakmark.views.table_files import write_tables

DATA = Path(__file__).parent / "data"
"""Outputs of real tools, facts of real machines, and what published reports printed."""
VM = json.loads((DATA / "machine" / "zen3-vm.json").read_text())
"""The facts of a real virtual machine."""
ZEN3 = {
    "host": "node1",
    "cpu": {
        "clock_hz": {"nominal": 3e9}, "cores": 2, "isa_best": "avx2", "microarchitecture": "Zen 3"
    },
    "limits": {"physical_cores_allowed": 2},
}  # fmt: skip
"""Facts from which the limits of two cores are known."""


def cell(
    instrument,
    workload,
    *,
    subsystem,
    variant="",
    block=None,
    concurrency=1,
    node="any",
    repetition=0,
    **options,
):
    """A cell with the defaults that the tests share, and further options."""
    every = {"seconds": 1.0, "seed": 1, **options}
    return Cell(
        subsystem, instrument, workload, variant, block, concurrency, node, repetition, every
    )


def cell_of(data):
    """The cell of a record or of a plan's entry, which are read as JSON."""
    return Cell.of(msgspec.convert(data, CellKeys))


def measurement(of, metric, value, **changes):
    """One measurement of a record; its row is the cell's own unless ``changes`` says otherwise."""
    unit = SUBSYSTEMS[of.subsystem].units[metric]
    return {
        "workload": of.workload, "variant": of.variant, "block": of.block,
        "concurrency": of.concurrency, "metric": metric, "value": value, "unit": unit,
        "details": {},
    } | changes  # fmt: skip


def record(
    of,
    measurements=(),
    *,
    status="ok",
    reason=None,
    warnings=(),
    host="node1",
    started="2026-11-21T04:00:00+00:00",
    context=None,
):
    """A record of ``of``, valid against the schema."""
    argv = [f"/usr/bin/{of.instrument}", "--workload", of.workload]
    return {
        "schema": 1,
        "cell": of.to_json(),
        "status": status,
        "reason": reason,
        "measurements": list(measurements),
        "context": {
            "host": host, "job_id": None, "started": started, "seconds": 1.0,
            "commands": [{"argv": argv, "returncode": 0, "seconds": 1.0}],
            "tool": {"name": of.instrument, "path": f"/usr/bin/{of.instrument}", "version": "1.2"},
            "cpus": list(range(of.concurrency)),
            "peakmark": "0.1.0",
        }
        | dict(context or {}),
        "warnings": list(warnings),
        "raw": {"0.stdout": "0" * 64},
    }  # fmt: skip


def struct(of, measurements=(), **more):
    """The record of ``of`` as it is read; ``more`` as for ``record``."""
    return msgspec.convert(record(of, measurements, **more), Record)


OF = {
    "cpu": ("cpubench", "hpl", "likwid-bench"),
    "memory": ("rambench", "pmbw"),
    "disk": ("diskbench", "fio", "iozone"),
    "network": ("netbench", "iperf3", "ping", "qperf"),
}
PLACE = {"memory": ("pool", 1 << 20), "disk": ("psync", 1 << 20), "network": ("", 1024)}


def runs(
    instrument,
    workload,
    *values,
    metric="",
    details=None,
    context=None,
    host="node1",
    repetition=0,
    **place,
):
    """Records of one row, a repetition for each of ``values`` (SI units) from ``repetition`` on, at
    the place that most tests of its subsystem measure unless ``place`` says otherwise.
    """
    subsystem = place.pop("subsystem", None) or next(
        name for name, instruments in OF.items() if instrument in instruments
    )
    latency = workload.startswith("LAT")
    variant, block = ("", None) if latency else PLACE.get(subsystem, ("", None))
    place = {"subsystem": subsystem, "variant": variant, "block": block} | place
    metric = metric or ("latency" if latency else "rate" if subsystem == "cpu" else "throughput")
    made = []
    for number, value in enumerate(values, repetition):
        of = cell(instrument, workload, repetition=number, **place)
        measured = measurement(of, metric, value, details=dict(details or {}))
        made.append(record(of, [measured], host=host, context=context))
    return made


def near(value, n=6):
    """Repetitions of one value, within one per cent of it: six of them are told from others."""
    return [value * factor for factor in (1.0, 1.01, 0.99, 1.004, 0.996, 1.002)[:n]]


def placed(cores, of, quota=None):
    """Context of a run whose threads had ``cores`` of the ``of`` cores of a node, all its job's."""
    cpus = list(range(cores))
    return {
        "placed": {
            "word": "", "threads": cores, "placement": "compact", "cpus": cpus, "cores": cores,
            "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20,
        },
        "allowed": {
            "cpus": list(range(of or 0)), "cores": of, "cpu_quota": quota, "memory_bytes": 1 << 38,
            "memory_limited_by": None, "node_cores": of,
        },
    }  # fmt: skip


def noise(**during):
    """The context of a repetition during which this went on."""
    quiet = {"seconds": 1.0, "steal": 0.0, "others": 0.01, "throttled_s": 0.0, "hot": 0}
    quiet |= {"busy": 0, "users": 0}
    return {"noise": {"during": quiet | during}}


def reached(interface="eth0", **known):
    """Context of a network run: the interface through which it reached its server."""
    unknown = dict.fromkeys(("address", "server_interface"), "") | {"shaping": None, "link": None}
    network = {"interface": interface, "loopback": interface == "lo"} | unknown | known
    return {"network": network}


def frames(folder, records, **more):
    """The frames of a campaign written below ``folder``; ``more`` as for ``write``."""
    return build.judge(Results.read(write(folder, records, **more)))


def tables(campaign):
    """The frames of a campaign, by its folder, with its tables written."""
    judged = build.load(campaign)
    write_tables(judged, campaign / "tables")
    return judged


def only_row(folder, records, **more):
    """The line of ``rows`` of peakmark's kernel, of a campaign that has one point."""
    rows = frames(folder, records, **more).rows
    (row,) = schema.lines(rows[rows["is_own"]])
    return row


def write(
    directory,
    records,
    *,
    planned=(),
    attempts=(),
    references=(),
    config=None,
    facts=None,
    machines=None,
):
    """Lay a campaign out below ``directory``: cells are those of the records, then those in
    ``planned``; without either one that is in no table of an own kernel. ``facts`` are those of
    node1, ``machines`` those of any hosts.
    """
    records, planned = list(records), list(planned)
    if not records and not planned:
        ping = cell("ping", "LAT-ICMP", subsystem="network")
        records = [record(ping, status="unavailable", reason="no ping") | {"raw": {}}]
    cells = [entry["cell"] for entry in records] + [entry.to_json() for entry in planned]
    plan = {
        "schema": 1, "campaign": directory.name, "config": dict(config or {}), "cells": cells,
        "references": list(references), "node": "any", "created": "2026-11-21T03:59:00+00:00",
    }  # fmt: skip
    _write(directory / "plan.json", plan)
    for entry in records:
        _write_record(directory / "cells" / f"{cell_of(entry['cell']).id}.json", entry)
    for number, entry in enumerate(attempts):
        name = f"{cell_of(entry['cell']).id}.{number}.json"
        _write_record(directory / "attempts" / name, entry)
    for host, found in {**(machines or {}), **({} if facts is None else {"node1": facts})}.items():
        _write_record(directory / "machine" / f"{host}.json", found)
    return directory


def called(folder, text):
    """A campaign in which host, warning, failure, title, author and course are this text."""
    records = runs("cpubench", "DP", 4e10, host=text)
    records[0]["warnings"] = [text]
    hpl = cell("hpl", "DP", subsystem="cpu")
    failed = record(hpl, status="failed", reason=text, host=text)
    config = {"report": dict.fromkeys(("title", "author", "course"), text)}
    return write(folder, records, attempts=[failed], config=config, facts={"host": text})


def _write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")


def _write_record(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(data), encoding="utf-8")


def sweep(repetitions=3, threads=(1, 2)):
    """Records for all eight tables: own kernels at each of ``threads``, some references once."""
    records = []

    def add(instrument, workload, metrics, **place):
        count = repetitions if instrument.endswith("bench") and instrument != "likwid-bench" else 1
        for repetition in range(count):
            of = cell(instrument, workload, repetition=repetition, **place)
            wobble = 1 + 0.02 * math.sin(7.3 * repetition + len(records))
            values = {name: value * wobble for name, value in metrics.items()}
            records.append(record(of, [measurement(of, *each) for each in values.items()]))

    for x in threads:
        cpu = {"subsystem": "cpu", "concurrency": x}
        for number, workload in enumerate(("QP", "HP", "SP", "DP")):
            add("cpubench", workload, {"rate": 400e9 * x / 2**number}, **cpu)
        add("hpl", "DP", {"rate": 45e9 * x}, **cpu)
        memory = {"subsystem": "memory", "concurrency": x}
        for variant, gain, slope in (("pool", 1.0, 0.05), ("block", 9.0, -0.1)):
            for workload, rate in (("RS", 20e9), ("WS", 12e9), ("RWS", 17e9), ("RWR", 9e9)):
                for block in (1024, 1 << 20, 10 << 20):
                    value = rate * gain * x**0.5 * (block / 1024) ** slope
                    place = memory | {"variant": variant, "block": block}
                    add("rambench", workload, {"throughput": value}, **place)
                    if workload in ("RS", "WS") and variant == "block":
                        add("pmbw", workload, {"throughput": value * 0.8}, **place)
        for block in (16 << 10, 1 << 20, 256 << 20):
            latency = 1.2e-9 * (block / 16384) ** 0.5
            add("rambench", "LAT", {"latency": latency}, block=block, **memory)
        disk = {"subsystem": "disk", "variant": "psync", "concurrency": x}
        for workload, rate in (("RS", 2.0e9), ("RR", 1.8e9), ("WS", 1.1e9), ("WR", 0.9e9)):
            for block in (1 << 20, 16 << 20):
                add("diskbench", workload, {"throughput": rate * x**0.3}, block=block, **disk)
                add("fio", workload, {"throughput": rate * 1.05 * x**0.3}, block=block, **disk)
        small = disk | {"block": 4096}
        for workload, rate in (("RR", 15e3), ("WR", 22e3)):
            add("diskbench", workload, {"iops": rate * x**0.8, "latency": x**0.2 / rate}, **small)
            add("fio", workload, {"iops": rate * x**0.7, "latency": x**0.3 / rate}, **small)
        network = {"subsystem": "network", "concurrency": x}
        for workload, rate in (("TCP", 30e9), ("UDP", 4e9)):
            for block in (1024, 32768):
                value = rate * (block / 32768) ** 0.3
                place = network | {"block": block}
                add("netbench", workload, {"throughput": value * x**0.4}, **place)
                add("iperf3", workload, {"throughput": value * 0.9}, **place)
            add("netbench", f"LAT-{workload}", {"latency": 9e-6 * x**0.2}, block=1, **network)
            if x == 1:
                add("qperf", f"LAT-{workload}", {"latency": 8e-6}, block=1, **network)
    add("ping", "LAT-ICMP", {"latency": 11e-6}, subsystem="network", block=56, concurrency=1)
    matrices = [
        *core_to_core(2, 1, 1, 2, 1, repetitions=repetitions),
        *numa(2, 1, repetitions=repetitions),
    ]
    return [*records, *matrices, *ladders(), *loaded(repetitions)]


DISTANCES = {
    "same-core": 9e-9, "same-cache": 23e-9, "same-node": 60e-9, "same-socket": 80e-9,
    "other-socket": 180e-9,
}  # fmt: skip


def core_to_core(*sizes, repetitions=3, slow=()):
    """Records of C2C: counts of sockets, nodes, caches, cores, threads; ``slow`` CPUs take three times."""
    places = list(itertools.product(*map(range, sizes)))
    records = []
    for repetition in range(repetitions):
        of = cell("rambench", "C2C", subsystem="memory", block=None, concurrency=len(places),
                  repetition=repetition)  # fmt: skip
        points = defaultdict(list)
        for (a, here), (b, there) in itertools.combinations(enumerate(places), 2):
            first = next(
                i for i, (one, other) in enumerate(zip(here, there, strict=True)) if one != other
            )
            name = list(DISTANCES)[::-1][first]
            factor = 3.0 if {a, b} & set(slow) else 1.0
            points[name].append([a, b, DISTANCES[name] * factor * (1 + 0.01 * repetition)])
        measured = [
            measurement(
                of, "core_to_core", statistics.median(point[2] for point in of_class), variant=name,
                details={"points": of_class, "order": list(range(len(places)))},
            )
            for name, of_class in points.items()
        ]  # fmt: skip
        records.append(record(of, measured))
    return records


PLACES = {"local": 1.0, "same-socket": 1.3, "other-socket": 2.0}


def numa(sockets, nodes, repetitions=3, slow=(-1, -1)):
    """Records of the matrices between NUMA nodes; the pair ``slow`` is three times slower."""
    metrics = {"NUMA-LAT": ("numa_latency", 9e-8), "NUMA-RS": ("numa_throughput", -4e10)}
    records = []
    for (workload, (metric, best)), repetition in itertools.product(
        [*metrics.items(), ("NUMA-WS", ("numa_throughput", -2e10))], range(repetitions)
    ):
        of = cell("rambench", workload, subsystem="memory", block=None,
                  concurrency=32 * sockets * nodes, repetition=repetition)  # fmt: skip
        points = defaultdict(list)
        for pair in itertools.product(range(sockets * nodes), repeat=2):
            core, memory = pair
            name = "local" if core == memory else "same-socket"
            name = name if core // nodes == memory // nodes else "other-socket"
            factor = PLACES[name] * (3 if pair == slow else 1) * (1 + 0.01 * repetition)
            points[name].append([*pair, best * factor if best > 0 else -best / factor])
        measured = [
            measurement(
                of, metric, statistics.median(point[2] for point in of_place), variant=name,
                details={"points": of_place, "order": None},
            )
            for name, of_place in points.items()
        ]  # fmt: skip
        records.append(record(of, measured))
    return records


def ladders():
    """Records of twelve real runs of latency and throughput, on small and on huge pages."""
    records = []
    for number, output in enumerate(json.loads((DATA / "ladders.json").read_text())["ladders"]):
        pages = "huge" if output["huge_pages"] else "small"
        place = {"subsystem": "memory", "variant": pages, "repetition": number // 4}
        of = cell("rambench", output["workload"], **place)
        parsed = REGISTRY["rambench"].parse(of, Completed((), 0, json.dumps(output), ""))
        records.append(record(of, msgspec.to_builtins(parsed.measurements)))
    return records


def loaded(repetitions):
    """Records of one real run of latency under load, of two mixes on two cores."""
    output = json.dumps(json.loads((DATA / "loaded.json").read_text()))
    records = []
    for repetition in range(repetitions):
        of = cell("rambench", "LOADED", subsystem="memory", concurrency=2, repetition=repetition)
        parsed = REGISTRY["rambench"].parse(of, Completed((), 0, output, ""))
        records.append(record(of, msgspec.to_builtins(parsed.measurements)))
    return records


def edited(name, folder, part, change, change_facts=None):
    """The frames of a golden campaign whose records in the folders ``cells/PART`` are edited by ``change``,
    and whose facts by ``change_facts``; it has no other records.
    """
    golden(name, folder, part)
    for pattern, edit in (("cells/**/*.json", change), ("machine/*.json", change_facts)):
        for path in folder.glob(pattern) if edit else ():
            data = json.loads(path.read_text(encoding="utf-8"))
            del data["sha256"]
            edit(data)
            _write_record(path, data)
    return build.judge(Results.read(folder))


def golden(name, folder, part=None):
    """Unpack a campaign of ``tests/unit/data/golden`` into ``folder``; with ``part``, of its cells
    those in the folders ``cells/PART``.
    """
    # Python 3.11.2 of Debian 12 knows no filters.
    with tarfile.open(DATA / "golden" / f"{name}.tar.xz") as packed:
        for member in filter(tarfile.TarInfo.isfile, packed.getmembers()):
            path = folder / member.name
            if part and member.name.startswith("cells/") and not path.parent.match(part):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed.extractfile(member).read())
    return folder


# -- GPUs


L2 = 50 << 20
"""Bytes of the L2 cache of an H100."""


def printed(of, values, clock=0.0, **more):
    """What gpubench prints of a cell, by the value of each GPU."""
    unit = {"LAUNCH": "s", "LADDER-LAT": "s"}.get(of.workload)
    is_copy = of.workload in ("RS", "WS", "RWS", "RWR", "LINK")
    unit = unit or ("B/s" if is_copy else "op/s")
    gpus = []
    for number, value in enumerate(values):
        pci = f"0000:00:{number + 6:02x}.0"
        gpus.append({"gpu": number, "pci": pci, "value": value, "clock_hz": clock, "seconds": 0.2})
    value = values[0] if unit == "s" else sum(values)
    return {
        "instrument": of.instrument, "version": "0.1.0", "workload": of.workload,
        "threads": len(values), "value": value, "unit": unit, "seconds": 0.2, "work": 0.2 * value,
        "work_unit": "any", "per_gpu": gpus, "isa": "", "clock_hz": clock,
        "checked": of.workload != "LAUNCH", "warnings": [],
    } | more  # fmt: skip


def gpu_runs(instrument, workload, values, *, context=None, host="node1", **more):
    """Six records of one row; ``more`` are fields of the cell, then keys of what gpubench prints."""
    place = {name: more.pop(name) for name in ("variant", "block", "concurrency") if name in more}
    place = {"variant": "", "block": None, "concurrency": 1} | place
    made = []
    for repetition, factor in enumerate((1.0, 0.999, 1.001, 0.9995, 1.0005, 1.0)):
        of = Cell(
            "gpu", instrument, workload, **place, node="any", repetition=repetition, options={}
        )
        text = json.dumps(printed(of, [factor * value for value in values], **more))
        parsed = REGISTRY[instrument].parse(of, Completed((), 0, text + "\n", ""))
        rows = []
        for row in parsed.measurements:
            changes = {"variant": row.variant, "block": row.block, "details": dict(row.details)}
            rows.append(measurement(of, row.metric, row.value, unit=row.unit, **changes))
        made.append(record(of, rows, host=host, context=context))
    return made


# -- many nodes


SLOW = {"node10": {"memory": 0.88}, "node3": {"cpu": 0.9}}
"""Node -> subsystem -> share of the others' rate."""


def node_facts(**changes):
    """Facts of a node; nodes of equal facts are of one class."""
    cpu = {"model_name": "one", "threads": 2}
    return {"cpu": cpu, "memory": {"total": 2**35}, "os": {"kernel": "6.1"}} | changes


def fleet_frames(folder, nodes, slow, n=6, **more):
    """The frames of a campaign, see ``write_fleet``."""
    return build.judge(Results.read(write_fleet(folder, nodes, slow, n, **more)))


def write_fleet(folder, nodes, slow, n=6, **more):
    """Four CPU rows and two memory rows on each node; the values of a node lie within one per cent
    of the others'.
    """
    records = []
    for number in range(1, nodes + 1):
        name = f"node{number}"
        by = slow.get(name, {})
        wobble = [1 + 0.002 * ((number * 7 + each * 3) % 5 - 2) for each in range(n)]
        for place, workload in enumerate(("QP", "HP", "SP", "DP")):
            values = [4e11 / 2**place * one * by.get("cpu", 1.0) for one in wobble]
            records += runs("cpubench", workload, *values, node=name, host=name)
        for workload in ("RS", "WS"):
            values = [1.5e10 * one * by.get("memory", 1.0) for one in wobble]
            records += runs("rambench", workload, *values, node=name, host=name)
    return write(folder, records, **more)


# -- presets that repeat published reports


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
    values = configuration.read([ROOT / "config" / "presets" / f"{name}.yaml"])
    return plan.make({**values, "tools_on": "nodes", **json.loads(changes)})


def planned_record(of, number):
    """A record with all the values that the cell's instrument would give, none of them measured."""
    if of.workload == "ALL":
        metrics = ("iops", "latency") if of.options.get("ops") else ("throughput",)
        every = itertools.product(("RS", "WS", "RR", "WR"), metrics)
        of_cell = partial(measurement, of, value=2e9 + number)
        return record(of, [of_cell(metric, workload=name) for name, metric in every])
    latency = of.workload.startswith("LAT")
    metrics = METRICS.get(of.subsystem, ["latency" if latency else "throughput"])
    return record(of, [measurement(of, metric, 1e9 + number) for metric in metrics])


def small_campaign(folder, name):
    """A campaign of every planned cell of a preset, one repetition each, of listed runs three."""
    kept = 3 if name == "disk-patterns-2020" else 1
    cells = [of for of in planned(name).cells if of.repetition < kept]
    records = [planned_record(of, number) for number, of in enumerate(cells)]
    return write(folder / name, records, config=planned(name).to_json()["config"])
