"""The own figure against that of a reference: which references count, and what is said of the
ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import presets
from tests.unit import campaign_data as make

from peakmark.analysis import findings, verdict
from peakmark.analysis.analysis import Analysis
from peakmark.messages import Severity
from peakmark.resources import ROOT
from peakmark.storage.results import Results


def test_neither_a_tiny_matrix_nor_an_estimate_is_a_reference(tmp_path: Path) -> None:
    def reference(name: str, tool: str, details: dict[str, Any], subsystem: str = "cpu") -> str:
        own, workload, metric, variant, block = {
            "cpu": ("cpubench", "DP", "rate", "", None), "memory": ("rambench", "RS", "throughput", "pool", 1 << 20),
        }[subsystem]  # fmt: skip
        records = []
        for instrument, more in ((own, {}), (tool, details)):
            of = make.cell(instrument, workload, subsystem=subsystem, variant=variant, block=block)
            records.append(make.record(of, [make.measurement(of, metric, 5e10, details=more)]))
        heads = verdict.verdicts(Analysis(Results.read(make.write(tmp_path / name, records))).rows)
        return next(one.reference for one in heads if one.subsystem == subsystem)

    assert reference("tiny", "hpl", {"seconds": 0.08}) == ""
    assert reference("whole", "hpl", {"seconds": 20.0}) == "1.00 × HPL (n = 1)"
    assert reference("guess", "pmbw", {"estimate": True}, "memory") == ""
    assert reference("real", "pmbw", {}, "memory") == "1.00 × pmbw (n = 1)"


def test_a_tiny_matrix_and_an_estimate_contradict_nobody(tmp_path: Path) -> None:
    def disagreement(
        name: str, instrument: str, tool: str, workload: str, details: dict[str, Any], **place: Any
    ) -> bool:
        records = []
        for program, value, more in ((instrument, 5e10, {}), (tool, 2e10, details)):
            of = make.cell(program, workload, **place)
            metric = "rate" if place["subsystem"] == "cpu" else "throughput"
            records.append(make.record(of, [make.measurement(of, metric, value, details=more)]))
        rows = Analysis(Results.read(make.write(tmp_path / name, records))).rows
        (row,) = (row for table in rows.values() for row in table)
        found = {one.heading for one in findings.conclusions([row])}
        assert ("Disagreement" in found) == any(
            note.code == "disagreement" for note in row.warnings
        )
        return "Disagreement" in found

    assert not disagreement("tiny", "cpubench", "hpl", "DP", {"seconds": 0.08}, subsystem="cpu")
    assert disagreement("whole", "cpubench", "hpl", "DP", {"seconds": 20.0}, subsystem="cpu")
    memory = {"subsystem": "memory", "variant": "block", "block": 1 << 20}
    assert not disagreement("guess", "rambench", "pmbw", "RS", {"estimate": True}, **memory)
    assert disagreement("real", "rambench", "pmbw", "RS", {}, **memory)


def _disk(folder: Path, records: list[dict[str, Any]]) -> verdict.Verdict:
    heads = verdict.verdicts(make.judge(folder, records).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    return disk


def test_a_ratio_names_buffers_that_only_one_had_in_huge_pages(tmp_path: Path) -> None:
    own = make.runs("diskbench", "RS", 1e9, details={"huge_pages": 2 << 20})
    disk = _disk(tmp_path / "c", [*own, *make.runs("fio", "RS", 1e9)])
    assert disk.reference.startswith("1.00 × fio (n = 1;") and "MyDiskBench" in disk.reference
    assert "huge pages" in disk.reference
    assert (disk.confidence, disk.why.partition(":")[0]) == ("one run", "measured once")


def test_a_ratio_of_two_times_says_so(tmp_path: Path) -> None:
    """Repetitions of which no round has both: the machine may have been another."""
    own = make.runs("diskbench", "RS", 1e9, 1e9, repetition=1)
    disk = _disk(tmp_path / "c", [*own, *make.runs("fio", "RS", 1e9)])
    assert "another time" in disk.reference


@pytest.mark.parametrize(
    ("huge", "factor", "level"),
    [
        (2 << 20, 1.4, None),
        (2 << 20, 1.8, Severity.NOTE),
        (2 << 20, 2.5, Severity.UNSURE),
        (0, 1.8, Severity.UNSURE),
    ],
)
def test_a_known_difference_explains_a_factor_of_two(
    tmp_path: Path, huge: int, factor: float, level: Severity | None
) -> None:
    own = make.runs("diskbench", "RS", 1e9 * factor, details={"huge_pages": huge})
    records = [*own, *make.runs("fio", "RS", 1e9)]
    (row,) = make.judge(tmp_path / "c", records).rows["disk_throughput"]
    assert [note.severity for note in row.warnings if note.code == "disagreement"] == (
        [level] if level else []
    )


@pytest.mark.parametrize(
    "name", ["config.yaml", *(f"presets/{name}.yaml" for name in presets.NAMES)]
)
def test_what_ships_repeats_references_as_often_as_the_own_kernels(name: str) -> None:
    shipped = yaml.safe_load((ROOT / "config" / name).read_text())
    assert shipped["reference_repetitions"] == shipped["repetitions"]


@pytest.mark.parametrize(
    ("ours", "theirs", "ratio", "facts"),
    [
        ((1.0, 1.2, 1.1), (1.0, 1.0, 1.0), "1.10", "(n = 3; 1.00 to 1.20)"),
        ((1.0, 0.5, 0.8), (1.0, 0.55, 0.4), "1.00", "(n = 3; 0.909 to 2.00)"),
        ((0.9, 0.51, 0.8), (1.0, 0.5, 0.79), "1.01", "(n = 3; 0.900 to 1.02)"),
        ((1.0, 0.51, 0.61), (1.2, 0.5, 0.6), "1.02", "(n = 3; 0.833 to 1.02)"),
        ((1.0, 0.9, 0.61), (0.99, 0.95, 0.6), "1.01", "0.947 by the figures"),
        ((1.0, 1.0, 0.5), (1.0,), "1.00", "(n = 1)"),
        ((1.0, 0.6, 0.5), (0.9,), "1.11", "0.667 by the figures"),
    ],
)
def test_a_ratio_of_rounds_does_not_hide_that_its_figures_say_otherwise(
    tmp_path: Path, ours: Sequence[float], theirs: Sequence[float], ratio: str, facts: str
) -> None:
    own = make.runs("diskbench", "RS", *(1e9 * value for value in ours))
    other = make.runs("fio", "RS", *(1e9 * value for value in theirs))
    text = _disk(tmp_path / "c", [*own, *other]).reference
    assert text.startswith(f"{ratio} × fio (") and facts in text
    assert ("figures" in text) == ("figures" in facts)
