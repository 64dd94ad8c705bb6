"""Comparing: the verdict says what the values carry, and no more."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import cli, statistics
from peakmark.cell import Cell
from peakmark.config import published
from peakmark.errors import ConfigError
from peakmark.judging import chance, compare, compare_text, rows, sides
from peakmark.storage.results import Results

STEADY = [1.00, 1.01, 0.99, 1.02, 0.98, 1.005]


def campaign(folder: Path, factor: float = 1.0, repetitions: int = 6, node: str = "any", limited: bool = False) -> Path:
    """A disk, its throughput and latency, ``factor`` times as fast; ``limited`` by a cgroup at what it reads."""
    context = {"io_limits": {"read_bps": int(4e8 * factor)}} if limited else {}
    records = []
    for number in range(repetitions):
        of = make.cell(
            "diskbench", "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number, node=node
        )
        records.append(
            make.record(of, [make.measurement(of, "throughput", 4e8 * factor * STEADY[number])], context=context)
        )
        of = make.cell("diskbench", "RR", subsystem="disk", variant="psync", block=4096, repetition=number, node=node)
        values = {"iops": 1e4 * factor * STEADY[number], "latency": 1e-4 / factor * STEADY[number]}
        records.append(make.record(of, [make.measurement(of, metric, value) for metric, value in values.items()]))
    return make.write(folder, records)


@pytest.mark.parametrize(
    ("after", "lower_is_better", "verdict"),
    [
        (1.2, False, "better"),
        (0.8, False, "worse"),
        (1.2, True, "worse"),
        (0.8, True, "better"),
        (1.0, False, "no difference shown"),
        (1.002, True, "no difference shown"),
    ],
)
def test_the_verdict_follows_the_interval_and_the_direction(after: float, lower_is_better: bool, verdict: str) -> None:
    found = compare.judge(STEADY, [after * value for value in STEADY], lower_is_better)
    assert found[0] == pytest.approx(after)
    assert found[1] <= found[0] <= found[2]
    assert found[3] == verdict


def test_too_few_values_cannot_tell_however_far_apart() -> None:
    ratio, _, _, verdict, reason = compare.judge([1.0, 1.0, 1.0], [9.0, 9.0, 9.0], False)
    assert (ratio, verdict) == (9.0, "cannot tell")
    assert "3 and 3" in reason
    assert compare.judge([1.0, 1.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0], False)[3] == "better"


def test_what_can_differ_is_counted_not_assumed() -> None:
    assert not statistics.can_differ(3, 3)  # 2 / 20
    assert statistics.can_differ(4, 4)  # 2 / 70
    assert statistics.can_differ(3, 6)  # 2 / 84
    assert not statistics.can_differ(1, 30)  # 2 / 31
    assert not statistics.can_differ(4, 4, 0.99)
    assert not statistics.can_differ(0, 5)


def test_a_tolerance_keeps_small_differences_from_a_verdict() -> None:
    slower = [0.96 * value for value in [1.0, 1.001, 0.999, 1.002, 0.998, 1.0]]
    steady = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0]
    assert compare.judge(steady, slower, False)[3] == "worse"
    assert compare.judge(steady, slower, False, tolerance=0.05)[3] == "no difference shown"


@pytest.mark.parametrize(("factor", "verdict"), [(0.98, "no difference shown"), (0.96, "worse"), (1.04, "better")])
def test_less_than_three_per_cent_gets_no_verdict_unless_it_is_asked_for(factor: float, verdict: str) -> None:
    point = sides.Point("cpu", "cpubench", "DP", "", 0, 1, "node1")
    steady = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)
    before, after = (sides.Side("s", {point: tuple(by * one for one in steady)}, False) for by in (1.0, factor))
    (found,), _, _ = compare.compare(before, after)
    assert found.verdict == verdict
    (found,), _, _ = compare.compare(before, after, tolerance=0.0)
    assert found.verdict == ("better" if factor > 1 else "worse")


def test_the_interval_is_the_same_each_time_and_widens_with_the_spread() -> None:
    wide = [1.0, 1.5, 0.6, 1.2, 0.8, 1.1]
    assert statistics.ratio_interval(STEADY, wide) == statistics.ratio_interval(STEADY, wide)
    narrow = statistics.ratio_interval(STEADY, STEADY)
    _, low, high = statistics.ratio_interval(STEADY, wide)
    assert high - low > 2 * (narrow[2] - narrow[1])


def test_the_interval_of_equal_machines_mostly_holds_one() -> None:
    import numpy as np

    random = np.random.default_rng(7)
    inside = 0
    for _ in range(200):
        _, low, high = statistics.ratio_interval(random.normal(1, 0.05, 8), random.normal(1, 0.05, 8), rounds=400)
        inside += low <= 1 <= high
    assert inside >= 180


def test_two_campaigns_row_by_row(tmp_path: Path) -> None:
    before = sides.read(str(campaign(tmp_path / "a")))
    after = sides.read(str(campaign(tmp_path / "b", 0.5)))
    found, only_before, only_after = compare.compare(before, after)
    assert [(one.point.table, one.verdict) for one in found] == [
        ("disk_throughput", "worse"),
        ("disk_latency", "worse"),
        ("disk_iops", "worse"),
    ]
    assert found[1].ratio == pytest.approx(2.0)
    assert (only_before, only_after) == (0, 0)
    text, counts = compare_text.report(before, after)
    assert counts["worse"] == 3
    assert "0 better; 3 worse" in text
    assert "chance alone" in text


def test_a_verdict_on_a_doubtful_row_says_so(tmp_path: Path) -> None:
    before = sides.read(str(campaign(tmp_path / "a")))
    after = sides.read(str(campaign(tmp_path / "b", 0.5, limited=True)))
    found, _, _ = compare.compare(before, after)
    assert [one.doubtful for one in found] == ["wrong: B", "", ""]
    text, _ = compare_text.report(before, after)
    assert "worse (wrong: B)" in text
    assert "1 row is wrong or unsure" in text
    assert "unsure" not in compare_text.report(before, before)[0]


def test_a_published_set_may_be_either_side(tmp_path: Path) -> None:
    mine = sides.read(str(campaign(tmp_path / "mine")))
    theirs = sides.read("disk-patterns-2020")
    (throughput, iops), _, _ = compare.compare(theirs, mine)
    assert throughput.before == (393e6, 403e6, 398e6)
    assert throughput.verdict == "no difference shown"  # three runs against six, at nearly the same speed
    assert iops.before == (6408.0,)
    assert iops.verdict == "cannot tell"
    assert iops.ratio == pytest.approx(1e4 * statistics.median(STEADY) / 6408)
    (back, _), _, _ = compare.compare(mine, theirs)
    assert back.ratio == pytest.approx(1 / throughput.ratio)


def test_a_copied_file_is_a_published_set_too(tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    shutil.copyfile(published.FOLDER / "file-io-lab.csv", copy)
    found, only_before, only_after = compare.compare(sides.read(str(copy)), sides.read("file-io-lab"))
    assert {one.ratio for one in found} == {1.0}
    assert (only_before, only_after) == (0, 0)


def test_a_campaign_of_two_nodes_is_not_laid_on_a_published_row(tmp_path: Path) -> None:
    records = []
    for node in ("n1", "n2"):
        of = make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=1 << 20, node=node)
        records.append(make.record(of, [make.measurement(of, "throughput", 4e8)], host=node))
    side = sides.read(str(make.write(tmp_path / "c", records)))
    with pytest.raises(ConfigError, match="several nodes"):
        compare.compare(sides.read("disk-patterns-2020"), side)


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    side = sides.read(str(make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 1e9)])])))
    with pytest.raises(ConfigError, match="no row in common"):
        compare_text.report(side, sides.read("disk-patterns-2020"))


def test_exit_codes_are_fit_for_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, slower = str(campaign(tmp_path / "a")), str(campaign(tmp_path / "b", 0.9))
    assert cli.main(["compare", a, a, "--fail-on", "worse"]) == 0
    assert cli.main(["compare", a, slower]) == 0
    assert cli.main(["compare", a, slower, "--fail-on", "worse"]) == 1
    assert cli.main(["compare", slower, a, "--fail-on", "worse"]) == 0
    assert cli.main(["compare", a, slower, "--fail-on", "worse", "--tolerance", "0.2"]) == 0
    capsys.readouterr()
    assert cli.main(["compare", a, str(tmp_path / "nothing")]) == 2
    assert "neither the folder of a campaign" in capsys.readouterr().err


def changed(
    folder: Path, isa: str = "auto", loopback: bool = True, model: str = "CPU one", factor: float = 1.0
) -> Path:
    """Two rows, of which one depends on the instruction set and one on the link; a CPU of its own."""
    records = []
    for number, value in enumerate(STEADY):
        of = make.cell("cpubench", "DP", subsystem="cpu", repetition=number, isa=isa)
        records.append(make.record(of, [make.measurement(of, "rate", 1e10 * factor * value)]))
        of = make.cell("netbench", "TCP", subsystem="network", block=1024, repetition=number)
        context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9 * factor * value)], context=context))
    return make.write(folder, records, facts={"host": "node1", "cpu": {"model_name": model}})


def test_what_was_not_asked_alike_is_not_judged(tmp_path: Path) -> None:
    before = sides.read(str(changed(tmp_path / "a")))
    after = sides.read(str(changed(tmp_path / "b", "scalar", False, factor=0.5)))
    text, counts = compare_text.report(before, after)
    assert counts == {"not alike": 2}
    first = text.splitlines()[0]
    assert "instruction set: A has auto, B has scalar" in first
    assert "link: A has loopback, B has interface eth1" in first


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
        both.append(sides.read(str(make.write(tmp_path / name, records))))
    text, counts = compare_text.report(*both)
    assert counts == {"not alike": 1}
    assert said in text.splitlines()[0]


def test_another_cpu_is_said_first_and_judged(tmp_path: Path) -> None:
    before = sides.read(str(changed(tmp_path / "a")))
    after = sides.read(str(changed(tmp_path / "b", model="CPU two", factor=0.5)))
    text, counts = compare_text.report(before, after)
    assert counts["worse"] == 2
    assert text.startswith("not the same on both sides: CPU: A has CPU one, B has CPU two")
    assert not compare_text.report(before, before)[0].startswith("not the same")


def test_nodes_of_other_names_are_compared_where_each_side_has_one(tmp_path: Path) -> None:
    before = sides.read(str(campaign(tmp_path / "a", node="n1")))
    after = sides.read(str(campaign(tmp_path / "b", 0.5, node="other")))
    text, counts = compare_text.report(before, after)
    assert counts["worse"] == 3
    assert text.startswith("not the same on both sides: node: A has n1, B has other")


def many(folder: Path, seed: int, rows: int = 40, slow: tuple[int, ...] = ()) -> Path:
    """``rows`` rows of six noisy values of one machine; those in ``slow`` at four fifths of the rate."""
    import numpy as np

    random = np.random.default_rng(seed)
    records = []
    for row in range(rows):
        for number in range(6):
            of = make.cell(
                "diskbench", "RS", subsystem="disk", variant="psync", block=4096 * (row + 1), repetition=number
            )
            value = 4e8 * random.lognormal(0, 0.02) * (0.8 if row in slow else 1.0)
            records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    return make.write(folder, records)


def test_of_many_unchanged_rows_none_is_called_worse_and_one_changed_row_is(tmp_path: Path) -> None:
    before = sides.read(str(many(tmp_path / "a", 1)))
    for seed in (2, 3, 4):
        found, _, _ = compare.compare(before, sides.read(str(many(tmp_path / f"b{seed}", seed))), tolerance=0.0)
        assert not [one for one in found if one.verdict in compare.CLAIMS]
    found, _, _ = compare.compare(before, sides.read(str(many(tmp_path / "c", 5, slow=(7,)))))
    assert [one.point.block for one in found if one.verdict == "worse"] == [8 * 4096]


def test_a_repeat_shows_how_far_rows_drift(tmp_path: Path) -> None:
    before = sides.read(str(campaign(tmp_path / "a")))
    after = sides.read(str(campaign(tmp_path / "b", 0.9)))
    repeat = sides.read(str(campaign(tmp_path / "a2", 0.85)))
    assert compare_text.report(before, after)[1]["worse"] == 3
    assert compare_text.report(before, after, repeat=repeat)[1]["worse"] == 0


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [(0.0, 5, 1.0), (2.228, 10, 0.05), (12.706, 1, 0.05), (3.169, 10, 0.01), (1.96, 1e6, 0.05), (2.0, 4.5, 0.1082)],
)
def test_students_p_is_that_of_the_tables(t: float, freedom: float, p: float) -> None:
    assert chance.student(t, freedom) == pytest.approx(p, rel=0.01)


def test_the_quantile_is_where_the_p_is() -> None:
    assert chance.quantile(0.05, 2) == pytest.approx(4.303, rel=1e-3)
    assert chance.quantile(0.01, 10) == pytest.approx(3.169, rel=1e-3)


def test_a_machine_that_moves_while_it_is_measured_gets_a_wider_tolerance() -> None:
    still = sides.Side("still", {}, False, drift={"cpu": 0.001, "disk_throughput": -0.001})
    moving = sides.Side("moving", {}, False, drift={"cpu": 0.05, "disk_throughput": -0.04})
    assert compare.drifts(still, still, 0.05) < 0.01
    assert 0.1 < compare.drifts(moving, still, 0.05) < 0.3
    assert compare.drifts(sides.Side("a", {}, True), sides.Side("b", {}, True), 0.05) == 0


@pytest.mark.parametrize(("moved", "verdict"), [(0.001, "worse"), (0.05, "no difference shown")])
def test_what_a_machine_moves_by_itself_gets_no_verdict(moved: float, verdict: str) -> None:
    point = sides.Point("cpu", "cpubench", "DP", "", 0, 1, "node1")
    drift = {"cpu": moved, "memory_throughput": -moved, "disk_throughput": moved}
    steady = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)
    before, after = (
        sides.Side("s", {point: tuple(by * one for one in steady)}, False, drift=drift) for by in (1.0, 0.9)
    )
    (found,), _, _ = compare.compare(before, after)
    assert found.verdict == verdict


def test_discoveries_are_those_of_benjamini_and_hochberg() -> None:
    # The example of their paper: fifteen p values, of which four stand at 5 %.
    chances = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
               0.7590, 1.0]  # fmt: skip
    assert sum(chance.discoveries(chances, 0.05)) == 4
    assert chance.discoveries([], 0.05) == []
    assert chance.discoveries([0.06], 0.05) == [False]


def test_two_sizes_of_one_published_row_are_one_row(tmp_path: Path) -> None:
    records = []
    for block, value in ((1 << 20, 4e8), (10**6, 3e8)):
        of = make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=block)
        records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    side = sides.read(str(make.write(tmp_path / "c", records)))
    (found, *_), _, _ = compare.compare(sides.read("disk-patterns-2020"), side)
    assert found.after == (4e8,)


def test_what_a_published_set_notes_on_its_values_is_told(tmp_path: Path) -> None:
    records = []
    for number, value in enumerate(STEADY):
        of = make.cell("netbench", "TCP", subsystem="network", block=1024, repetition=number)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9 * value)]))
    mine = sides.read(str(make.write(tmp_path / "c", records)))
    name = "four-subsystems-2018-prometheus"
    for both, side in (((sides.read(name), mine), "A"), ((mine, sides.read(name)), "B")):
        text = compare_text.report(*both)[0]
        assert f"[1] {side} notes on 1 row: over loopback; no network was measured" in text
        assert next(line for line in text.splitlines() if "netbench TCP" in line).endswith(" [1]")
    folder = make.write(tmp_path / "d", records, config={"report": {"published": [name]}})
    (row,) = rows.build(Results.read(folder))["network_throughput"]
    assert f"{name} (published): over loopback; no network was measured" in row.said(row.remarks)
    assert row.level is None


def of_words(folder: Path, asked: dict[str | int, float], hosts: str = "a") -> Path:
    """DP rows by what was asked for; a word means two threads."""
    records = []
    for word, value in asked.items():
        for number, wobble in enumerate(STEADY):
            data = make.cell("cpubench", "DP", subsystem="cpu", repetition=number).to_json() | {"concurrency": word}
            of = Cell.from_json(data)
            measured = make.measurement(of, "rate", value * wobble, concurrency=2)
            context = {"placed": {"word": word, "threads": 2, "cpus": [0, 1], "cores": 2, "sockets": 1, "numa_nodes": [0],
                                  "last_level_bytes": 0, "placement": "compact"}} if isinstance(word, str) else {}  # fmt: skip
            records.append(make.record(of, [measured], context=context, host=hosts[number % len(hosts)]))
    return make.write(folder, records)


def test_a_word_and_the_number_that_it_meant_are_two_rows(tmp_path: Path) -> None:
    before = sides.read(str(of_words(tmp_path / "a", {2: 1e9, "cores": 2e9})))
    after = sides.read(str(of_words(tmp_path / "b", {2: 1e9, "cores": 1e9})))
    found, _, _ = compare.compare(before, after)
    assert [(sides.describe(one.point), one.verdict) for one in found] == [
        ("cpu cpubench DP x2", "no difference shown"), ("cpu cpubench DP xcores", "worse"),
    ]  # fmt: skip
    only, first, second = compare.compare(before, sides.read(str(of_words(tmp_path / "c", {2: 1e9}))))
    assert (len(only), first, second) == (1, 1, 0)


def test_a_word_that_meant_another_number_is_not_alike(tmp_path: Path) -> None:
    before = sides.read(str(of_words(tmp_path / "a", {"cores": 1e9})))
    (point,) = before.values
    terms = {point: {**before.terms[point], "threads of cores": "4"}}
    ((found,), _, _) = compare.compare(before, replace(before, terms=terms))
    assert (found.verdict, found.reason) == ("not alike", "threads of cores: A has 2, B has 4")


def test_a_published_row_of_a_number_meets_the_word_only_where_no_number_is(tmp_path: Path) -> None:
    published_side = replace(sides.read("disk-patterns-2020"), values={
        sides.Point("cpu", "cpubench", "DP", "", 0, 2, ""): (1e9, 1e9, 1e9, 1e9),
    })  # fmt: skip
    both = sides.read(str(of_words(tmp_path / "a", {2: 1e9, "cores": 2e9})))
    ((found,), _, _) = compare.compare(published_side, both)
    assert statistics.median(found.after) == pytest.approx(1e9, rel=0.01)
    word = sides.read(str(of_words(tmp_path / "b", {"cores": 2e9})))
    ((found,), _, _) = compare.compare(published_side, word)
    assert statistics.median(found.after) == pytest.approx(2e9, rel=0.01)


def test_a_row_that_mixes_hosts_gets_no_verdict(tmp_path: Path) -> None:
    before = sides.read(str(of_words(tmp_path / "a", {2: 1e9})))
    after = sides.read(str(of_words(tmp_path / "b", {2: 2e9}, hosts="ab")))
    ((found,), _, _) = compare.compare(before, after)
    assert found.verdict == "not alike"
    assert "B mixes the hosts a and b" in compare_text.report(before, after)[0]


def _against_the_first_report(
    folder: Path, cells: list[Cell], metric: str, value: float
) -> dict[str, compare.Comparison]:
    records = [make.record(of, [make.measurement(of, metric, value)]) for of in cells]
    side = sides.read(str(make.write(folder, records)))
    found, _, _ = compare.compare(sides.read("four-subsystems-2018-hyperion"), side)
    return {one.point.workload: one for one in found}


def test_operations_of_another_kind_than_the_published_ones_are_not_judged(tmp_path: Path) -> None:
    for isa, verdict in (("auto", "not alike"), ("scalar", "cannot tell")):
        cells = [make.cell("cpubench", "DP", subsystem="cpu", repetition=number, isa=isa) for number in range(6)]
        found = _against_the_first_report(tmp_path / isa, cells, "rate", 1.7e11)["DP"]
        assert found.verdict == verdict
        assert (found.reason == "instruction set: A has scalar, B has auto") == (isa == "auto")


def test_copies_are_compared_as_they_are_counted_here(tmp_path: Path) -> None:
    place = {"subsystem": "memory", "variant": "pool", "block": 1 << 20}
    for store, verdict in (("libc", "cannot tell"), ("temporal", "not alike")):
        cells = [make.cell("rambench", "RWS", **place, repetition=number, store=store) for number in range(6)]
        found = _against_the_first_report(tmp_path / store, cells, "throughput", 2 * 3.973819e9)["RWS"]
        assert found.ratio == pytest.approx(1.0) and found.verdict == verdict


def test_writes_are_compared_as_they_reached_the_disk(tmp_path: Path) -> None:
    place = {"subsystem": "disk", "variant": "psync", "block": 1 << 20}
    asked = {"sync": "each", "fill": "new"}
    for name, options in (("as-theirs", asked), ("as-ours", {})):
        cells = [make.cell("diskbench", "WS", **place, repetition=number, **options) for number in range(6)]
        found = _against_the_first_report(tmp_path / name, cells, "throughput", 5e7)["WS"]
        assert found.verdict == "not alike" and "O_DIRECT: A has no, B has yes" in found.reason
        assert ("sync: A has each, B has end; fill: A has new, B has overwrite" in found.reason) == (not options)


def test_campaigns_that_write_otherwise_are_not_alike_though_one_did_not_ask(tmp_path: Path) -> None:
    for name, options in (("a", {}), ("b", {"sync": "each"})):
        cells = [
            make.cell(
                "diskbench", workload, subsystem="disk", variant="psync", block=4096, repetition=number, **options
            )
            for workload in ("WR", "RR")
            for number in range(6)
        ]
        make.write(tmp_path / name, [make.record(of, [make.measurement(of, "iops", 1e4)]) for of in cells])
    found, _, _ = compare.compare(sides.read(str(tmp_path / "a")), sides.read(str(tmp_path / "b")))
    assert {one.point.workload: one.reason for one in found if one.verdict == "not alike"} == {
        "WR": "sync: A has end, B has each"
    }


def test_a_claim_that_chance_brings_among_many_rows_does_not_stand() -> None:
    """One row of two samples that lie apart: by itself a claim, among 110 rows what chance brings."""
    before, after = (1.0, 1.1, 1.2, 1.05, 1.15, 1.12), (1.14, 1.22, 1.3, 1.16, 1.25, 1.21)
    same = (1.0, 1.1, 0.9, 1.05, 0.95, 1.0)

    def one(place: int, *values: tuple[float, ...], verdict: compare.Verdict) -> compare.Comparison:
        point = sides.Point("cpu", "cpubench", "DP", "", 0, place, "")
        return compare.Comparison(point, *values, 1.1, 1.05, 1.2, verdict, "")

    claim = one(1, before, after, verdict="better")
    others = [one(place, same, same, verdict="no difference shown") for place in range(2, 111)]
    assert [found.verdict for found in compare._standing([claim], 0.95)] == ["better"]
    among = compare._standing([claim, *others], 0.95)
    assert {found.verdict for found in among} == {"no difference shown"}
    assert among[0].reason == "chance would bring it among 110 rows"
