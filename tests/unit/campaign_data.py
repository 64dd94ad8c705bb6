"""A campaign folder made of small record files. Nothing here is measured."""

import itertools
import json
import math
import statistics
import tarfile
from collections import defaultdict
from pathlib import Path

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.rows import build, schema
from peakmark.storage.records import text_of
from peakmark.storage.results import Results
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed
from peakmark.views import layout_tables
from peakmark.views.table import csv
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
            "cpus": list(range(of.concurrency)), "load_before": 0.1, "load_after": 0.9,
            "peakmark": "0.1.0",
        }
        | dict(context or {}),
        "warnings": list(warnings),
        "raw": {"0.stdout": "0" * 64},
    }  # fmt: skip


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


def placed(cores, of):
    """Context of a run whose threads had ``cores`` of the ``of`` cores of a node, all its job's."""
    cpus = list(range(cores))
    return {
        "placed": {
            "word": "", "threads": cores, "placement": "compact", "cpus": cpus, "cores": cores,
            "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20,
        },
        "allowed": {
            "cpus": list(range(of)), "cores": of, "cpu_quota": None, "memory_bytes": 1 << 38,
            "memory_limited_by": None, "memory_nodes": None, "node_cores": of,
        },
    }  # fmt: skip


def frames(folder, records, **more):
    """The frames of a campaign written below ``folder``; ``more`` as for ``write``."""
    return build.judge(Results.read(write(folder, records, **more)))


def tables(campaign):
    """The frames of a campaign, by its folder, with its tables written."""
    judged = build.load(campaign)
    write_tables(judged, campaign / "tables")
    return judged


def layout_frame(judged, layout_table):
    """The CSV file of a layout table as a frame."""
    rows = judged.rows[judged.rows["table"].eq(layout_table.table.name)]
    points = layout_tables.lines_of(layout_table, rows)
    return csv(layout_tables.columns_of(judged, layout_table, points))


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
        _write_record(directory / "cells" / f"{Cell.from_json(entry['cell']).id}.json", entry)
    for number, entry in enumerate(attempts):
        name = f"{Cell.from_json(entry['cell']).id}.{number}.json"
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
        records.append(record(of, [vars(one) for one in parsed.measurements]))
    return records


def loaded(repetitions):
    """Records of one real run of latency under load, of two mixes on two cores."""
    output = json.dumps(json.loads((DATA / "loaded.json").read_text()))
    records = []
    for repetition in range(repetitions):
        of = cell("rambench", "LOADED", subsystem="memory", concurrency=2, repetition=repetition)
        parsed = REGISTRY["rambench"].parse(of, Completed((), 0, output, ""))
        records.append(record(of, [vars(one) for one in parsed.measurements]))
    return records


def edited(name, folder, part, change):
    """The records below ``cells/PART`` of a real campaign (see ``golden``), edited by ``change``."""
    for path in golden(name, folder).glob("cells/**/*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        if f"/cells/{part}/" in path.as_posix():
            del data["sha256"]
            change(data)
            _write_record(path, data)
    return build.judge(Results.read(folder))


def golden(name, folder):
    """Unpack the records of a real campaign (``tests/unit/data/golden``) into ``folder``."""
    unpack(DATA / "golden" / f"{name}.tar.xz", folder)
    return folder


def unpack(archive, folder):
    """Unpack the files of an archive: Python 3.11.2 of Debian 12 knows no filters."""
    with tarfile.open(archive) as packed:
        for member in filter(tarfile.TarInfo.isfile, packed.getmembers()):
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed.extractfile(member).read())
