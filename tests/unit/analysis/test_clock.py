"""Which clock a row's limit takes: the one under the work where the records have it, as before
where they do not.
"""

from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import limits, statistics
from peakmark.analysis.checks import check_row
from peakmark.analysis.row import Measured, Row, RunValue
from peakmark.messages import Message, Severity

FACTS = {
    "host": "node1",
    "cpu": {"clock_hz": {"nominal": 2e9}, "cores": 2, "isa": ["avx2", "fma"], "isa_best": "avx2", "microarchitecture": "Zen 3"},
    "limits": {"physical_cores_allowed": 2},
}  # fmt: skip
IDLE = {"clock_hz_before": 3.0e9, "clock_hz_after": 3.1e9}


def row(folder: Path, loaded: list[float | None]) -> Row:
    """The row of cpubench DP x1 whose repetitions observed these clocks under the work, beside a
    reference.
    """
    records = make.runs("likwid-bench", "DP", 42e9)
    for repetition, hz in enumerate(loaded):
        details = IDLE if hz is None else {**IDLE, "clock_hz_loaded": hz}
        records += make.runs(
            "cpubench", "DP", 43e9, repetition=repetition, details=details, context=IDLE
        )
    [built] = make.judge(folder / "c", records, facts=FACTS).rows["cpu"]
    return built


def test_the_limit_takes_the_clock_under_the_work(tmp_path: Path) -> None:
    built = row(tmp_path, [2.70e9, 2.72e9, 2.75e9])
    assert built.limit.value == pytest.approx(2.72e9 * 16)
    assert "under the work" in built.limit.formula
    assert "clock-lowered" in {note.code for note in built.warnings}
    # The reference has the same limit: it told no clock of its own.
    assert built.series["likwid-bench"].efficiency == pytest.approx(42 / (2.72 * 16))


def test_runs_that_could_not_tell_it_leave_it_to_the_others(tmp_path: Path) -> None:
    assert row(tmp_path, [None, 2.72e9, None]).limit.value == pytest.approx(2.72e9 * 16)


def test_records_from_before_are_read_as_before(tmp_path: Path) -> None:
    built = row(tmp_path, [None, None, None])
    assert built.limit.value == pytest.approx(3.05e9 * 16)
    assert "(observed clock)" in built.limit.formula
    assert "clock-lowered" not in {note.code for note in built.warnings}


def crowded(
    held: list[int | None], share: float = 1.0, threads: int = 2, cores: int = 2
) -> list[Message]:
    """Notes of a slow row (0.6 of its limit) whose kernel saw so many cores' pipes used by others,
    by repetition.
    """
    values = [60.0 + number / 10 for number in range(len(held))]
    placed = {"placed": {"cores": cores, "sockets": 1, "numa_nodes": [0]}}
    details = [
        {"cpu_share": share} | ({} if count is None else {"held_up": count}) for count in held
    ]
    runs = tuple(
        RunValue(value, detail, placed) for value, detail in zip(values, details, strict=True)
    )
    summary = statistics.summarise(values)
    limit = limits.Limit(
        100.0, "op/s", "2 cores x 3 GHz (observed clock)", "test", "measured", clock="observed"
    )
    identity = ("cpu", "cpubench", "QPDOT", "", None, threads, "rate", "op/s")
    return check_row(
        Measured(
            *identity, runs=runs, summary=summary, centre=summary.median, limit=limit, facts=FACTS
        )
    )


def test_a_core_whose_pipes_others_used_is_named() -> None:
    """Seen on a guest: QPDOT on two cores at 0.85 of its limit with all of its CPUs' time, while
    the kernel told no clock.
    """
    [note] = [one for one in crowded([0, 1, 2, 2, 0]) if one.code != "few"]
    assert (note.code, note.severity) == ("crowded-core", Severity.UNSURE)
    assert "2 cores in 3 of 5" in note.fact
    [seldom] = [one for one in crowded([0, 1, 0, 0, 0]) if one.code == "crowded-core"]
    assert seldom.severity is Severity.NOTE and "1 core in 1 of 5" in seldom.fact
    codes = [note.code for note in crowded([0, 0, 0, 0, 0])]
    assert "slow-core" in codes and "crowded-core" not in codes
    assert "slow-core" in [note.code for note in crowded([None] * 5)], "records made before"


def test_threads_that_hold_each_other_up_have_no_neighbour() -> None:
    """Four threads on two cores share their pipes as asked; one that waited for its CPU was held up
    by that.
    """
    assert "crowded-core" not in [note.code for note in crowded([4] * 5, threads=4)]
    assert "crowded-core" not in [note.code for note in crowded([1] * 5, share=0.5)]
