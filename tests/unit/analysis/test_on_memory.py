"""Checks of memory: pools that caches hold, and how rows wrote."""

import copy

import pytest
from tests.unit.analysis.checked import PLACED, VM, codes, row

from peakmark.analysis.checks import check_row
from peakmark.analysis.row import Measured, RunValue
from peakmark.messages import Severity


@pytest.mark.parametrize(
    ("pool", "marked"), [(1 << 30, False), (128 << 20, False), (127 << 20, True), (1 << 20, True)]
)
def test_a_pool_that_the_caches_serve(pool: int, marked: bool) -> None:
    identity = {"subsystem": "memory", "instrument": "rambench", "workload": "RWS", "block": 1024}
    details = {"working_set": "pool", "working_set_bytes": pool}
    found = check_row(row(details=details, variant="pool", **identity))
    assert [note.code for note in found] == (["pool-in-cache"] if marked else [])
    if marked:
        assert dict(found[0].values)["needed"] == "128MiB"
    assert codes(row(details=details, variant="block", **identity)) == []


def test_a_pool_is_compared_with_the_caches_its_threads_reach() -> None:
    facts = copy.deepcopy(VM)
    facts["cpu"]["caches"] = [
        {"level": 3, "type": "unified", "size": 32 << 20, "shared_by": 16, "count": 2}
    ]
    identity = {
        "subsystem": "memory",
        "instrument": "rambench",
        "workload": "RWS",
        "block": 1024,
        "variant": "pool",
    }
    details = {"working_set_bytes": 128 << 20}
    for context in ({}, {"placed": PLACED}):
        assert (
            codes(row(facts=facts, details=details, context=context, concurrency=1, **identity))
            == []
        )
    beside = {
        "placed": {**PLACED, "last_level_bytes": 32 << 20}
    }  # two threads on the cores of one cache
    assert codes(row(facts=facts, details=details, context=beside, concurrency=2, **identity)) == []
    both = {"placed": {**PLACED, "last_level_bytes": 64 << 20}}
    assert codes(row(facts=facts, details=details, context=both, concurrency=2, **identity)) == [
        "pool-in-cache"
    ]


def test_a_pool_row_says_how_it_wrote() -> None:
    identity = {
        "subsystem": "memory",
        "instrument": "rambench",
        "workload": "WS",
        "variant": "pool",
    }
    for store, words in (
        ("temporal", "ordinary stores"),
        ("streaming", "streaming stores"),
        ("libc", "C library"),
    ):
        [note] = check_row(row(details={"store": store}, **identity))
        assert (note.code, note.severity) == ("stores", Severity.NOTE) and words in note.text
    runs = [RunValue(100.0, {"store": store}) for store in ("temporal", "streaming")]
    assert "stores-differ" in codes(Measured(**{**vars(row(**identity)), "runs": runs}))
    assert codes(row(details={"store": None}, **identity)) == []
