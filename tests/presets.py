"""What a run of a shipped preset must have left, on this machine as on a cluster."""

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
_OWN = ("cpubench", "rambench", "diskbench", "netbench", "mpibench")


def short(name: str) -> list[str]:
    """Words for --config beside a preset's own file, so that it ends soon."""
    once = "repetitions=1 reference_repetitions=1 repeat_disturbed=0"
    return [*once.split(), f"scale={0.02 if name == 'quick' else 0.0001}"]


def missing(without: Collection[str] = ()) -> set[str]:
    """The reference tools that this machine lacks, or that have only programs named in ``without``."""

    def is_here(program: str) -> bool:
        return program not in without and shutil.which(program) is not None

    references = {name: tool for name, tool in REGISTRY.items() if name not in _OWN}
    return {name for name, tool in references.items() if not any(map(is_here, tool.executables))}


def assert_whole(
    results: Path, records: Mapping[str, Mapping[str, Any]], without: Collection[str] = ()
) -> None:
    """Report and page are there, every planned cell has a record, and what is missing is named."""
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
