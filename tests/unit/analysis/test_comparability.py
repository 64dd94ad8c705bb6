"""What two sides did not have alike is said, and rows that it changes get no verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.analysis import compare, datasets
from peakmark.catalogue import KERNELS
from peakmark.cell import Cell

STEADY = [1.00, 1.01, 0.99, 1.02, 0.98, 1.005]


def changed(
    folder: Path,
    isa: str = "auto",
    loopback: bool = True,
    model: str = "CPU one",
    factor: float = 1.0,
) -> Path:
    """Two rows, of which one depends on the instruction set and one on the link; a CPU of its own."""
    context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
    records = [
        *make.runs("cpubench", "DP", *(1e10 * factor * value for value in STEADY), isa=isa),
        *make.runs("netbench", "TCP", *(1e9 * factor * value for value in STEADY), context=context),
    ]
    return make.write(folder, records, facts={"host": "node1", "cpu": {"model_name": model}})


def test_what_was_not_asked_alike_is_not_judged(tmp_path: Path) -> None:
    before = datasets.read(str(changed(tmp_path / "a")))
    after = datasets.read(str(changed(tmp_path / "b", "scalar", False, factor=0.5)))
    text, counts = compare.report(before, after)
    assert counts == {"not alike": 2}
    first = text.splitlines()[0]
    assert "B has scalar" in first
    assert "loopback, B has interface eth1" in first


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
    workload = {"cpu": "DP", "network": "TCP"}.get(subsystem, "RS")
    both = []
    for name, asked, factor in zip("ab", values, (1.0, 0.5), strict=True):
        every = [1e9 * factor * value for value in STEADY]
        records = make.runs(KERNELS[subsystem], workload, *every, **{option: asked})
        both.append(datasets.read(str(make.write(tmp_path / name, records))))
    text, counts = compare.report(*both)
    assert counts == {"not alike": 1}
    assert said in text.splitlines()[0]


def test_another_cpu_is_said_first_and_judged(tmp_path: Path) -> None:
    before = datasets.read(str(changed(tmp_path / "a")))
    after = datasets.read(str(changed(tmp_path / "b", model="CPU two", factor=0.5)))
    text, counts = compare.report(before, after)
    assert counts["worse"] == 2
    assert "CPU one, B has CPU two" in text.splitlines()[0]
    assert "A has" not in compare.report(before, before)[0]


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
    assert ("6.1.0-2 on b" in compare.report(before, after)[0]) == (verdict == "not alike")


def said(comparison: compare.Comparison) -> str:
    """What was asked otherwise, as the report says it."""
    return "; ".join(map(str, comparison.differ))


def _against_the_first_report(
    folder: Path, instrument: str, workload: str, value: float, **options: str
) -> compare.Comparison:
    records = make.runs(instrument, workload, *[value] * 6, **options)
    side = datasets.read(str(make.write(folder, records)))
    ((found), *_), _, _ = compare.compare(datasets.read("four-subsystems-2018-hyperion"), side)
    assert found.point.workload == workload
    return found


def test_operations_of_another_kind_than_the_published_ones_are_not_judged(tmp_path: Path) -> None:
    for isa, verdict in (("auto", "not alike"), ("scalar", "cannot tell")):
        found = _against_the_first_report(tmp_path / isa, "cpubench", "DP", 1.7e11, isa=isa)
        assert found.verdict == verdict
        assert ("B has auto" in said(found)) == (isa == "auto")


def test_copies_are_compared_as_they_are_counted_here(tmp_path: Path) -> None:
    for store, verdict in (("libc", "cannot tell"), ("temporal", "not alike")):
        found = _against_the_first_report(
            tmp_path / store, "rambench", "RWS", 2 * 3.973819e9, store=store
        )
        assert found.judged.ratio == pytest.approx(1.0) and found.verdict == verdict


def test_writes_are_compared_as_they_reached_the_disk(tmp_path: Path) -> None:
    for options in ({"sync": "each", "fill": "new"}, {}):
        folder = tmp_path / str(len(options))
        found = _against_the_first_report(folder, "diskbench", "WS", 5e7, **options)
        settings = {"O_DIRECT"} if options else {"O_DIRECT", "sync", "fill"}
        assert found.verdict == "not alike"
        assert {one.partition(":")[0] for one in said(found).split("; ")} == settings


def test_campaigns_that_write_otherwise_are_not_alike_though_one_did_not_ask(
    tmp_path: Path,
) -> None:
    for name, options in (("a", {}), ("b", {"sync": "each"})):
        records = []
        for workload in ("WR", "RR"):
            records += make.runs(
                "diskbench", workload, *[1e4] * 6, metric="iops", block=4096, **options
            )
        make.write(tmp_path / name, records)
    sides = [datasets.read(str(tmp_path / name)) for name in "ab"]
    found, _, _ = compare.compare(*sides)
    (different,) = [one for one in found if one.verdict == "not alike"]
    assert different.point.workload == "WR" and said(different).startswith("sync: A has end")
