"""The facts of a real machine, changed, and what limits they give."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.unit import campaign_data

from peakmark import limits

DATA = campaign_data.DATA
VM: dict[str, Any] = json.loads((DATA / "machine" / "zen3-vm.json").read_text())


def machine(**changes: dict[str, Any]) -> dict[str, Any]:
    """The facts of a real VM with some of them changed, by part."""
    facts = copy.deepcopy(VM)
    for part, values in changes.items():
        facts[part] |= values
    return facts


def cpu(workload: str, concurrency: int, facts: dict[str, Any], **more: Any) -> limits.Limit:
    return limits.for_row("cpu", workload, "", None, concurrency, "rate", facts, **more)


def memory(
    workload: str, variant: str, block: int, concurrency: int, facts: dict[str, Any], **more: Any
) -> limits.Limit:
    metric = "latency" if workload == "LAT" else "throughput"
    return limits.for_row("memory", workload, variant, block, concurrency, metric, facts, **more)
