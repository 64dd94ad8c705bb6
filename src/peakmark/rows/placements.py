"""Tell apart the placements of a virtual machine's CPUs, and compare runs within one placement.

The host may move the CPUs at any time: two threads then share a core, a cache or neither. Kernels with two
threads or more measure before and after their work how long a cache line takes from the first thread's
core to the second's. If these times form several bands, runs of different bands measure different machines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from peakmark.formatting import counted, natural, significant, value_range
from peakmark.messages import Message, message, words
from peakmark.rows.schema import GAP, CampaignFrames

LEAST_RUNS, LEAST_SHARE = 3, 0.05
"""Fewest runs of a band, and smallest share that they have of all runs of the two CPUs.

Only runs that began and ended in the band count. With smaller numbers, runs that something else
slowed down would count as a band (simulated: docs/method.md).
"""
LEAST_MEMORY_LOAD = 0.3
"""Memory load (``add_memory_load``, a share) above which others disturbed a run.

On idle machines the load varies by as much (docs/method.md).
"""
LEAST_READINGS = 3
"""Fewest runs with a reading of DRAM from which the usual rate is known."""
UNCHANGED_WITHIN = 0.02
"""Largest relative difference from the median of a row's reference runs at which a run counts as unchanged.

The reference runs are those of the usual band (``mark_usual``), or the undisturbed ones (``add_neighbours``).
"""
DISTANCES = {15e-9: "same-core", 80e-9: "same-cache", np.inf: "no-cache"}
"""Longest core-to-core time in s -> distance of two CPUs with at most this time.

The distance is a case of the message ``distance``. It is inferred, because a guest cannot see the
topology of its host.
"""
SAME_CORE = min(DISTANCES)
"""Core-to-core time in s below which two threads usually share a core, so that they slow each other down."""
READINGS = ["core_to_core_before", "core_to_core_after"]
"""Columns of ``runs`` with the core-to-core times of a run, s."""
PROBES = ["probe_before", "probe_after"]
"""Columns of ``runs`` with the rates at which DRAM was read, B/s."""
ROW_ON_HOST = ["point", "instrument", "host"]
"""Columns that identify the runs of a row on one host."""


def add_placements(runs: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Add the columns ``band``, ``memory_load`` and ``is_usual``, and inferred disturbances in ``causes``.

    Args:
        runs: frame ``runs`` with the readings of each run.
        facts: host -> its facts. Only virtual machines have bands: elsewhere, pinned threads stay on
            the same cores.
    """
    virtual = [host for host in facts if (facts[host].get("cpu") or {}).get("virtualised")]
    # A run of C2C on two CPUs takes no readings. Its value is itself a core-to-core time, and fills both columns.
    is_reading = runs["workload"].eq("C2C") & runs["placed_threads"].eq(2)
    runs = runs.fillna(dict.fromkeys(READINGS, runs["value"].where(is_reading)))
    return runs.pipe(add_bands, virtual).pipe(add_memory_load).pipe(add_neighbours).pipe(mark_usual)


# -- bands


def add_bands(runs: pd.DataFrame, virtual: Collection[str]) -> pd.DataFrame:
    """Add ``band``: median core-to-core time of the band in which a run began and ended, s.

    It is empty if the run moved to another band, or if all times between its two CPUs form one band.
    """
    bands = pd.Series(np.nan, runs.index)
    probed = runs[runs["host"].isin(virtual)].dropna(subset=READINGS)
    for _, of_cpus in probed.groupby(["host", "first_cpus"]):
        found = find_bands(of_cpus)
        if found.nunique() > 1:
            bands.update(found)
    return runs.assign(band=bands)


def find_bands(runs: pd.DataFrame) -> pd.Series:
    """Return the band of each run: the median core-to-core time, in s, of one placement of the CPUs.

    The time is empty for a run whose two readings lie in different bands, and for a band with few
    runs. It is also empty for a band that is wide and slower than the most frequent band, because
    something else made its times longer.

    Args:
        runs: the runs of two CPUs of a host.
    """
    before, after = runs[READINGS].to_numpy().T
    # The times at which a band begins, except the first band: each is at least ``GAP`` times the time below it.
    ordered = np.sort([*before, *after])
    starts = ordered[1:][ordered[1:] >= GAP * ordered[:-1]]
    # The number of the band in which each run began, and the runs that ended in the same band.
    number = np.searchsorted(starts, before, side="right")
    stayed = runs[number == np.searchsorted(starts, after, side="right")]
    of_band = stayed.groupby(pd.Series(number, runs.index))
    # For each run, the longest and the shortest times in its band (transposed, so that max and min join both
    # readings), and the number of records in its band.
    longest, shortest = (of_band[READINGS].transform(name).T for name in ("max", "min"))
    count = of_band["record"].transform("nunique")
    is_narrow = longest.max() < GAP * shortest.min()
    is_frequent = count.ge(max(LEAST_RUNS, LEAST_SHARE * runs["record"].nunique()))
    medians: pd.Series[Any] = of_band[READINGS[0]].transform("median")
    # The longest median of the most frequent bands: nothing makes times shorter, so shorter bands may be wide.
    most_frequent = medians[count.eq(count.max())].max()
    return medians.where(is_frequent & (is_narrow | medians.le(most_frequent)))


def band_of(bands: pd.Series) -> float:
    """Return the band (a time in s) that all runs of a row have; NaN for none or several."""
    return float(bands.iloc[0]) if bands.nunique(dropna=False) == 1 else math.nan


def bands_that_matter(runs: pd.DataFrame) -> pd.Series:
    """Return the band of each run; it is empty if the threads only compute and do not share a core."""
    return runs["band"].mask(keeps_cores(runs))


def keeps_cores(runs: pd.DataFrame) -> pd.Series:
    """Return a mask of the runs whose threads only compute, each on a core of its own before and after the work."""
    return runs["subsystem"].eq("cpu") & runs[READINGS].min(axis=1).gt(SAME_CORE)


def distance_of(band: float | None) -> str:
    """Return in words how far apart the CPUs of a row probably are; empty without a time.

    Args:
        band: core-to-core time of the row's runs, s; None if they differ or have none.
    """
    if band is None:
        return ""
    # ``DISTANCES`` is sorted by time, and its last time is infinite.
    case = next(case for most, case in DISTANCES.items() if band <= most)
    return words(f"distance {case}")


def mark_usual(runs: pd.DataFrame) -> pd.DataFrame:
    """Add ``is_usual``: whether the placement of a run allows a comparison with the usual band.

    A band (column ``band``) is one placement of the CPUs, known by a core-to-core time. The usual
    band of a row on a host is the one with the most runs of the row without ``causes``. Among equal
    bands, these decide in turn: more runs, a higher mean share of the CPUs' time (rounded to tenths),
    more runs of all rows on the host, a shorter time.

    Rows of the CPU know only two bands: the threads share a core, or they do not.

    The values in the usual band are usual. All values of a row are usual if the row has no band, or if
    those outside the usual band are within ``UNCHANGED_WITHIN`` of its median: then bands make no
    difference to the row. Values with ``causes`` are ignored here, unless all inside or all outside values have some.
    """
    # A run without a table fits no row.
    valid = runs[runs["table"].ne("") & runs["value"].notna() & runs["disturbed"].eq("")]
    row = [valid[name] for name in ROW_ON_HOST]
    # Threads that only compute share nothing but their core: if the row has bands, all others become one.
    has_bands = valid["band"].groupby(row).transform("count").gt(0)
    valid = valid.assign(band=valid["band"].mask(keeps_cores(valid) & has_bands, np.inf))
    of_band = valid.groupby([*ROW_ON_HOST, "band"])
    # What decides between bands, most important first. Runs without a band come last.
    clean = valid["value"].where(valid["causes"].eq(""))
    ranked = pd.DataFrame({
        "clean": -clean.groupby([*row, valid["band"]]).transform("count"),
        "runs": -of_band["value"].transform("size"),
        "cpu_share": -of_band["cpu_share"].transform("mean").round(1),
        "on_host": -valid.groupby(["host", "band"])["value"].transform("size"),
        "band": valid["band"],
    })  # fmt: skip
    ranked = ranked.sort_values([*ranked])
    is_usual = valid["band"].eq(ranked["band"].groupby(row).transform("first"))
    every = valid["value"].where(is_usual).groupby(row).transform("median")
    median = clean.where(is_usual).groupby(row).transform("median").fillna(every)
    # A row without any band has no median: a comparison with it is False, so that none of its runs is apart.
    is_apart = (valid["value"] / median - 1).abs().gt(UNCHANGED_WITHIN) & ~is_usual
    # A disturbance explains a difference: such runs are apart only if the row has no others outside the usual band.
    is_clean = valid["causes"].eq("") & ~is_usual
    is_apart &= is_clean | ~is_clean.groupby(row).transform("any")
    # If no run of a row is apart, bands make no difference to it, and all its runs are usual.
    chosen = valid.index[is_usual | ~is_apart.groupby(row).transform("any")]
    return runs.assign(is_usual=runs.index.isin(chosen))


# -- causes of disturbance


def add_memory_load(runs: pd.DataFrame) -> pd.DataFrame:
    """Add ``memory_load``: share by which the slower of a run's two readings of DRAM is below the usual rate.

    The usual rate is the median of the runs on the same host and in the same band, with the same
    number of threads. The load is empty if fewer than ``LEAST_READINGS`` of these runs have a
    reading.
    """
    rate = runs[PROBES].min(axis=1)
    alike = rate.groupby(
        [runs[name] for name in ("host", "measured_concurrency", "band")], dropna=False
    )
    load = 1 - rate / alike.transform("median")
    return runs.assign(memory_load=load.where(alike.transform("count") >= LEAST_READINGS))


def add_neighbours(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the cause ``neighbours`` to runs from which another guest or program took something.

    Lost execution pipes of a core show in ``held_up_cores``, lost bandwidth of DRAM in
    ``memory_load``. The cause is not added to a run that has another cause, which explains them. Nor
    is it added if the value is worse by at most ``UNCHANGED_WITHIN`` than the median of the
    undisturbed runs of its row in its band. It is added if there are no such runs.
    """
    is_found = runs["held_up_cores"].gt(0) | runs["memory_load"].gt(LEAST_MEMORY_LOAD)
    is_clean = runs["causes"].eq("") & runs["disturbed"].eq("") & ~is_found
    values = runs["value"].where(is_clean)
    usual = values.groupby([runs[name] for name in (*ROW_ON_HOST, "band")], dropna=False)
    # Without undisturbed runs the median is NaN, and the comparison is False.
    more = runs["value"] / usual.transform("median") - 1
    # A longer time is worse, and so is a lower rate.
    is_unchanged = more.where(runs["unit"].eq("s"), -more) <= UNCHANGED_WITHIN
    is_new = is_found & ~is_unchanged & runs["causes"].eq("")
    return runs.assign(causes=runs["causes"].mask(is_new, "neighbours"))


# -- what the report says


def describe(frames: CampaignFrames) -> Iterator[Message]:
    """Yield a sentence on the hosts that had several placements; nothing if no host had.

    It describes the placements of the first host, with the speeds of the runs that their rows leave out.
    """
    # Attempt 0 is the execution that counts; the others are disturbed executions that were repeated. The value of
    # a run of C2C is the core-to-core time itself.
    is_told = frames.runs["attempt"].eq(0) & frames.runs["workload"].ne("C2C")
    runs = frames.runs[is_told].dropna(subset="core_to_core_before")
    hosts = sorted(set(runs.dropna(subset="band")["host"]), key=natural)
    if not hosts:
        return
    of_host = runs[runs["host"].eq(hosts[0])]
    speeds = speeds_left_out(of_host)
    bands = []
    # Runs that changed their placement, or had a rare one, have no band and come last.
    for _, of_band in of_host.groupby("band", dropna=False):
        # Both readings of each run in one column.
        taken = of_band[READINGS].melt()["value"]
        low, high = (significant(1e9 * time, 3) for time in (taken.min(), taken.max()))
        is_rare = of_band["band"].isna().all()
        distance = distance_of(taken.min() if is_rare else taken.median())
        # All values of a record have the same readings.
        count = of_band["record"].nunique()
        found = speeds[speeds.index.isin(of_band.index)]
        factors = ""
        if found.notna().any():
            slowest, fastest = (f"{speed:.3g}" for speed in (found.min(), found.max()))
            factors = words("speeds", rows=len(found), speeds=value_range(slowest, fastest))
        span = value_range(low, high)
        how = "band rare" if is_rare else "band"
        bands.append(words(how, times=span, runs=count, distance=distance, speeds=factors))
    case = "nodes" if runs["host"].nunique() > 1 else ""
    yield message("placements", case=case, hosts=counted(hosts), host=hosts[0], bands=tuple(bands))


def speeds_left_out(runs: pd.DataFrame) -> pd.Series:
    """Return for each undisturbed run that its row leaves out its speed over the median of the undisturbed runs that count.

    The speed of a run is NaN if its row has none that count. Runs above the limit are left out too.
    """
    clear = runs[runs["causes"].eq("")]
    row = [clear[name] for name in ROW_ON_HOST]
    speed = clear["value"] / clear["value"].where(clear["kept"]).groupby(row).transform("median")
    # A shorter time is faster.
    return speed.mask(clear["unit"].eq("s"), 1 / speed)[~clear["kept"]]
