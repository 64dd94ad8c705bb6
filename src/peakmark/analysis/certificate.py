"""How often the verdict on nodes is right on this cluster.

Rows of healthy nodes become slow ones, and are judged with all others: by a neighbour that took its
share of the CPUs in secret, or in fleets that are drawn from the records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.analysis import suspects
from peakmark.analysis.row import Row
from peakmark.analysis.suspects import Place, Values
from peakmark.cell import TRIAL
from peakmark.errors import RecordError
from peakmark.messages import Message, message
from peakmark.storage import planfile
from peakmark.storage.planfile import LOSS
from peakmark.storage.results import Results

Tables = Mapping[str, Sequence[Row]]
CASES = 400
"""Slow rows in the fleets that are drawn from the records: their rate is known to 3 % then."""
SHARE = 0.5
"""A row of a node in the records counts as so much of a row in a drawn fleet."""
PART = 32
"""One node of so many is slow in a row of such a fleet."""


class Rates(NamedTuple):
    """How many slow rows of nodes were found, and how many healthy ones were called slow."""

    found: float = 0
    slowed: float = 0
    false: float = 0
    healthy: float = 0

    def plus(self, other: Rates) -> Rates:
        """Of both."""
        return Rates(*(one + more for one, more in zip(self, other, strict=True)))

    def told(self, case: str) -> list[Message]:
        """What stands beside the verdict. ``case``: ``trials`` or ``records``."""
        parts = [
            ("certificate-found", self.found, self.slowed),
            ("certificate-false", self.false, self.healthy),
        ]
        return [
            message(code, case=case, count=count, of=of, loss=LOSS, low=low, high=high)
            for code, count, of in parts
            if of
            for low, high in [statistics.wilson(count, of)]
        ]


def certify(results: Results, tables: Tables) -> list[Message]:
    """What stands beside the verdict where ``certify`` asks for it."""
    tried, drawn = Rates(), Rates()
    seed = int(results.config.get("seed", 1))
    for family in suspects.families(tables) if results.config.get("certify") else ():
        times = suspects.times(family)
        values = {place: row.measured.values for place, row in family.items()}
        trials = {
            place: series
            for place, row in family.items()
            if len(series := suspects.check_values(results, row, TRIAL)) >= statistics.ENOUGH
        }

        def opened(family: suspects.Family = family) -> set[Place]:
            rows = planfile.open_seal(results.directory)
            return {place for place, row in family.items() if suspects.planned(row, TRIAL) in rows}

        with suppress(RecordError):  # without its seal a trial tells nothing
            tried = tried.plus(of_trials(values, trials, opened, times))
        drawn = drawn.plus(of_records(values, times, seed))
    return [*tried.told("trials"), *drawn.told("records")]


def of_trials(
    values: Values,
    trials: Mapping[Place, Sequence[float]],
    opened: Callable[[], Collection[Place]],
    lower_is_better: Collection[Hashable],
) -> Rates:
    """Rates of rows that were measured once more, some of them slowed.

    Args:
        values: by which the verdict was made.
        trials: repetitions of the extra measurements, by the row whose place they take.
        opened: opens the seal: the places of those that were slowed.
        lower_is_better: rows of times.
    """
    tried = trials.keys() - suspects.judge(values, lower_is_better).keys()
    replaced = {**values, **{place: trials[place] for place in tried}}
    slow = suspects.judge(replaced, lower_is_better).keys()
    secret = tried & set(opened())
    healthy = tried - secret
    return Rates(len(slow & secret), len(secret), len(slow & healthy), len(healthy))


def of_records(
    values: Values, lower_is_better: Collection[Hashable], seed: int, cases: int = CASES
) -> Rates:
    """Rates in fleets that are drawn from the records of rows that are not slow.

    A node's level and the deviations of its repetitions are drawn each for itself, so that nodes and
    repetitions differ as much as those of the records.
    """
    lot = np.random.default_rng(seed)
    known = suspects.judge(values, lower_is_better)
    places: dict[Hashable, list[Place]] = {}
    for place in values:
        places.setdefault(place[1], []).append(place)
    donors = {
        key: [np.log(values[place]) for place in each if place not in known]
        for key, each in places.items()
    }
    rates = Rates()
    while rates.slowed < cases and any(donors.values()):
        drawn: dict[Place, Sequence[float]] = {}
        slowed: set[Place] = set()
        for key, each in places.items():
            logs = _fleet(lot, donors[key], [len(values[place]) for place in each])
            change = np.log(1 - LOSS) * (-1 if key in lower_is_better else 1)
            for number in lot.choice(len(each), max(1, len(each) // PART), replace=False):
                slowed.add(each[number])
                logs[number] += change
            drawn |= {place: np.exp(one).tolist() for place, one in zip(each, logs, strict=True)}
        slow = suspects.judge(drawn, lower_is_better).keys()
        healthy = len(drawn) - len(slowed)
        rates = rates.plus(Rates(len(slow & slowed), len(slowed), len(slow - slowed), healthy))
    # Few records tell little of the spread on which the rate depends, however many fleets are drawn.
    most = len(values) * SHARE
    parts = [min(1.0, most / max(1, of)) for of in (rates.slowed, rates.healthy)]
    return Rates(*np.multiply(rates, np.repeat(parts, 2)).tolist())


def _fleet(
    lot: np.random.Generator, donors: Sequence[NDArray[np.float64]], counts: Sequence[int]
) -> list[NDArray[np.float64]]:
    """Logarithms of so many repetitions for each node."""
    levels = np.array([series.mean() for series in donors])
    deviations = np.concatenate(
        [(series - series.mean()) * np.sqrt(len(series) / (len(series) - 1)) for series in donors]
    )
    # The mean of few repetitions differs from the node's level by chance, which is drawn anew.
    chance = np.mean([deviations.var() / len(series) for series in donors])
    spread = levels.var(ddof=1) if len(levels) > 1 else 0.0
    share = np.sqrt(max(0.0, 1 - chance / spread)) if spread else 0.0
    centre = float(np.median(levels))
    return [
        centre + share * (lot.choice(levels) - centre) + lot.choice(deviations, count)
        for count in counts
    ]
