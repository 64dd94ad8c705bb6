"""Values in outputs of the real tools, read off by hand: a damaged output gives no others."""

import dataclasses
import json
import math
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cases import cases, tables
from tests.unit.tools import samples

from peakmark.catalogue import SHAPES
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed
from peakmark.tools.programs import hpl


def disk(workload, throughput, iops, latency):
    figures = {"throughput": throughput, "iops": iops, "latency": latency}
    return {(workload, metric): value for metric, value in figures.items()}


def rates(**kilobytes):
    return {(name, "throughput"): value * 1024 for name, value in kilobytes.items()}


def operations(threads, **iops):
    """IOZone tells operations per second alone; latencies follow."""
    every = {(name, "iops"): rate for name, rate in iops.items()}
    return every | {(name, "latency"): threads / rate for name, rate in iops.items()}


GOOD = {
    "cpubench/dp-x2": {("DP", "rate"): 21582620203.081005},
    "cpubench/qpdot-x1": {("QPDOT", "rate"): 23115185465.61519},
    "rambench/rws-pool-x2": {("RWS", "throughput"): 16842050688.319035},
    "rambench/rs-block-x1": {("RS", "throughput"): 66330377524.18737},
    "rambench/c2c-x2": {("C2C", "core_to_core"): 1.03505e-07},
    "rambench/lat-x1": {("LAT", "latency"): 2.3755089e-08},
    "diskbench/rr-psync-x2": disk("RR", 97419584.44472459, 23784.07823357534, 8.395287222454965e-05),
    "diskbench/ws-uring-x1": disk("WS", 448066138.9131365, 6836.946699724373, 0.00058106442578125),
    "netbench/tcp-x1": {("TCP", "throughput"): 5845411021.3140545},
    "netbench/tcp-bbr-x2": {("TCP", "throughput"): 11277467756.676481},
    "netbench/udp-x2": {("UDP", "throughput"): 1003176030.645332},
    "netbench/udp-gso-x1": {("UDP", "throughput"): 5298562963.705317},
    "netbench/lat-tcp-x1": {("LAT-TCP", "latency"): 3.734099e-05},
    "netbench/lat-udp-busy-x1": {("LAT-UDP", "latency"): 8.661459043881556e-05},
    # From N and hpcc's HPL_time=0.283419: (2/3 N^3 + 3/2 N^2) / time.
    "hpl/hpcc-x2": {("DP", "rate"): (2 / 3 * 2688**3 + 1.5 * 2688**2) / 0.283419},
    "hpl/hpcc-reference-blas": {("DP", "rate"): (2 / 3 * 1408**3 + 1.5 * 1408**2) / 0.456611},
    "hpl/xhpl-x2": {("DP", "rate"): 1.2646e10},
    "hpl/xhpl-crowded-x4": {("DP", "rate"): 1.5974e10},
    "pmbw/rs-block-x1": {("RS", "throughput"): 175128912731.22},
    "pmbw/rws-block-x2": {("RWS", "throughput"): 2 / (1 / 94399779774.1016 + 1 / 71652135420.7939)},
    "pmbw/lat-x2": {("LAT", "latency"): 2 * 1.1063592407852983e-08},
    "likwid-bench/dp-x2": {("DP", "rate"): 45000007680 / 2.341073},
    "likwid-bench/fp32-sse-x1": {("FP32", "rate"): 11999969280 / 1.062966},
    "likwid-bench/rs-block-x1": {("RS", "throughput"): 60e9 / 1.620864},
    "likwid-bench/ws-block-x2": {("WS", "throughput"): 59999518720 / 2.693470},
    "likwid-bench/rws-pool-x2": {("RWS", "throughput"): 15032385536 / 1.217456},
    "likwid-bench/odd-size-x1": {("RS", "throughput"): 22528e6 / 0.4601822},
    "iozone/single-1m": rates(WS=2140873, RS=612163, RR=570590, WR=1376597),
    "iozone/t2-1m": rates(WS=1771920.12, RS=611896.59, RR=785946.03, WR=1277927.25),
    "iozone/single-ops-4k": operations(1, WS=9325, RS=7886, RR=12921, WR=8903),
    "iozone/t2-ops-4k": operations(2, WS=19784.51, RS=13382.51, RR=3913.77, WR=18600.68),
    "fio/rr-psync-x2": disk("RR", 26349568 / 0.502, 6433 / 0.502, 154466.494637e-9),
    "fio/ws-psync-x1": disk("WS", 769654784 / 0.502, 734 / 0.502, 680474.405995e-9),
    "fio/wr-uring-total-x1": disk("WR", 8388608 / 0.110, 2048 / 0.110, 425293.481445e-9),
    "iperf3/tcp-x2": {("TCP", "throughput"): 7908617042.6355276},
    "iperf3/udp-omit": {("UDP", "throughput"): 12130623122.831923},
    "iperf3/udp-x1": {("UDP", "throughput"): 524391444.4699747},
    "qperf/all": {("LAT-TCP", "latency"): 2 * 12300e-9, ("LAT-UDP", "latency"): 2 * 18547e-9},
    "ping/loopback": {("LAT-ICMP", "latency"): 0.015e-3},
}  # fmt: skip


# Told as not possible here, which is no failure: a user cannot give himself rights.
REFUSED = {"ping/no-rights": "may not open its socket as this user: as root: setcap cap_net_raw"}
UNITS = {"rate": "op/s", "iops": "1/s", "latency": "s", "core_to_core": "s"}
LISTS = ("points", "order")
KERNEL_CASES = [case for case in GOOD if not REGISTRY[case.partition("/")[0]].reference]
NAMES = sorted(REGISTRY)
FIRST = {name: next(case for case in GOOD if case.startswith(f"{name}/")) for name in NAMES}


def test_every_sample_is_tested():
    _, *failures = tables("tools")["test_failures_are_told"]
    assert set(samples.CASES) == GOOD.keys() | {case for case, _ in failures} | REFUSED.keys()


@pytest.mark.parametrize("case", GOOD)
def test_values(case):
    parsed = samples.parse(case)
    cell, _ = samples.load(case)
    assert samples.values(parsed) == pytest.approx(GOOD[case], rel=1e-9, abs=0)
    for row in parsed.measurements:
        throughput = "bit/s" if cell.subsystem == "network" else "B/s"
        assert row.unit == UNITS.get(row.metric, throughput)
        assert (row.block, row.concurrency) == (cell.block, cell.concurrency)
        shape = cell.workload in SHAPES
        assert row.variant == ("same-cache" if shape else cell.variant)
        assert shape == bool(row.details.get("points"))
        plain = {name: value for name, value in row.details.items() if name not in LISTS}
        for value in plain.values():
            assert value is None or isinstance(value, str | int | float)
            assert not isinstance(value, float) or math.isfinite(value)


@cases("tools")
def test_failures_are_told(case, words):
    with pytest.raises(ParseError, match=words):
        samples.parse(case)


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_machine_refuses_is_no_failure(case, tmp_path):
    cell, completed = samples.load(case)
    with pytest.raises(Unavailable, match=REFUSED[case]):
        samples.parse(case)
    command = samples.command(cell, samples.workspace(tmp_path))
    assert completed.returncode in command.ok_codes  # what it printed is read


def attempt(case, text):
    """What is read when the numbers' text is replaced; None where it is refused in a sentence."""
    try:
        return samples.parse(case, text)
    except (ParseError, Unavailable) as error:
        assert str(error).strip() and "\n" not in str(error)
        return None


def damaged(text):
    """Outputs that are cut, lack a line, or have a decimal comma or digits of another script."""
    lines = text.splitlines(keepends=True)
    without = ["".join(lines[:gone] + lines[gone + 1 :]) for gone in range(len(lines))]
    digits = {ord("0") + digit: 0x0660 + digit for digit in range(10)}
    return [*samples.cuts(text), *without, text.replace(".", ","), text.translate(digits)]


@pytest.mark.parametrize("case", GOOD)
def test_a_damaged_output_never_gives_other_numbers(case):
    parsed = [attempt(case, text) for text in damaged(samples.text_of(case))]
    assert None in parsed
    expected = samples.values(samples.parse(case))
    assert all(samples.values(one) == expected for one in parsed if one is not None)


@pytest.mark.parametrize("case", GOOD)
def test_something_else_is_refused(case):
    texts = ["", "\n", "\0" * 100, "Segmentation fault\n", "{", "[]", "null", "nan", "{}\n"]
    texts += ["é½٣" * 50, '{"a":' * 2000]
    texts += [samples.text_of(other) for name, other in FIRST.items() if not case.startswith(name)]
    assert [text[:80] for text in texts if attempt(case, text) is not None] == []
    cell, _ = samples.load(case)
    with pytest.raises(ParseError):
        REGISTRY[cell.instrument].parse(cell, Completed((), 0, "", ""))


@settings(max_examples=200)
@given(case=st.sampled_from(sorted(GOOD)), seed=st.integers(0, 2**32 - 1))
def test_damaged_bytes_raise_nothing_else(case, seed):
    """A few characters changed: parse ends with values, perhaps others, or a ParseError."""
    chance = random.Random(seed)  # noqa: S311
    letters = list(samples.text_of(case))
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(letters))
        letters[place] = chance.choice('0123456789.,eE+-naif \t\n{}[]:"=/x')
    parsed = attempt(case, "".join(letters))
    assert parsed is None or all(row.value > 0 for row in parsed.measurements)


@cases("tools")
def test_a_result_of_another_cell_is_refused(case, changes, words):
    with pytest.raises(ParseError, match=words):
        samples.parse(case, **changes)


@cases("tools")
def test_a_contradiction_is_refused(case, old, new, words):
    text = samples.text_of(case)
    assert old in text
    with pytest.raises(ParseError, match=words):
        samples.parse(case, text.replace(old, new))


@pytest.mark.parametrize("case", KERNEL_CASES)
def test_keys_of_a_kernel_are_checked(case):
    keys = "instrument version workload threads value unit seconds per_thread"
    wrong = [(key, None) for key in keys.split()]
    wrong += [("instrument", "other"), ("unit", "GB/s"), ("threads", 99), ("warnings", "x")]
    wrong += [("value", value) for value in (0, -1.0, True, "x")] + [("seconds", 0)]
    for key, value in wrong:
        with pytest.raises(ParseError, match=key):
            samples.parse(case, samples.with_json(case, **{key: value}))
    with pytest.raises(ParseError, match="one line"):
        samples.parse(case, samples.text_of(case) * 2)
    if any(UNITS.get(metric) != "s" for _, metric in GOOD[case]):
        work = json.loads(samples.text_of(case))["work"]
        with pytest.raises(ParseError, match="contradicts itself"):
            samples.parse(case, samples.with_json(case, work=2 * work))


@pytest.mark.parametrize(("case", "metric", "expected"), [
    ("cpubench/dp-x2", "", {"isa": "avx2", "instruction": "vfmadd213pd", "per_thread": None}),
    ("rambench/rws-pool-x2", "", {"working_set": "pool", "store": "non-temporal", "pool": 64 << 20}),
    ("diskbench/rr-psync-x2", "latency", {"p99": 0.00021009050000000002}),
    ("fio/rr-psync-x2", "latency", {"p99": 1548288e-9, "max": 6164822e-9}),
    ("ping/loopback", "", {"min": 5e-6, "max": 32e-6}),
    ("pmbw/rs-block-x1", "", {"estimate": None}),
    ("pmbw/rws-block-x2", "", {"estimate": True, "store": "temporal"}),
    ("qperf/all", "", {"half": True}),
    ("iozone/t2-ops-4k", "latency", {"derived": True}),
    ("netbench/udp-gso-x1", "", {"lost": 106659}),
    ("iperf3/tcp-x2", "", {"retransmits": 52, "congestion_control": "bbr"}),
    ("netbench/tcp-bbr-x2", "", {"retransmits": 8, "congestion_control": "bbr"}),
    # What was under way at the end counts as lost.
    ("iperf3/udp-x1", "", {"loss": pytest.approx(50029 / 114560, rel=0.01)}),
    # iperf 3.12 with --omit reported 137103 of 132000 datagrams lost, 46289 of which had arrived.
    ("iperf3/udp-omit", "", {"lost_reported": 137103, "loss": pytest.approx(1 - 46289 / 132000)}),
])  # fmt: skip
def test_details(case, metric, expected):
    rows = samples.parse(case).measurements
    found = next(row.details for row in rows if row.metric.startswith(metric))
    for key, value in expected.items():
        assert found.get(key) == (pytest.approx(value) if type(value) is float else value), key


def test_hpl_says_what_a_small_matrix_lacks_for_a_share_of_the_limit():
    (said,) = [text for text in samples.parse("hpl/hpcc-x2").warnings if "N =" in text]
    assert "N = 2688 in 0.28 s" in said and "install xhpl" in said
    budget = float(said.rpartition(" ")[2])
    rate = samples.parse("hpl/hpcc-x2").measurements[0].value
    assert hpl.wall_seconds(hpl.LEAST_N, rate, hpcc=True) <= budget
    (said,) = [text for text in samples.parse("hpl/xhpl-x2").warnings if "N =" in text]
    assert "set budget_s" in said and "xhpl" not in said
    # A large machine solves N = 10,000 at once, and needs more.
    n, rate = 12_000, 1e12
    text = hpl._say_too_small({"N": n, "seconds": 1.2}, rate, hpcc=False)
    assert float(text.rpartition(" ")[2]) >= hpl.wall_seconds(20_000, rate, hpcc=False)


@pytest.mark.parametrize(("n", "seconds", "is_small"), [
    (1920, 0.035, True), (9999, 60.0, True), (50_000, 4.9, True), (0, 0.0, True), (10_000, 5.0, False),
])  # fmt: skip
def test_a_matrix_is_small_by_its_size_or_its_time(n, seconds, is_small):
    assert hpl.is_too_small({"N": n, "seconds": seconds}) is is_small


def test_hpl_names_the_blas_and_hpcc_without_its_file_the_reason():
    assert samples.parse("hpl/xhpl-x2").version == "2.3"
    plain = samples.parse("hpl/hpcc-reference-blas")
    assert plain.library["blas"] == "reference BLAS or unknown"
    cell, completed = samples.load("hpl/hpcc-x2")
    lost = dataclasses.replace(completed, files={}, stderr="hpcc: cannot write here\n")
    with pytest.raises(ParseError, match="cannot write here"):
        REGISTRY["hpl"].parse(cell, lost)


@cases("tools")
def test_warnings(case, changes, words):
    text = samples.text_of(case)
    for old, new in changes:
        text = text.replace(old, new)
    parsed = samples.parse(case, text)
    if words is None:
        assert parsed.warnings == ()
    else:
        assert any(words in warning for warning in parsed.warnings)
    if case.startswith("ping"):
        assert samples.only(parsed).details["loss"] == pytest.approx(0.2)


def test_percentiles_of_fio_are_of_submission_and_completion_where_it_gives_them():
    document = json.loads(samples.text_of("fio/wr-uring-total-x1"))
    write = document["jobs"][0]["write"]
    whole = {name: value + 33576 for name, value in write["clat_ns"]["percentile"].items()}
    write["lat_ns"]["percentile"] = whole
    rows = samples.parse("fio/wr-uring-total-x1", json.dumps(document)).measurements
    latency = next(row for row in rows if row.metric == "latency")
    assert latency.details["p99"] == pytest.approx(whole["99.000000"] / 1e9)
    assert latency.value == pytest.approx(write["lat_ns"]["mean"] / 1e9)


def test_new_files_of_iozone_are_its_first_phase():
    cell, _ = samples.load("iozone/t2-1m")
    phases = (samples.parse("iozone/t2-1m", options={**cell.options, "fill": fill}) for fill in ("overwrite", "new"))  # fmt: skip
    old, new = ({row.workload: row for row in parsed.measurements} for parsed in phases)
    assert (old["WS"].details["phase"], new["WS"].details["phase"]) == ("rewrite", "write")
    assert new["WS"].value == old["WS"].details["write"]
    assert old["WS"].value == new["WS"].details["rewrite"]
    fills = {one: new[one].details.get("fill") for one in new}
    assert fills == {"WS": "new", "WR": "overwrite", "RS": None, "RR": None}
    assert all(new[one].value == old[one].value for one in ("RS", "RR", "WR"))


def test_qperf_whose_ends_measured_different_times():
    """Seen on a busy machine: the clocks of both ends count hundredths of a second."""
    text = samples.text_of("qperf/all")
    fields = {"latency": 1553846, "msg_rate": 637, "loc_real_time": 1010000000}
    for name, value in fields.items():
        text = re.sub(rf"({name} +=) +\S+", rf"\1 {value}", text)
    longer, alike = (
        re.sub(r"(rem_real_time +=) +\S+", rf"\1 {value}", text)
        for value in (1030000000, 1010000000)
    )
    for row in samples.parse("qperf/all", longer).measurements:
        assert row.value == pytest.approx(2 * 1553846e-9, rel=0.02)
    with pytest.raises(ParseError, match="contradicts itself"):
        samples.parse("qperf/all", alike)


def test_iperf3_before_it_told_the_receivers_rate():
    """Old versions have no sum_received for UDP: the rate sent less what was lost."""
    document = json.loads(samples.text_of("iperf3/udp-x1"))
    del document["end"]["sum_received"]
    row = samples.only(samples.parse("iperf3/udp-x1", json.dumps(document)))
    sent = document["end"]["sum"]
    share = 1 - sent["lost_packets"] / sent["packets"]
    assert row.value == pytest.approx(sent["bits_per_second"] * share)
    assert row.details["estimate"] is True
    # The sample has both: they agree about as well as loss and rate do.
    assert row.value == pytest.approx(samples.only(samples.parse("iperf3/udp-x1")).value, rel=0.02)
