"""The machine's facts that belong in every line of a benchmark's CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def facts_in_short(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The scalars that belong in every line of the CSV."""
    cpu, os_facts = facts["cpu"], facts["os"]
    return {
        "host": facts["host"],
        "cpu": cpu.get("model_name"),
        "microarchitecture": cpu.get("microarchitecture"),
        "cpus": len(facts["limits"]["cpus_allowed"]),
        "clock_hz": (cpu.get("clock_hz") or {}).get("observed"),
        "kernel": os_facts.get("kernel"),
        "date": facts["collected"],
        "load": round(os.getloadavg()[0], 2),
    }
