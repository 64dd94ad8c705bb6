"""What a run of a shipped preset must have left, on this machine as on a cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from peakmark.resources import ROOT
from peakmark.tools import REGISTRY

NAMES = tuple(path.stem for path in sorted((ROOT / "config" / "presets").glob("*.yaml")))
DEFAULT = "node"
"""What config/config.yaml calls its campaign: what is measured when no file is named."""
_OWN = ("cpubench", "rambench", "diskbench", "netbench")


def short(name: str) -> list[str]:
    """Words for --config beside a preset's own file, so that it ends soon. HPL needs a second to
    solve anything.
    """
    return [
        "repetitions=1",
        "reference_repetitions=1",
        "repeat_disturbed=0",
        f"scale={0.25 if name == 'quick' else 0.0001}",
    ]


def missing(without: Collection[str] = ()) -> set[str]:
    """The reference tools that this machine lacks, or that have only programs named in ``without``."""
    return {
        name
        for name, tool in REGISTRY.items()
        if name not in _OWN
        and not any(
            shutil.which(program) and program not in without for program in tool.executables
        )
    }


def assert_whole(
    results: Path, records: Mapping[str, Mapping[str, Any]], without: Collection[str] = ()
) -> None:
    """Report and page are there; every planned cell has a record, and what is missing is named, and
    nothing else is.
    """
    assert (results / "report.pdf").read_bytes().startswith(b"%PDF")
    assert (results / "report.html").exists()
    plan = json.loads((results / "plan.json").read_text())
    assert len(records) == len(plan["cells"])
    lacking = missing(without)
    for name, record in records.items():
        tool = name.split("/")[1]
        not_there = record["status"] == "unavailable" and "not found on" in record["reason"]
        assert not_there == (tool in lacking), f"{name} is {record['status']}: {record['reason']}"
        if tool == "hpl" and tool not in lacking and plan["campaign"] == "quick":
            assert record["status"] == "ok", record["reason"]
