"""A row belongs to equal nodes and to what its jobs were given there: limits and claims follow the
records.
"""

import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import VM

from peakmark.messages import Trust
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.runs import replace_chosen_areas
from peakmark.views import score_card

CLOCK = {"clock_hz_before": 3e9, "clock_hz_after": 3e9}
LIMIT = 3e9 * 16  # of one core of the VM in double precision
SHARES = (0.95, 0.951, 0.949, 0.952, 0.948, 0.95)


def machines(**changes):
    """Hosts that are alike but for these facts: host -> part -> name -> value."""
    return {
        host: VM | {"host": host} | {part: VM[part] | facts for part, facts in parts.items()}
        for host, parts in changes.items()
    }


def dp(hosts, shares=SHARES, threads=1, **more):
    """Records of a DP row: a repetition on each host, with its share of the limit at 3 GHz."""
    return [
        record
        for number, (host, share) in enumerate(zip(hosts, shares, strict=True))
        for record in make.runs(
            "cpubench", "DP", threads * share * LIMIT, repetition=number, concurrency=threads,
            host=host, details=CLOCK, **more,
        )
    ]  # fmt: skip


def own_of(frames):
    """The lines of peakmark's kernel, one for each point."""
    return list(schema.lines(frames.rows[frames.rows["is_own"]]))


def line_of(frames, instrument):
    """The only line of an instrument."""
    (line,) = schema.lines(frames.rows[frames.rows["instrument"].eq(instrument)])
    return line


def notes(frames, code):
    return list(schema.lines(frames.warnings[frames.warnings["code"].eq(code)]))


@pytest.mark.parametrize("hosts", ["aaaaaa", "ababab"])
def test_a_row_over_equal_nodes_is_an_ordinary_row(tmp_path, hosts):
    both = [*dp(hosts), *dp(hosts, threads=2)]
    frames = make.frames(tmp_path / "c", both, machines=machines(a={}, b={}))
    rows = own_of(frames)
    found = [(row.efficiency, row.trust) for row in rows]
    assert found == [(pytest.approx(0.95), "ok")] * 2
    assert not notes(frames, "hosts")
    (line,) = score_card.card_lines(frames)
    assert (line.place, line.trust) == ("2 threads", "ok")
    assert set(frames.runs["host"]) == set(hosts)


@pytest.mark.parametrize("other", [{"model_name": "Another CPU"}, {"threads": 4}])
def test_a_row_that_mixes_unequal_nodes_is_void(tmp_path, other):
    facts = machines(a={}, b={"cpu": other})
    frames = make.frames(tmp_path / "c", dp("ababab"), machines=facts)
    (row,) = own_of(frames)
    assert (row.efficiency, row.limit, row.trust) == (None, None, Trust.NO)
    (doubt,) = notes(frames, "hosts")
    assert all(word in doubt.text for word in ("on a", "on b", str(*other.values())))
    (line,) = score_card.card_lines(frames)
    assert (line.share, line.trust, line.reason) == (None, "no", "nodes not equal")
    assert frames.findings.empty


@pytest.mark.parametrize(("hosts", "known"), [("ababab", "a"), ("cababa", "ab")])
def test_nodes_without_facts_count_as_equal(tmp_path, hosts, known):
    facts = machines(**{host: {} for host in known})
    row = make.only_row(tmp_path / "c", dp(hosts, SHARES), machines=facts)
    assert row.efficiency and row.trust == "ok"


def test_equal_nodes_with_other_limits_have_the_best_one(tmp_path):
    """Half the memory channels populated on one of two hosts: half its limit, by the same model."""
    measured = []
    for number, host in enumerate("ababab"):
        measured += make.runs("rambench", "RS", 1e10, repetition=number, host=host)
    memory = {"speed_mts": 3200, "channels": 8, "populated_channels": 8}
    half = memory | {"channels": 4, "populated_channels": 4}
    cpu = {"virtualised": None}
    hosts = machines(a={"memory": memory, "cpu": cpu}, b={"memory": half, "cpu": cpu})
    frames = make.frames(tmp_path / "c", measured, machines=hosts)
    (row,) = own_of(frames)
    assert row.limit == 8 * 3200e6 * 8 and not notes(frames, "hosts")


STATED = {"disk": {"throughput": {"RS": 1e8}}}


@pytest.mark.parametrize(("program", "site", "details", "trust", "usable"), [
    (("diskbench", "RS"), STATED, {}, Trust.NO, False),  # whatever may be wrong: the value or the limit
    (("diskbench", "RS"), STATED, {"filesystem": "tmpfs"}, Trust.NO, False),
    (("diskbench", "RS"), {}, {}, "ok", True),
    (("cpubench", "DP"), {}, {}, Trust.NO, False),  # no core does so much
])  # fmt: skip
def test_a_row_above_its_limit_is_in_no_comparison(tmp_path, program, site, details, trust, usable):
    value = 1e15 if program[0] == "cpubench" else 2e9
    measured = make.runs(*program, value, value, value, details=details)
    frames = make.frames(tmp_path / "c", measured, config={"site_facts": site}, facts=VM)
    (row,) = frames.rows.itertuples()
    assert (row.trust, schema.is_right(frames.rows).all()) == (trust, usable)


@pytest.mark.parametrize(("pairs", "kernel_of_c", "void"), [
    (["ab", "bc", "ca"], "6.1.0-1", ""),
    (["ab"] * 4 + ["ba"] * 4, "6.1.0-1", ""),
    (["ab", "ac"], "6.1.0-2", "6.1.0-2 on c"),
    (["ac", "ac"], "6.1.0-2", ""),
])  # fmt: skip
def test_pairs_of_equal_kinds_of_node_are_one_row(tmp_path, pairs, kernel_of_c, void):
    of_pairs = []
    for number, (client, server) in enumerate(pairs):
        value = (1.02e9 if client == "b" else 1e9) + number
        place = {"repetition": number, "host": client, "context": {"server_host": server}}
        of_pairs += make.runs("netbench", "TCP", value, **place)
    kernels = {"a": "6.1.0-1", "b": "6.1.0-1", "c": kernel_of_c}
    facts = machines(**{host: {"os": {"kernel": kernel}} for host, kernel in kernels.items()})
    frames = make.frames(tmp_path / "c", of_pairs, machines=facts)
    (row,) = own_of(frames)
    assert row.trust == (Trust.NO if void else "ok") and bool(row.unequal_nodes) == bool(void)
    assert not void or frames.warnings["text"].str.contains(void, regex=False).any()


@pytest.mark.parametrize(("seen", "accepted", "efficiency", "trust"), [
    # DP and QPDOT (an eighth of its rates) with two threads on a Zen 4: clocks are misread.
    ([(114.7, 3.460), (114.6, 3.585), (115.8, 3.679)], [3.69, 3.69, 3.679], 0.971, "ok"),
    ([(60.2, 3.456), (115.8, 3.691), (113.7, 3.464)], [3.456, 3.691, 3.69], 0.963, "care"),
    ([(114.7, 3.460)], [3.460], 0.971, "care"),  # one run, whose rate proves a higher clock
    ([(115.8, 3.679), (108.0, 3.430), (104.0, 3.310)], [3.679, 3.430, 3.310], 0.984, "ok"),
    ([(120.0, 3.679), (115.7, 3.678), (115.8, 3.679)], [3.679, 3.678, 3.679], 0.984, "care"),
])  # fmt: skip
def test_a_clock_below_both_ends_counts_if_the_rate_fell_too(
    tmp_path, seen, accepted, efficiency, trust
):
    runs = []
    for number, (rate, clock) in enumerate(seen):
        details = {"clock_hz_before": 3.66e9, "clock_hz_after": 3.69e9}
        details |= {"clock_hz_loaded": clock * 1e9}
        place = {"details": details, "context": details, "repetition": number, "concurrency": 2}
        runs += make.runs("cpubench", "DP", rate * 1e9, **place)
    frames = make.frames(tmp_path / "c", runs, facts=make.ZEN3)
    row = line_of(frames, "cpubench")
    clocks = frames.runs.loc[frames.runs["value"].notna(), "clock_hz"]
    assert clocks.tolist() == pytest.approx([hz * 1e9 for hz in accepted])
    assert row.efficiency == pytest.approx(efficiency, abs=5e-4)
    assert row.limit == pytest.approx(32 * row.clock_hz)
    assert row.trust == trust


def test_rows_of_a_word_show_it_with_what_it_meant_on_their_node(tmp_path):
    """Also where some of them are not measured: their number comes from the others of the node, or
    is not known yet.
    """

    def of(workload, node):
        data = make.cell("cpubench", workload, subsystem="cpu", node=node).to_json()
        return make.cell_of(data | {"concurrency": "cores"})

    measured = make.measurement(of("DP", "a"), "rate", 4 * LIMIT, concurrency=8, details=CLOCK)
    record = make.record(of("DP", "a"), [measured], host="a", context=make.placed(8, 8))
    folder = make.write(tmp_path / "c", [record], planned=[of("SP", "a"), of("SP", "b")])
    frames = make.tables(folder)
    lines = (folder / "tables" / "cpu.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["a", "SP", "8 (cores)"], ["a", "DP", "8 (cores)"], ["b", "SP", "cores"],
    ]  # fmt: skip
    threads = [Labels.of(row).threads(row) for row in own_of(frames)]
    assert threads == ["on 8 cores", "on 8 cores", "cores"]


def test_the_limit_of_a_row_is_that_of_the_cores_its_own_jobs_were_given(tmp_path):
    """The facts of the host are from its first job, which had one core."""
    context = {"placed": make.placed(2, 2)["placed"]}
    first = machines(a={"limits": {"physical_cores_allowed": 1, "cpus_allowed": [0]}})
    row = make.only_row(tmp_path / "c", dp("a" * 6, threads=2, context=context), machines=first)
    assert row.limit == pytest.approx(2 * LIMIT)
    assert row.efficiency == pytest.approx(0.95)


def test_an_area_that_the_node_chose_joins_what_was_planned_without_it(tmp_path):
    """Own and reference, measured or not: one row for each number of threads, under the bytes that
    were walked.
    """
    one, again, two, reference = (
        make.cell(tool, "LAT", subsystem="memory", concurrency=threads, repetition=repetition)
        for tool, threads, repetition in (
            ("rambench", 1, 0), ("rambench", 1, 1), ("rambench", 2, 0), ("pmbw", 1, 0)
        )
    )  # fmt: skip
    measured = [
        make.record(of, [make.measurement(of, "latency", 1e-7, block=2 << 30)])
        for of in (one, reference)
    ]
    frames = make.frames(tmp_path / "c", measured, planned=[again, two])
    row, second = own_of(frames)
    assert (row.table, row.block_bytes, row.missing, row.n) == ("memory_latency", 2 << 30, 1, 1)
    of_first = frames.rows[frames.rows["point"].eq(row.point) & frames.rows["n"].gt(0)]
    assert sorted(of_first["instrument"]) == ["pmbw", "rambench"]
    assert (second.block_bytes, second.concurrency, second.n) == (None, 2, 0)


def test_the_limit_of_a_network_row_is_that_of_the_interface_that_was_measured(tmp_path):
    default = {
        "mtu": 1500, "loopback": False, "interface": "eth0", "kind": "ethernet", "speed_bps": 1e9,
    }  # fmt: skip
    link = default | {"interface": "ib0", "kind": "infiniband", "speed_bps": 200e9, "mtu": 4092}
    context = make.reached("ib0", link=link, server_interface="ib0")
    measured = make.runs("netbench", "TCP", 1e11, context=context)
    row = make.only_row(tmp_path / "c", measured, facts=VM | {"host": "node1", "network": default})
    assert row.limit is not None and row.limit > 1e11


def test_a_point_for_which_no_node_has_chosen_an_area_yet_has_none():
    areas = pd.array([None, 1 << 28], "Int64")
    known = {"node": "any", "is_automatic": True, "concurrency": [1, 2], "concurrency_word": ""}
    runs = pd.DataFrame({**known, "block_bytes": areas}, index=[3, 4])
    assert replace_chosen_areas(runs)["block_bytes"].isna().tolist() == [True, False]
