"""cpubench, rambench and what all own kernels share: options given on, JSON checked against the
cell.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.unit.tools import samples

from peakmark.errors import ParseError
from peakmark.tools import REGISTRY

KERNEL_CASES = [
    case for case in samples.CASES if case.split("bench/")[0] in ("cpu", "ram", "disk", "net")
]


@pytest.mark.parametrize("case", KERNEL_CASES)
@pytest.mark.parametrize(
    "key",
    ["instrument", "version", "workload", "threads", "value", "unit", "seconds", "per_thread"],
)
def test_shared_keys_are_needed(case: str, key: str) -> None:
    cell, completed = samples.load(case)
    document = json.loads(completed.stdout)
    del document[key]
    with pytest.raises(ParseError, match=key):
        changed = dataclasses.replace(completed, stdout=json.dumps(document))
        REGISTRY[cell.instrument].parse(cell, changed)


@pytest.mark.parametrize("case", KERNEL_CASES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("instrument", "other"),
        ("unit", "GB/s"),
        ("threads", 99),
        ("value", 0),
        ("value", -1.0),
        ("value", "1"),
        ("seconds", 0),
    ],
)
def test_wrong_values_are_refused(case: str, key: str, value: Any) -> None:
    cell, completed = samples.load(case)
    text = json.dumps({**json.loads(completed.stdout), key: value})
    with pytest.raises(ParseError, match=key):
        REGISTRY[cell.instrument].parse(cell, dataclasses.replace(completed, stdout=text))


def test_details_of_a_kernel() -> None:
    details = samples.only(samples.parse("cpubench/dp-x2")).details
    assert details["isa"] == "avx2"
    assert details["instruction"] == "vfmadd213pd"
    assert details["clock_hz_before"] > 1e9
    assert "per_thread" not in details
    details = samples.only(samples.parse("rambench/rws-pool-x2")).details
    assert (details["working_set"], details["store"]) == ("pool", "non-temporal")
    assert details["pool"] == 64 << 20
