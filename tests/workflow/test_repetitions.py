"""More repetitions of a row, by the whole flow on this machine."""

from tests.checkout import TINY, TO_RECORDS, TO_TABLES

ALONE = {"memory": [], "disk": [], "network": []}


def test_more_repetitions_change_no_record(checkout):
    grids = [{"workloads": [name], "concurrency": [1], "repetitions": 2} for name in ("DP", "SP")]
    values = {**TINY, **ALONE, "cpu": grids}
    checkout.measure(checkout.write_config("tiny.yaml", values), *TO_TABLES)
    before = checkout.started("tiny")
    rounds = [
        int(name.rpartition("/")[2]) for name in sorted(before, key=lambda name: before[name])
    ]
    assert rounds == [0, 0, 1, 1]  # one repetition of all rows after the other

    grids[0]["repetitions"] = 4
    checkout.measure(checkout.write_config("tiny.yaml", values), *TO_RECORDS)
    more = checkout.started("tiny")
    assert {name: more[name] for name in before} == before and len(more) == 6

    grids[0]["repetitions"] = 2
    checkout.measure(checkout.write_config("tiny.yaml", values), *TO_RECORDS)
    assert checkout.started("tiny") == more
    assert "4 of 4 cells done" in checkout.peakmark("status", "results/tiny").stdout
