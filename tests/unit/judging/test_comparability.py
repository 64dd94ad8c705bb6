"""What two sides did not have alike is said, and rows that it changes get no verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.cell import Cell
from peakmark.judging import compare, compare_text, datasets

STEADY = [1.00, 1.01, 0.99, 1.02, 0.98, 1.005]


def changed(
    folder: Path,
    isa: str = "auto",
    loopback: bool = True,
    model: str = "CPU one",
    factor: float = 1.0,
) -> Path:
    """Two rows, of which one depends on the instruction set and one on the link; a CPU of its own."""
    records = []
    for number, value in enumerate(STEADY):
        of = make.cell("cpubench", "DP", subsystem="cpu", repetition=number, isa=isa)
        records.append(make.record(of, [make.measurement(of, "rate", 1e10 * factor * value)]))
        of = make.cell("netbench", "TCP", subsystem="network", block=1024, repetition=number)
        context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
        records.append(
            make.record(
                of, [make.measurement(of, "throughput", 1e9 * factor * value)], context=context
            )
        )
    return make.write(folder, records, facts={"host": "node1", "cpu": {"model_name": model}})


def test_what_was_not_asked_alike_is_not_judged(tmp_path: Path) -> None:
    before = datasets.read(str(changed(tmp_path / "a")))
    after = datasets.read(str(changed(tmp_path / "b", "scalar", False, factor=0.5)))
    text, counts = compare_text.report(before, after)
    assert counts == {"not alike": 2}
    first = text.splitlines()[0]
    assert "A has auto, B has scalar" in first
    assert "A has loopback, B has interface eth1" in first


@pytest.mark.parametrize(
    ("subsystem", "option", "values", "said"),
    [
        ("memory", "pool", (1 << 28, 1 << 30), "pool: A has 256 MiB, B has 1 GiB"),
        ("disk", "size", (1 << 26, 1 << 28), "file size: A has 64 MiB, B has 256 MiB"),
        ("disk", "engine", ("psync", "io_uring"), "engine: A has psync, B has io_uring"),
        ("disk", "depth", (1, 8), "queue depth: A has 1, B has 8"),
        ("cpu", "placement", ("compact", "scatter"), "placement: A has compact, B has scatter"),
        ("memory", "huge_pages", ("try", "never"), "huge pages: A has try, B has never"),
        ("network", "interface", ("eth0", "eth1"), "interface: A has eth0, B has eth1"),
    ],
)
def test_each_choice_that_changes_what_is_measured_is_said(
    tmp_path: Path, subsystem: str, option: str, values: tuple[int | str, int | str], said: str
) -> None:
    instrument, workload, metric, variant, block = {
        "cpu": ("cpubench", "DP", "rate", "", None), "memory": ("rambench", "RS", "throughput", "pool", 1 << 20),
        "disk": ("diskbench", "RS", "throughput", "psync", 1 << 20),
        "network": ("netbench", "TCP", "throughput", "", 1024),
    }[subsystem]  # fmt: skip
    both = []
    for name, asked, factor in zip("ab", values, (1.0, 0.5), strict=True):
        records = []
        for number, value in enumerate(STEADY):
            of = make.cell(
                instrument,
                workload,
                subsystem=subsystem,
                variant=variant,
                block=block,
                repetition=number,
                **{option: asked},
            )
            records.append(make.record(of, [make.measurement(of, metric, 1e9 * factor * value)]))
        both.append(datasets.read(str(make.write(tmp_path / name, records))))
    text, counts = compare_text.report(*both)
    assert counts == {"not alike": 1}
    assert said in text.splitlines()[0]


def test_another_cpu_is_said_first_and_judged(tmp_path: Path) -> None:
    before = datasets.read(str(changed(tmp_path / "a")))
    after = datasets.read(str(changed(tmp_path / "b", model="CPU two", factor=0.5)))
    text, counts = compare_text.report(before, after)
    assert counts["worse"] == 2
    assert "CPU: A has CPU one, B has CPU two" in text.splitlines()[0]
    assert "A has" not in compare_text.report(before, before)[0]


def of_words(
    folder: Path,
    asked: dict[str | int, float],
    hosts: str = "a",
    kernels: Mapping[str, str] | None = None,
) -> Path:
    """DP rows by what was asked for; a word means two threads. ``kernels``: host -> release, of
    hosts with facts.
    """
    records = []
    for word, value in asked.items():
        for number, wobble in enumerate(STEADY):
            data = make.cell("cpubench", "DP", subsystem="cpu", repetition=number).to_json() | {
                "concurrency": word
            }
            of = Cell.from_json(data)
            measured = make.measurement(of, "rate", value * wobble, concurrency=2)
            context = {"placed": {"word": word, "threads": 2, "cpus": [0, 1], "cores": 2, "sockets": 1, "numa_nodes": [0],
                                  "last_level_bytes": 0, "placement": "compact"}} if isinstance(word, str) else {}  # fmt: skip
            records.append(
                make.record(of, [measured], context=context, host=hosts[number % len(hosts)])
            )
    make.write(folder, records)
    (folder / "machine").mkdir(exist_ok=True)
    for host, kernel in (kernels or {}).items():
        facts = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
        facts |= {"host": host, "os": facts["os"] | {"kernel": kernel}}
        (folder / "machine" / f"{host}.json").write_text(json.dumps(facts))
    return folder


def test_a_word_and_the_number_that_it_meant_are_two_rows(tmp_path: Path) -> None:
    before = datasets.read(str(of_words(tmp_path / "a", {2: 1e9, "cores": 2e9})))
    after = datasets.read(str(of_words(tmp_path / "b", {2: 1e9, "cores": 1e9})))
    found, _, _ = compare.compare(before, after)
    assert [(datasets.describe(one.point), one.verdict) for one in found] == [
        ("cpu cpubench DP x2", "no difference shown"), ("cpu cpubench DP xcores", "worse"),
    ]  # fmt: skip
    only, first, second = compare.compare(
        before, datasets.read(str(of_words(tmp_path / "c", {2: 1e9})))
    )
    assert (len(only), first, second) == (1, 1, 0)


def test_a_word_that_meant_another_number_is_not_alike(tmp_path: Path) -> None:
    before = datasets.read(str(of_words(tmp_path / "a", {"cores": 1e9})))
    ((point, entry),) = before.entries.items()
    other = replace(entry, settings={**entry.settings, "threads of cores": "4"})
    ((found,), _, _) = compare.compare(before, replace(before, entries={point: other}))
    assert found.verdict == "not alike" and "A has 2, B has 4" in said(found)


def test_a_published_row_of_a_number_meets_the_word_only_where_no_number_is(tmp_path: Path) -> None:
    published_side = replace(datasets.read("disk-patterns-2020"), entries={
        datasets.ComparedPoint("cpu", "cpubench", "DP", "", 0, 2, ""): datasets.DatasetRow((1e9, 1e9, 1e9, 1e9)),
    })  # fmt: skip
    both = datasets.read(str(of_words(tmp_path / "a", {2: 1e9, "cores": 2e9})))
    ((found,), _, _) = compare.compare(published_side, both)
    assert statistics.median(found.after) == pytest.approx(1e9, rel=0.01)
    word = datasets.read(str(of_words(tmp_path / "b", {"cores": 2e9})))
    ((found,), _, _) = compare.compare(published_side, word)
    assert statistics.median(found.after) == pytest.approx(2e9, rel=0.01)


@pytest.mark.parametrize(("kernel", "verdict"), [("6.1.0-1", "better"), ("6.1.0-2", "not alike")])
def test_only_a_row_that_mixes_unequal_nodes_gets_no_verdict(
    tmp_path: Path, kernel: str, verdict: str
) -> None:
    before = datasets.read(str(of_words(tmp_path / "a", {2: 1e9})))
    kernels = {"a": "6.1.0-1", "b": kernel}
    after = datasets.read(str(of_words(tmp_path / "b", {2: 2e9}, hosts="ab", kernels=kernels)))
    ((found,), _, _) = compare.compare(before, after)
    assert found.verdict == verdict
    assert ("6.1.0-2 on b" in compare_text.report(before, after)[0]) == (verdict == "not alike")


def said(comparison: compare.Comparison) -> str:
    """What was asked otherwise, as the report says it."""
    return "; ".join(map(str, comparison.differ))


def _against_the_first_report(
    folder: Path, cells: list[Cell], metric: str, value: float
) -> dict[str, compare.Comparison]:
    records = [make.record(of, [make.measurement(of, metric, value)]) for of in cells]
    side = datasets.read(str(make.write(folder, records)))
    found, _, _ = compare.compare(datasets.read("four-subsystems-2018-hyperion"), side)
    return {one.point.workload: one for one in found}


def test_operations_of_another_kind_than_the_published_ones_are_not_judged(tmp_path: Path) -> None:
    for isa, verdict in (("auto", "not alike"), ("scalar", "cannot tell")):
        cells = [
            make.cell("cpubench", "DP", subsystem="cpu", repetition=number, isa=isa)
            for number in range(6)
        ]
        found = _against_the_first_report(tmp_path / isa, cells, "rate", 1.7e11)["DP"]
        assert found.verdict == verdict
        assert ("A has scalar, B has auto" in said(found)) == (isa == "auto")


def test_copies_are_compared_as_they_are_counted_here(tmp_path: Path) -> None:
    place = {"subsystem": "memory", "variant": "pool", "block": 1 << 20}
    for store, verdict in (("libc", "cannot tell"), ("temporal", "not alike")):
        cells = [
            make.cell("rambench", "RWS", **place, repetition=number, store=store)
            for number in range(6)
        ]
        found = _against_the_first_report(tmp_path / store, cells, "throughput", 2 * 3.973819e9)[
            "RWS"
        ]
        assert found.judged.ratio == pytest.approx(1.0) and found.verdict == verdict


def test_writes_are_compared_as_they_reached_the_disk(tmp_path: Path) -> None:
    place = {"subsystem": "disk", "variant": "psync", "block": 1 << 20}
    asked = {"sync": "each", "fill": "new"}
    for name, options in (("as-theirs", asked), ("as-ours", {})):
        cells = [
            make.cell("diskbench", "WS", **place, repetition=number, **options)
            for number in range(6)
        ]
        found = _against_the_first_report(tmp_path / name, cells, "throughput", 5e7)["WS"]
        settings = {"O_DIRECT"} if options else {"O_DIRECT", "sync", "fill"}
        assert found.verdict == "not alike"
        assert {one.partition(":")[0] for one in said(found).split("; ")} == settings


def test_campaigns_that_write_otherwise_are_not_alike_though_one_did_not_ask(
    tmp_path: Path,
) -> None:
    for name, options in (("a", {}), ("b", {"sync": "each"})):
        cells = [
            make.cell(
                "diskbench",
                workload,
                subsystem="disk",
                variant="psync",
                block=4096,
                repetition=number,
                **options,
            )
            for workload in ("WR", "RR")
            for number in range(6)
        ]
        make.write(
            tmp_path / name, [make.record(of, [make.measurement(of, "iops", 1e4)]) for of in cells]
        )
    found, _, _ = compare.compare(
        datasets.read(str(tmp_path / "a")), datasets.read(str(tmp_path / "b"))
    )
    (different,) = [one for one in found if one.verdict == "not alike"]
    assert different.point.workload == "WR" and said(different).startswith("sync: A has end")
