"""Rows for the tests of the checks."""

import json
from typing import Any

from tests.unit import campaign_data

from peakmark import statistics
from peakmark.analysis.checks import check_row
from peakmark.analysis.row import Measured, RunValue
from peakmark.limits import Limit

VM: dict[str, Any] = json.loads((campaign_data.DATA / "machine" / "zen3-vm.json").read_text())

CALM = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]

UNKNOWN = Limit(None, "", "", "", "unknown", "not known")


def row(
    values: list[float] | None = None,
    details: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    limit: Limit = UNKNOWN,
    facts: dict[str, Any] = VM,
    **identity: Any,
) -> Measured:
    values = CALM if values is None else values
    fields: dict[str, Any] = {
        "subsystem": "cpu", "instrument": "cpubench", "workload": "DP", "variant": "", "block": None, "concurrency": 1,
        "metric": "rate", "unit": "op/s",
    }  # fmt: skip
    summary = statistics.summarise(values)
    runs = tuple(RunValue(value, details or {}, context or {}) for value in values)
    return Measured(
        **(fields | identity),
        runs=runs,
        summary=summary,
        centre=summary.median,
        limit=limit,
        facts=facts,
    )


def codes(measured: Measured) -> list[str]:
    return [note.code for note in check_row(measured)]


def limit(value: float, unit: str = "op/s", clock: str = "observed") -> Limit:
    return Limit(value, unit, f"1 core x 3 GHz ({clock} clock)", "test", "measured", clock=clock)


VIRTUAL: dict[str, Any] = {"cpu": {"virtualised": "KVM", "cores": 4}}
PLACED = {"cores": 1, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}
