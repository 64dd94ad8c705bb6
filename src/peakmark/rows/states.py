"""Find changes of the machine during a campaign: a warm-up, and two states.

A row with few repetitions shows neither: its values only spread. All rows together show both.
docs/method.md says how often a finding is false.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from peakmark.formatting import listed, plural, quantity
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.runs import ROW
from peakmark.rows.schema import CampaignFrames

LEAST_DIFFERENCE = 1.05
"""Factor between two medians up to which they count as level."""

ROUNDS = 3
"""Fewest rounds of a cell whose first round is compared with the others."""
WARM_UP_P = 0.001
"""Largest p-value of a warm-up. It is small because all cells share the rounds: a slow minute of another
program slows many cells of one round at once.
"""
WARM_UP_RATIO = 1.5
"""Fewest cells whose first round is the slowest, as a multiple of the number expected by chance.

In a fleet of thousands of cells, a smaller excess is significant but changes no result.
"""
GAP = 1.3
"""Smallest factor between two groups of readings. The readings of one state are closer together: on a
quiet machine they all lie within a factor of 1.3 (docs/method.md).
"""
CELLS = 3
"""Fewest cells in each of the two groups: two cells may share a short disturbance."""
SPELLS = 3
"""Largest number of periods in one state that a finding lists one by one."""
PROBES = {"dram": "B/s", "core-to-core": "s"}
"""Probe -> unit of its readings."""
COLUMNS = {
    "dram": ("probe_before", "probe_after"),
    "core-to-core": ("core_to_core_before", "core_to_core_after"),
}
"""Probe -> columns of ``runs`` with the reading before and after the work."""
STATES = ("slow", "fast")
"""The two states of a probe: slow means a lower rate or a longer time."""
SERIES = ["host", "probe", "threads"]
"""Columns that are equal for all readings that are compared with each other."""


def campaign_sentences(frames: CampaignFrames) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``findings`` about the whole campaign.

    Rows have the column ``disturbances``, see ``findings.add_disturbances``.
    """
    yield from state_sentences(frames)
    calm = frames.rows.loc[frames.rows["disturbances"].eq(""), ROW]
    found = count_first_rounds(frames.runs.merge(calm))
    if found.is_warm_up:
        yield {"topic": "Warm-up", "points": "[]", "text": found.text}


# -- warm-up


@dataclass(frozen=True)
class FirstRounds:
    """Number of cells whose first round was their slowest, and the number expected by chance.

    Attributes:
        slowest: number of cells whose first round was the slowest.
        cells: number of cells with at least ``ROUNDS`` rounds, without ties.
        expected: number of cells whose first round would be the slowest by chance.
        rounds: fewest and most rounds of a cell.
    """

    slowest: int
    cells: int
    expected: float
    rounds: tuple[int, int]

    @property
    def p_value(self) -> float:
        """Return the probability that by chance so many cells have their slowest round first.

        The test is binomial: the first of n rounds is the slowest with the probability 1 / n. If the
        cells have different numbers of rounds, the mean probability is used. The result is then too
        large rather than too small (Hoeffding 1956).
        """
        from scipy import stats  # late: most commands test nothing

        chance = self.expected / self.cells
        test = stats.binomtest(self.slowest, self.cells, chance, alternative="greater")
        return float(test.pvalue)

    @property
    def is_warm_up(self) -> bool:
        """Return whether the machine warmed up.

        It did if the first round was the slowest in clearly more cells than by chance.
        """
        is_large = self.cells > 0 and self.slowest >= WARM_UP_RATIO * self.expected
        return is_large and self.p_value <= WARM_UP_P

    @property
    def text(self) -> str:
        """Return the sentence of the finding, and advice."""
        fewest, most = self.rounds
        rounds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        return (
            f"The first of {rounds} rounds was the slowest in {self.slowest} of"
            f" {plural(self.cells, 'measurement')}, where chance gives {self.expected:.0f}: the machine"
            " warmed up or drifted. Measure again with rounds: {discard_first: true} before you compare."
        )


def count_first_rounds(runs: pd.DataFrame) -> FirstRounds:
    """Count the cells whose first kept run, in order of time, was the slowest of all."""
    # A cell that fills several rows counts once.
    kept = runs[runs["kept"]].drop_duplicates("record").sort_values("time", kind="stable")
    speed = kept["value"].where(kept["unit"].ne("s"), 1 / kept["value"])
    of_cell = speed.groupby(kept["cell"].str.rsplit("/", n=1).str[0])
    cells = of_cell.agg(["size", "nunique", "first", "min"])
    is_tested = cells["size"].ge(ROUNDS) & cells["nunique"].eq(cells["size"])
    tested = cells[is_tested]
    if tested.empty:
        return FirstRounds(0, 0, 0.0, (0, 0))
    return FirstRounds(
        slowest=int(tested["first"].eq(tested["min"]).sum()),
        cells=len(tested),
        expected=float((1 / tested["size"]).sum()),
        rounds=(int(tested["size"].min()), int(tested["size"].max())),
    )


# -- two states


def read_probes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each reading of a probe, in order of time.

    Columns are those of ``SERIES``, ``record``, ``attempt``, ``row`` (the cell without its
    repetition), ``when`` (before or after), ``time`` in seconds since 1970, and ``value``.
    """
    parts = []
    for probe, (before, after) in COLUMNS.items():
        for when, column in (("before", before), ("after", after)):
            part = runs[["host", "record", "attempt", "time"]].assign(
                probe=probe,
                threads=runs["measured_concurrency"],
                row=runs["cell"].str.rsplit("/", n=1).str[0],
                when=when,
                value=runs[column],
            )
            if when == "after":
                part["time"] += runs["cell_seconds"].fillna(0.0)
            parts.append(part)
    readings = pd.concat(parts, ignore_index=True)
    readings = readings[readings["value"].gt(0) & readings["time"].notna()]
    # The lines of one execution have the same reading.
    readings = readings.drop_duplicates(["record", "attempt", "probe", "when"])
    return readings.sort_values("time", kind="stable", ignore_index=True)


def add_states(runs: pd.DataFrame) -> pd.DataFrame:
    """Set ``state`` of runs to the states that their probes show, such as ``dram:slow``."""
    readings = classify(read_probes(runs))
    readings = readings[readings["state"].ne("")]
    if readings.empty:
        return runs
    names = readings["probe"].str.cat(readings["state"], sep=":")
    execution = ["record", "attempt"]
    state = names.groupby([readings[name] for name in execution]).agg(joined).rename("state")
    joined_runs = runs.drop(columns="state").join(state, on=execution)
    return joined_runs.assign(state=joined_runs["state"].fillna(""))


def joined(names: Iterable[str]) -> str:
    """Return different names in alphabetical order, joined by blanks."""
    return " ".join(sorted(set(names)))


def classify(readings: pd.DataFrame) -> pd.DataFrame:
    """Add ``state``: slow or fast for readings that fall into two groups, else empty."""
    states = pd.Series("", index=readings.index, dtype="str")
    for _, series in readings.groupby(SERIES):
        border = find_border(series)
        if border is None:
            continue
        is_slow = series["value"].lt(border)
        if PROBES[series["probe"].iloc[0]] == "s":
            is_slow = ~is_slow
        found = is_slow.map({True: "slow", False: "fast"})
        # Without a row in both groups, they may be two kinds of cells rather than two states.
        if set(series.loc[is_slow, "row"]) & set(series.loc[~is_slow, "row"]):
            states[found.index] = found
    return readings.assign(state=states)


def find_border(series: pd.DataFrame) -> float | None:
    """Return the value between two groups of readings; None if they are one group.

    The groups are divided at the largest gap of the sorted logarithms. This gap must be larger than
    ``GAP`` and than the spread of each group. Each group must have readings of ``CELLS`` cells or more.
    """
    ordered = series.sort_values("value", kind="stable")
    logs = np.log(ordered["value"].to_numpy())
    gaps = np.diff(logs)
    if not len(gaps):
        return None
    place = int(gaps.argmax()) + 1
    low, high = logs[:place], logs[place:]
    if gaps.max() <= max(math.log(GAP), np.ptp(low), np.ptp(high)):
        return None
    groups = ordered["record"].iloc[:place], ordered["record"].iloc[place:]
    if min(group.nunique() for group in groups) < CELLS:
        return None
    return math.exp((low[-1] + high[0]) / 2)


def is_mixed(states: Collection[str]) -> bool:
    """Return whether the states of several runs include both states of one probe."""
    return any({f"{probe}:slow", f"{probe}:fast"} <= {*states} for probe in PROBES)


def state_sentences(frames: CampaignFrames) -> Iterator[dict[str, Any]]:
    """Yield a finding for each host with two states: how fast, when, what it changed, what to do.

    The times and the changed row are those of the probe with the fewest threads.
    """
    readings = classify(read_probes(frames.runs))
    of_states = readings[readings["state"].ne("")]
    for host in of_states["host"].unique():
        of_host = of_states[of_states["host"].eq(host)]
        all_series = [series for _, series in of_host.groupby(["probe", "threads"])]
        first = all_series[0]
        rare = first["state"].value_counts().index[-1]
        parts = [describe_series(series) for series in all_series]
        advice = "Find out what else ran at these times"
        if is_guest(host, frames):
            advice = "Pin the virtual CPUs on the host"
        sentences = [
            f"{name_of(host, frames)} had two states: {'; '.join(parts)}.",
            f"The {rare} state was seen {describe_times(first, rare)}.",
            *largest_change(frames, first, rare),
            f"{advice}, or report both states.",
        ]
        yield {"topic": "Two states", "points": "[]", "text": " ".join(sentences)}


def name_of(host: str, frames: CampaignFrames) -> str:
    """Return the name of a host at the start of a sentence, or ``The machine`` if it is the only one."""
    hosts = set(frames.runs["host"]) - {""}
    return host if len(hosts) > 1 else "The machine"


def is_guest(host: str, frames: CampaignFrames) -> bool:
    """Return whether a host is a virtual machine."""
    facts = frames.facts
    known = facts.loc[facts["host"].eq(host) & facts["key"].eq("cpu.virtualised"), "value"]
    return any(json.loads(value) for value in known)


def describe_series(series: pd.DataFrame) -> str:
    """Return ``1 thread read DRAM at 21 to 25 GB/s or at 37 to 48 GB/s``."""
    probe, threads = series["probe"].iloc[0], int(series["threads"].iloc[0])
    of_state = series.groupby("state")["value"]
    slow, fast = (describe_range(of_state.get_group(state), PROBES[probe]) for state in STATES)
    if probe == "dram":
        return f"{plural(threads, 'thread')} read DRAM at {slow} or at {fast}"
    return f"with {plural(threads, 'thread')}, a cache line took {fast} or {slow} from core to core"


def describe_range(values: pd.Series, unit: str) -> str:
    """Return the lowest and the highest value: ``21 to 25 GB/s``, or one number if both are equal."""
    low, high = quantity(values.min(), unit, 2), quantity(values.max(), unit, 2)
    if low == high:
        return low
    return f"{low.removesuffix(high.lstrip('.0123456789'))} to {high}"


def describe_times(series: pd.DataFrame, state: str) -> str:
    """Return when a state was seen, in UTC: ``from 21:21:34 to 21:22:04 and at 21:23:25 UTC``."""
    ordered = series.sort_values("time", kind="stable")
    spell = ordered["state"].ne(ordered["state"].shift()).cumsum()
    is_state = ordered["state"].eq(state)
    spells = ordered[is_state].groupby(spell)["time"].agg(["min", "max"])
    if len(spells) > SPELLS:
        first, last = clock_time(spells["min"].min()), clock_time(spells["max"].max())
        return f"{len(spells)} times from {first} to {last} UTC"
    texts = []
    for start, end in spells.itertuples(index=False):
        first, last = clock_time(start), clock_time(end)
        texts.append(f"at {first}" if first == last else f"from {first} to {last}")
    return f"{listed(texts)} UTC"


def clock_time(seconds: float) -> str:
    """Return the time of day in UTC, such as ``21:21:34``."""
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}"


def largest_change(frames: CampaignFrames, series: pd.DataFrame, rare: str) -> Iterator[str]:
    """Yield a sentence on the row of peakmark's kernel that the two states changed most."""
    runs = frames.runs[frames.runs["kept"]]
    probe, threads = series["probe"].iloc[0], series["threads"].iloc[0]
    is_of_series = runs["host"].eq(series["host"].iloc[0]) & runs["measured_concurrency"].eq(
        threads
    )
    runs = runs[is_of_series & ~runs["state"].map(lambda state: is_mixed(state.split()))]
    medians = {}
    for state in STATES:
        of_state = runs[runs["state"].str.contains(f"{probe}:{state}", regex=False)]
        medians[state] = of_state.groupby("point")["value"].median()
    both = pd.DataFrame(medians).dropna()
    units = runs.drop_duplicates("point").set_index("point")["unit"].reindex(both.index)
    # A row that was faster in the slow state is no example of what the state did.
    change = (both["fast"] / both["slow"]).where(units.ne("s"), both["slow"] / both["fast"])
    if change.empty or change.max() <= LEAST_DIFFERENCE:
        return
    point = str(change.idxmax())
    medians_of_row = both.loc[point].to_dict()
    usual = "fast" if rare == "slow" else "slow"
    rows = frames.rows[frames.rows["is_own"] & frames.rows["point"].eq(point)]
    for row in schema.lines(rows):
        labels = Labels.of(row)
        changed = labels.number(medians_of_row[rare])
        other = labels.quantity(medians_of_row[usual])
        yield f"In it, {labels.point(row)} measured {changed} instead of {other}."
        # A slow state of the memory is itself the disturbance ``memory-load``.
        if set(row.disturbances.split()) - {"memory-load"}:
            yield "This row was also disturbed."
