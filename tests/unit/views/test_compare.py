"""Comparing: the verdict says what the values carry, and no more."""

import numpy as np
import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark import cli
from peakmark.errors import ConfigError
from peakmark.views import compare
from peakmark.views.compare import KEY, Dataset, dataset_of, describe

STEADY = [1.00, 1.01, 0.99, 1.02, 0.98, 1.005]
CALM = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)
SAME = "no difference shown"


def disk(folder, factor=1.0, *, node="any", limited=False, hour=4):
    """A disk, its throughput and latency, ``factor`` times as fast; ``limited`` by a cgroup at what
    it reads; measured at an ``hour``.
    """
    started = {"started": f"2026-11-21T0{hour}:00:00+00:00"}
    context = started | ({"io_limits": {"read_bps": int(4e8 * factor)}} if limited else {})
    rates = [4e8 * factor * value for value in STEADY]
    records = make.runs("diskbench", "RS", *rates, node=node, context=context)
    where = {"block": 4096, "node": node, "context": started}
    for each in make.runs("diskbench", "RR", *STEADY, metric="iops", **where):
        (iops,) = each["measurements"]
        value = iops["value"]
        iops["value"] = 1e4 * factor * value
        time = {"metric": "latency", "unit": "s", "value": 1e-4 / factor * value}
        records.append(each | {"measurements": [iops, iops | time]})
    return dataset_of(folder.name, make.frames(folder, records))


@pytest.fixture(scope="module")
def disks(tmp_path_factory):
    """The folder of disks that several tests compare; tests must not change them."""
    folder = tmp_path_factory.mktemp("disks")
    disk(folder / "a"), disk(folder / "slower", 0.9), disk(folder / "copy")
    disk(folder / "later", hour=8)
    return folder


def sides(rows, table="cpu"):
    """Two sides with these values of A and B."""
    instrument = {"cpu": "cpubench", "memory_latency": "rambench"}[table]
    points = [
        (table, instrument, "DP", "", 0, str(threads), "", "")
        for threads in range(1, len(rows) + 1)
    ]
    keys = pd.DataFrame(points, columns=KEY)
    keys = keys.assign(trust="ok", unequal_nodes="", facts=[{} for _ in rows])
    return [Dataset("s", keys, pd.DataFrame(side)) for side in zip(*rows, strict=True)]


def lines(before, after, **more):
    """The compared rows, with the factor between them."""
    found, _, _ = compare.compare(before, after, compare.Rules(**more))
    return list(found.assign(ratio=np.exp(found["change"])).itertuples())


@pytest.mark.parametrize(("before", "after", "table", "tolerance", "verdict"), [
    (STEADY, [1.2 * value for value in STEADY], "cpu", 0.0, "better"),
    (STEADY, [0.8 * value for value in STEADY], "cpu", 0.0, "worse"),
    (STEADY, [1.2 * value for value in STEADY], "memory_latency", 0.0, "worse"),
    (STEADY, [0.8 * value for value in STEADY], "memory_latency", 0.0, "better"),
    (STEADY, STEADY, "cpu", 0.0, SAME),
    (STEADY, [1.002 * value for value in STEADY], "cpu", 0.0, SAME),
    # Too few values cannot tell, however far apart.
    ([1.0] * 2, [9.0] * 2, "cpu", 0.0, "cannot tell"),
    ([1.0] * 1, [9.0] * 8, "cpu", 0.0, "cannot tell"),
    ([1.0] * 3, [9.0] * 3, "cpu", 0.0, "better"),
    (CALM, [0.96 * value for value in CALM], "cpu", None, "worse"),
    (CALM, [0.98 * value for value in CALM], "cpu", None, SAME),
    (CALM, [1.04 * value for value in CALM], "cpu", 0.05, SAME),
])  # fmt: skip
def test_the_verdict_follows_interval_and_direction(before, after, table, tolerance, verdict):
    tolerance = compare.TOLERANCE if tolerance is None else tolerance
    one, other = sides([(before, after)], table)
    (found,) = lines(one, other, tolerance=tolerance)
    assert found.ratio == pytest.approx(after[0] / before[0], rel=0.003)
    assert found.verdict == verdict


def scaled(values, factor):
    """A row of which B has so many times the values of A."""
    return values, [factor * value for value in values]


def test_two_campaigns_row_by_row(tmp_path):
    """Nodes of other names are compared where each side has one."""
    before, after = disk(tmp_path / "a", node="n1"), disk(tmp_path / "b", 0.5, node="other")
    _, *only = compare.compare(before, after)
    found = lines(before, after)
    assert [one.table for one in found] == ["disk_throughput", "disk_latency", "disk_iops"]
    assert {one.verdict for one in found} == {"worse"}
    assert found[1].ratio == pytest.approx(2.0)
    assert only == [0, 0]
    whole = compare.judge(before, after)
    text, counts = compare.report(whole), whole.counts
    assert counts == {"worse": 3}
    assert "care" not in text
    verdicts, largest, _, fact, *_ = text.splitlines()
    assert verdicts == "Of 3 rows: 3 worse."
    assert largest.startswith("Largest change: disk_") and "2.0 times slower (worse)" in largest
    assert "A has n1, B has other" in fact


def test_a_verdict_on_a_doubtful_row_says_so(tmp_path):
    before, after = disk(tmp_path / "a"), disk(tmp_path / "b", 0.5, limited=True)
    found = lines(before, after)
    assert [(one.trust_a, one.trust_b) for one in found] == [
        ("ok", "no"),
        ("ok", "ok"),
        ("ok", "ok"),
    ]
    assert "(B no)" in compare.report(compare.judge(before, after))
    # Values that are right, but not those of the device, are judged too.
    records = make.runs("netbench", "TCP", *STEADY, context=make.reached("lo"))
    loopback = dataset_of("lo", make.frames(tmp_path / "lo", records))
    assert "shown (A no, B no)" in compare.report(compare.judge(loopback, loopback))


def test_nothing_in_common_is_said(tmp_path):
    side = dataset_of("c", make.frames(tmp_path / "c", make.runs("cpubench", "DP", 1e9)))
    with pytest.raises(ConfigError, match=r"no row in common.* or nodes"):
        compare.judge(side, disk(tmp_path / "other"))


def test_exit_codes_are_fit_for_ci(disks, capsys):
    a, slower, nothing = (str(disks / name) for name in ("a", "slower", "nothing"))
    fail = ["--fail-on", "worse"]
    assert cli.main(["compare", a, a, *fail]) == 0
    assert cli.main(["compare", a, slower]) == 0
    assert cli.main(["compare", a, slower, *fail]) == 1
    assert cli.main(["compare", slower, a, *fail]) == 0
    capsys.readouterr()
    assert cli.main(["compare", a, nothing]) == 4
    assert nothing in capsys.readouterr().err


def test_without_a_verdict_a_comparison_that_may_fail_cannot_tell(tmp_path, capsys):
    once, more = str(tmp_path / "once"), str(tmp_path / "more")
    make.write(tmp_path / "once", make.runs("cpubench", "DP", 4e10))
    make.write(tmp_path / "more", make.runs("cpubench", "DP", *make.near(3e10)))
    assert cli.main(["compare", once, more]) == 0
    capsys.readouterr()
    assert cli.main(["compare", once, more, "--fail-on", "worse"]) == 3
    assert "cannot tell" in capsys.readouterr().err


def noisy(seed, slow=-1):
    """Six noisy values of each of forty rows; one row at four fifths of the rate."""
    random = np.random.default_rng(seed)
    rates = [4e8 * (0.8 if row == slow else 1.0) for row in range(40)]
    return [(rate * random.lognormal(0, 0.02, 6)).tolist() for rate in rates]


def test_of_many_unchanged_rows_none_is_called_worse_and_one_changed_row_is():
    for seed in (2, 3, 4):
        before, after = sides(list(zip(noisy(1), noisy(seed), strict=True)))
        found = lines(before, after, tolerance=0.0)
        assert not [one for one in found if one.verdict in compare.CLAIMS]
    before, after = sides(list(zip(noisy(1), noisy(5, slow=7), strict=True)))
    found = lines(before, after, tolerance=0.0)
    assert [one.threads for one in found if one.verdict == "worse"] == ["8"]


@pytest.mark.parametrize(("beside", "verdict"), [(0, "better"), (109, SAME)])
def test_a_claim_that_chance_brings_among_many_rows_does_not_stand(beside, verdict):
    """By itself one row of two samples that lie apart is a claim; among 110 rows chance brings it."""
    before, after = (1.0, 1.1, 1.2, 1.05, 1.15, 1.12), (1.1, 1.2, 1.28, 1.14, 1.23, 1.21)
    one, other = sides([(before, after), *[(before, before)] * beside])
    (claim, *others) = lines(one, other, tolerance=0.0)
    assert claim.verdict == verdict
    assert {each.verdict for each in others} <= {SAME}


def of_words(folder, requested):
    """DP rows by what was asked for; a word means two threads."""
    records = []
    for word, value in requested.items():
        is_word = isinstance(word, str)
        context = make.placed(2, 2) if is_word else {}
        for each in make.runs("cpubench", "DP", *make.near(value), concurrency=2, context=context):
            each["cell"]["concurrency"] = word
            records.append(each)
    return dataset_of(folder.name, make.frames(folder, records))


def test_a_word_and_the_number_that_it_meant_are_two_rows(tmp_path):
    before = of_words(tmp_path / "a", {2: 1e9, "cores": 2e9})
    found = lines(before, of_words(tmp_path / "b", {2: 1e9, "cores": 1e9}))
    assert [(describe(one), one.verdict) for one in found] == [
        ("cpu cpubench DP x2", "no difference shown"), ("cpu cpubench DP xcores", "worse"),
    ]  # fmt: skip
    only, first, second = compare.compare(before, of_words(tmp_path / "c", {2: 1e9}))
    assert (len(only), first, second) == (1, 1, 0)


def test_rows_stand_in_the_order_of_their_change(tmp_path):
    before, after = sides([scaled(CALM, factor) for factor in (1.0, 1.2, 0.5)])
    text = compare.report(compare.judge(before, after))
    rows = [line for line in text.splitlines() if line.startswith("cpu cpubench")]
    assert [line.split()[3] for line in rows] == ["x3", "x2", "x1"]
    largest = "Largest change: cpu cpubench DP x3 is 2.0 times slower (worse)."
    assert text.splitlines()[1] == largest
