"""Page one: which row speaks for a subsystem, how sure it is, and the caveats of the campaign."""

import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import VM, frames, placed, runs

from peakmark.views import headlines

KIB, MIB = 1 << 10, 1 << 20
QUIET = (1.0, 1.002, 0.998)
WILD = (1.0, 1.5, 0.5)


def times(value, factors):
    return [value * factor for factor in factors]


def judged(folder, wobble, loopback=True):
    """A CPU row and a network row of three repetitions each; the network's limit is stated where it
    is no loopback.
    """
    context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
    records = runs("cpubench", "DP", *times(5e10, wobble))
    records += runs("netbench", "TCP", *times(1e10, wobble), context=context)
    site = {} if loopback else {"site_facts": {"network": {"speed_bps": 2e10, "mtu": 1500}}}
    return frames(folder, records, config=site)


def headline_of(of, subsystem):
    (found,) = (one for one in headlines.headlines(of) if one.subsystem == subsystem)
    return found


def value(message, name):
    return dict(message.values)[name]


def caveats(of):
    """The caveats by their codes."""
    found = headlines.build_caveats(of)
    return {f"{each.code} {each.case}".rstrip(): each for each in found}


def test_a_value_over_loopback_says_so_and_asks_for_no_limit(tmp_path):
    of = judged(tmp_path / "a", QUIET)
    network = headline_of(of, "network")
    assert value(network.text, "loopback") and not value(network.text, "limit")
    assert "loopback-only" in caveats(of)
    real = judged(tmp_path / "b", QUIET, loopback=False)
    text = headline_of(real, "network").text
    assert not value(text, "loopback") and value(text, "limit").code == "of-limit"
    assert "loopback-only" not in caveats(real)


@pytest.mark.parametrize("mixed", [None, 11e10])
def test_page_one_names_both_limits_of_a_core(tmp_path, mixed):
    """VM is a Zen 3, whose limit is half as high again with additions."""
    clock = {"clock_hz_loaded": 2.5e9}
    records = runs("cpubench", "DP", *times(7.8e10, QUIET), concurrency=2, details=clock)
    if mixed:
        records += runs("cpubench", "DPMIX", *times(mixed, QUIET), concurrency=2, details=clock)
        records += runs("cpubench", "DPMIX", *times(5e10, QUIET), details=clock)
    text = headline_of(frames(tmp_path / "c", records, facts=VM), "cpu").text.text
    assert "98% of the limit of fused multiply-adds (HPL's Rpeak), 80.00 GigaOPS" in text
    said = "; mixed with additions 110.0 GigaOPS, 92% of the limit of all pipes, 120.0 GigaOPS"
    assert (said in text) is bool(mixed) and ("all pipes" in text) is bool(mixed)


def test_beside_what_was_measured_stand_its_lowest_and_highest_repetition(tmp_path):
    of = judged(tmp_path / "c", (0.9, 1.0, 1.8), loopback=False)
    texts = [one.text for one in headlines.headlines(of)]
    assert [(value(text, "value"), value(text, "spread")) for text in texts] == [
        ("50.00 GigaOPS", " (45.00 to 90.00)"), ("10000 Mb/s", " (9000 to 18000)"),
    ]  # fmt: skip


@pytest.mark.parametrize(("scale", "isa", "cores", "code"), [
    (0.1, "auto", 128, "scaled"), (1, "scalar", 128, "narrower"), (1, "auto", 4, "part-of-node"),
])  # fmt: skip
def test_what_a_reader_must_know_of_a_campaign(tmp_path, scale, isa, cores, code):
    site = {"cpu": {"cores": 128, "operations_per_cycle": {"DP": 32}}}
    clocks = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    place = {"concurrency": cores, "context": placed(cores, 128)}
    records = runs("cpubench", "DP", 3e9, isa=isa, details=clocks, **place)
    of = frames(tmp_path / "c", records, config={"scale": scale, "site_facts": site})
    assert value(headline_of(of, "cpu").text, "limit")
    assert caveats(of).keys() & {"scaled", "narrower", "part-of-node"} == {code}


def test_page_one_has_at_most_a_hundred_words_of_caveats(tmp_path):
    records = runs("cpubench", "DP", *times(5e10, WILD), context=placed(1, 2))
    records += runs("netbench", "TCP", 1e10, context={"network": {"loopback": True}})
    hole = make.cell("rambench", "RS", subsystem="memory")
    of = frames(tmp_path / "c", records, config={"scale": 0.1}, planned=[hole])
    found = caveats(of)
    assert {"doubtful unsure", "few-runs", "part-of-node", "scaled", "holes"} <= set(found)
    assert sum(len(each.text.split()) for each in found.values()) <= 100


def test_a_missing_memory_module_is_named(tmp_path):
    model = {"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 1, "virtualised": None}
    memory = VM["memory"] | {"channels": 7, "speed_mts": 3200}
    facts = VM | {"host": "node1", "cpu": VM["cpu"] | model, "memory": memory}
    of = frames(tmp_path / "c", runs("rambench", "RS", 1e10), facts=facts)
    assert any("7 of 8" in each.text for each in caveats(of).values())


def disk(block, value, moved, wobble):
    """A disk's row of three repetitions of which so much reached the device."""
    details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
    return runs("diskbench", "RS", *times(value, wobble), block=block, details=details)


FAST_CACHED, FAST_WILD = disk(MIB, 16e9, 0.1, QUIET), disk(MIB, 16e9, 1.0, WILD)
SLOW_SURE, SLOW_WILD = disk(64 * KIB, 1e9, 1.0, QUIET), disk(64 * KIB, 1e9, 1.0, WILD)


@pytest.mark.parametrize(("fast", "slow"), [
    (FAST_CACHED, SLOW_SURE), (FAST_CACHED, SLOW_WILD), (FAST_WILD, SLOW_SURE)
])  # fmt: skip
def test_the_best_row_without_a_warning_speaks(tmp_path, fast, slow):
    found = headline_of(frames(tmp_path / "c", fast + slow), "disk")
    assert found.point is not None and found.point.own.block_bytes == 64 * KIB
    assert (found.warning is None) == (slow is SLOW_SURE)


def test_wrong_rows_do_not_speak_and_what_was_measured_once_says_so(tmp_path):
    of = frames(tmp_path / "c", FAST_CACHED + runs("cpubench", "DP", 5e10))
    found = headline_of(of, "disk")
    assert (found.point, found.text.code) == (None, "no-row")
    assert found.warning is not None
    warning = headline_of(of, "cpu").warning
    assert warning is not None and warning.code == "one-run"


def test_a_cache_does_not_stand_for_the_memory(tmp_path):
    records = runs("rambench", "RS", 9e11, variant="block") + runs("rambench", "RS", 2e10)
    found = headline_of(frames(tmp_path / "c", records), "memory")
    assert value(found.text, "value") == "20.00 GB/s"


@pytest.mark.parametrize(("factors", "case"), [
    ((1.3, 1.4, 1.2), "faster"), ((0.7, 0.8, 0.75), "slower"), ((1.0, 1.02, 0.99), "level"),
    ((2.0, 0.5, 1.0), "unclear"),
])  # fmt: skip
def test_the_best_row_stands_beside_its_best_reference(tmp_path, factors, case):
    records = runs("rambench", "RWS", *times(2e10, QUIET), concurrency=2)
    theirs = [2e10 * wobble / factor for wobble, factor in zip(QUIET, factors, strict=True)]
    records += runs("likwid-bench", "RWS", *theirs, concurrency=2, subsystem="memory")
    records += runs("rambench", "WR", *times(1e10, QUIET), concurrency=4)
    found = headline_of(frames(tmp_path / "c", records), "memory")
    assert value(found.text, "reference").case == case


def test_what_most_rows_share_is_said_once(tmp_path):
    records = []
    for threads in range(1, 9):
        details = {"cpu_share": 0.5 if threads > 2 else 1.0}
        values = 5e10 * threads, 5e10 * threads
        records += runs("cpubench", "DP", *values, concurrency=threads, details=details)
    of = frames(tmp_path / "c", records)
    assert [each.case for each in value(caveats(of)["disturbed-rows"], "parts")] == ["waited"]
    waited = [each for each in headlines.conditions(of) if "50.0" in each.text]
    assert len(waited) == 1 and value(waited[0], "rows") == 6
    assert headline_of(of, "cpu").warning is None
