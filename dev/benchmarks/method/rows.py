"""Simulated rows: quiet ones that are to be used with care, intervals that miss, equal ones that a finding
calls different, one placement that is called several. Judged by the code that judges measurements.

Values are lognormal, as rates and times are positive; ``spread`` is their coefficient of variation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.method.promises import Count, Counts
from peakmark import plan, statistics
from peakmark.catalogue import SHAPES
from peakmark.config import campaign
from peakmark.resources import ROOT
from peakmark.rows import checks, comparisons, placements, schema
from peakmark.rows.labels import Labels
from peakmark.rows.runs import ROW, read_runs
from peakmark.storage import planfile
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME

Values = NDArray[np.float64]

PRESETS = ("config/presets/quick.yaml", "config/config.yaml")
"""Configurations whose grids findings are tried on."""
NOISES = ("spreads of 0.2 to 5 %", "spread of 10%", "some repetitions disturbed")
MANY_THREADS = 8
"""Threads that a word such as cores stands for."""
CACHES = {"L1": 32 << 10, "L2": 1 << 20, "L3": 1 << 40}
"""Levels of usual caches, and the largest block that each holds, B."""
CERTAIN = "in every repetition"
TAIL, FAR = 0.1, 0.15
"""Share of repetitions that something slowed down, and by how much (standard deviation)."""


def warnings(rows: int, seed: int = 1) -> Counts:
    """Rows of a machine as restless as still counts as quiet: how many call for care."""
    for n in (3, 4, 6, 10, 20, 30):
        lot = np.random.default_rng((seed, n))
        many = lot.normal(1.0, checks.QUIET_CV, size=(rows, n))
        careful = [values for values in many if checks.is_wide(values) or checks.drift_of(values)]
        yield f"quiet rows with care, n = {n}", Count(len(careful), rows)


def coverage(rows: int, seed: int = 1) -> Counts:
    """Intervals of the median that do not hold the true one, of rows that spread by 1 to 5 %."""
    for n in (6, 10, 20, 30):
        lot = np.random.default_rng((seed, n))
        missed = 0
        for _ in range(rows):
            values = np.exp(lot.normal(0, 0.01 * 5 ** lot.random(), size=30))
            interval = statistics.median_interval(values[:n])
            missed += not interval.low <= 1.0 <= interval.high
        yield f"95 % intervals that miss, n = {n}", Count(missed, rows)


def equal(campaigns: int, seed: int = 1) -> Counts:
    """Yield how many unchanged campaigns a finding calls different, on the presets' own grids.

    All rows of a campaign are equal. They spread by 0.2 to 5 %, by 10 %, or some repetitions are
    disturbed.
    """
    for preset in PRESETS:
        tables = planned_rows(preset)
        for kind in NOISES:
            lot = np.random.default_rng((seed, *preset.encode(), *kind.encode()))
            different = sum(names_difference(tables, kind, lot) for _ in range(campaigns))
            name = f"unchanged campaigns called different in findings, grids of {preset}, {kind}"
            yield name, Count(different, campaigns)


def one_placement(campaigns: int, seed: int = 1) -> Counts:
    """Yield how many campaigns of one placement are said to have several.

    Times from core to core spread by 5 or 10 %. Something else makes those of some runs up to three times as
    long: one of its two times, or both.
    """
    for spread, one, both in ((0.1, 0.0, 0.0), (0.05, 0.1, 0.0), (0.05, 0.0, 0.05)):
        for runs in (20, 44, 200):
            lot = np.random.default_rng((seed, runs))
            claimed = 0
            for _ in range(campaigns):
                times = np.exp(lot.normal(0, spread, size=(runs, 2)))
                for share, shape in ((one, (runs, 2)), (both, (runs, 1))):
                    longer = 1 + 2 * lot.random(shape)
                    times *= np.where(lot.random(shape) < share, longer, 1.0)
                frame = pd.DataFrame(times, columns=placements.READINGS)
                bands = placements.find_bands(frame.assign(record=frame.index))
                claimed += bands.nunique() > 1
            disturbed = f"{one:.0%} of times and {both:.0%} of runs disturbed"
            name = f"one placement called several, {runs} runs, spread of {spread:.0%}, {disturbed}"
            yield name, Count(claimed, campaigns)


def planned_rows(preset: str) -> list[pd.DataFrame]:
    """Return the rows that peakmark's kernels would have, a frame for each table.

    ``n`` is the number of planned repetitions.
    """
    made = plan.make(campaign.read([ROOT / preset]))
    with TemporaryDirectory() as name:
        folder = Path(name) / made.campaign
        folder.mkdir()
        planfile.write(folder / "plan.json", made.to_json())
        runs = read_runs(Results.read(folder))
    many = runs["concurrency"].mask(runs["concurrency_word"].ne(""), MANY_THREADS)
    runs = runs.assign(concurrency=many, place=runs["point"])
    runs = runs[~runs["workload"].isin([*SHAPES])]
    count = runs.groupby("point")["repetition"].transform("nunique")
    rows = runs.assign(n=count, is_own=True).drop_duplicates("point")
    rows["cache_level"] = [level_of(row) for row in rows.itertuples()]
    typed = schema.typed("rows", rows)
    return [of_table for _, of_table in typed.groupby("table", sort=False)]


def level_of(row: Any) -> str:
    """Return the level that a row of the memory measures on a machine with usual caches."""
    if row.subsystem != "memory":
        return ""
    if row.variant != "block":
        return "DRAM"
    return next(level for level, most in CACHES.items() if row.block_bytes <= most)


def names_difference(tables: Sequence[pd.DataFrame], kind: str, lot: np.random.Generator) -> bool:
    """Return whether a certain difference is stated of one unchanged campaign."""
    found = []
    for rows in tables:
        speeds = {}
        for row in schema.lines(rows):
            values = noise(lot, row.n, kind)
            speeds[row.point, row.instrument] = {
                "n": len(values), "min": min(values), "value": statistics.median(values),
                "max": max(values),
            }  # fmt: skip
        known = pd.DataFrame.from_dict(speeds, orient="index").rename_axis(ROW)
        labels = Labels(BY_NAME[rows["table"].iloc[0]])
        measured = rows.drop(columns=[*known]).join(known, on=ROW)
        measured = comparisons.add_words(measured, labels).assign(is_calm=True)
        for pairs in comparisons.pairs_of_table(measured, labels):
            found.append(pairs.assign(table=labels.table.name))
    judged = comparisons.judged(pd.concat(found, ignore_index=True))
    return bool(
        (
            judged["certainty"].eq(CERTAIN)
            & judged["direction"].ne(0)
            & judged["direction"].notna()
        ).any()
    )


def noise(lot: np.random.Generator, repetitions: int, kind: str) -> list[float]:
    """Return the values of a row whose true value is 1."""
    spread = 0.1 if kind == "spread of 10%" else 0.002 * 25 ** lot.random()
    logs = lot.normal(0, spread, size=repetitions)
    if kind == "some repetitions disturbed":
        slowed = lot.random(repetitions) < TAIL
        logs -= slowed * np.abs(lot.normal(0, FAR, size=repetitions))
    values: list[float] = np.exp(logs).tolist()
    return values
