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

from peakmark.judging import findings, verdict
from peakmark.judging.analysis import Analysis
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
        found = {one.heading for one in findings.of([row])}
        assert ("Disagreement" in found) == any(
            note.code == "disagreement" for note in row.warnings
        )
        return "Disagreement" in found

    assert not disagreement("tiny", "cpubench", "hpl", "DP", {"seconds": 0.08}, subsystem="cpu")
    assert disagreement("whole", "cpubench", "hpl", "DP", {"seconds": 20.0}, subsystem="cpu")
    memory = {"subsystem": "memory", "variant": "block", "block": 1 << 20}
    assert not disagreement("guess", "rambench", "pmbw", "RS", {"estimate": True}, **memory)
    assert disagreement("real", "rambench", "pmbw", "RS", {}, **memory)


def test_a_ratio_names_buffers_that_only_one_had_in_huge_pages(tmp_path: Path) -> None:
    records = []
    for tool, details in (("diskbench", {"huge_pages": 1}), ("fio", {})):
        of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9, details=details)]))
    heads = verdict.verdicts(Analysis(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == "1.00 × fio (n = 1; only MyDiskBench's buffers are in huge pages)"
    assert (disk.confidence, disk.why) == (
        "one run",
        "measured once: nothing is known of the spread",
    )


def test_a_ratio_of_two_times_says_so(tmp_path: Path) -> None:
    """Repetitions of which no round has both: the machine may have been another."""
    records = []
    for tool, number in (("diskbench", 1), ("diskbench", 2), ("fio", 0)):
        of = make.cell(
            tool, "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number
        )
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9)]))
    heads = verdict.verdicts(Analysis(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == "1.00 × fio (n = 1; measured at another time)"


@pytest.mark.parametrize(
    ("huge", "factor", "level"),
    [
        (True, 1.4, None),
        (True, 1.8, Severity.NOTE),
        (True, 2.5, Severity.UNSURE),
        (False, 1.8, Severity.UNSURE),
    ],
)
def test_a_known_difference_explains_a_factor_of_two(
    tmp_path: Path, huge: bool, factor: float, level: Severity | None
) -> None:
    records = []
    for tool, value, details in (
        ("diskbench", factor, {"huge_pages": int(huge)}),
        ("fio", 1.0, {}),
    ):
        of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20)
        records.append(
            make.record(of, [make.measurement(of, "throughput", 1e9 * value, details=details)])
        )
    (row,) = Analysis(Results.read(make.write(tmp_path / "c", records))).rows["disk_throughput"]
    assert [note.severity for note in row.warnings if note.code == "disagreement"] == (
        [level] if level else []
    )


@pytest.mark.parametrize(
    "name", ["config.yaml", *(f"presets/{name}.yaml" for name in presets.NAMES)]
)
def test_what_ships_repeats_references_as_often_as_the_own_kernels(name: str) -> None:
    shipped = yaml.safe_load((ROOT / "config" / name).read_text())
    assert shipped["reference_repetitions"] == shipped["repetitions"]


def test_a_ratio_says_of_how_many_rounds_it_is_and_how_far_they_differ(tmp_path: Path) -> None:
    records = []
    for number, (ours, theirs) in enumerate(((1.0e9, 1.0e9), (1.2e9, 1.0e9), (1.1e9, 1.0e9))):
        for tool, value in (("diskbench", ours), ("fio", theirs)):
            of = make.cell(
                tool, "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number
            )
            records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    heads = verdict.verdicts(Analysis(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == "1.10 × fio (n = 3; 1.00 to 1.20)"


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ((1.0, 0.5, 0.8), (1.0, 0.55, 0.4), "1.00 × fio (n = 3; 0.909 to 2.00)"),
        ((0.9, 0.51, 0.8), (1.0, 0.5, 0.79), "1.01 × fio (n = 3; 0.900 to 1.02)"),
        ((1.0, 0.51, 0.61), (1.2, 0.5, 0.6), "1.02 × fio (n = 3; 0.833 to 1.02)"),
        (
            (1.0, 0.9, 0.61),
            (0.99, 0.95, 0.6),
            "1.01 × fio (n = 3; 0.947 to 1.02; 0.947 by the figures of its table, so neither is shown to be ahead)",
        ),
        ((1.0, 1.0, 0.5), (1.0,), "1.00 × fio (n = 1)"),
        (
            (1.0, 0.6, 0.5),
            (0.9,),
            "1.11 × fio (n = 1; 0.667 by the figures of its table, which are of other rounds too)",
        ),
    ],
)
def test_a_ratio_of_rounds_does_not_hide_that_its_figures_say_otherwise(
    tmp_path: Path, ours: Sequence[float], theirs: Sequence[float], text: str
) -> None:
    records = []
    for tool, values in (("diskbench", ours), ("fio", theirs)):
        for number, value in enumerate(values):
            of = make.cell(
                tool, "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number
            )
            records.append(make.record(of, [make.measurement(of, "throughput", 1e9 * value)]))
    heads = verdict.verdicts(Analysis(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == text
