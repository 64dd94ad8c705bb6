"""Rows of nodes and links that are measured again to test the verdict on them.

Slow nodes and suspected links are measured again beside healthy ones. A certificate tells how often
the verdict is right on this cluster: rows of healthy nodes become slow ones, by a neighbour that
took its share of the CPUs in secret, or in fleets that are drawn from the records.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.analysis import fleet
from peakmark.analysis.fleet import Family, Place, Values
from peakmark.analysis.links import LinkMap
from peakmark.analysis.row import Row, Rows, SlowRow
from peakmark.cell import AGAIN, TRIAL
from peakmark.errors import RecordError
from peakmark.formatting import natural
from peakmark.messages import Message, message
from peakmark.plan.cluster import crossed
from peakmark.storage import planfile
from peakmark.storage.planfile import LOSS
from peakmark.storage.results import Results

CONTROLS = 2
"""Healthy nodes of a class, or links of a kind, that are measured again beside the slow ones."""


@dataclass(frozen=True)
class SecondMeasurement:
    """What the second measurement of a slow row showed.

    Attributes:
        row: the first one, with the verdict by which it was measured again.
        second: the verdict on the second measurement, None where the row was not slow again.
        behind: share by which it was slower than the class then.
        controls: the nodes or links beside it.
    """

    row: Row
    second: SlowRow | None
    behind: float
    controls: Sequence[str]

    @property
    def case(self) -> str:
        """``confirmed``, ``worse`` where it is slower than before by ``DELTA``, or ``flaky``."""
        if self.second is None or self.row.slow is None:
            return "flaky"
        is_worse = self.second.low > self.row.slow.high + fleet.DELTA
        return "worse" if is_worse else "confirmed"


def link_families(maps: Iterable[LinkMap]) -> Iterator[Family]:
    """The healthy links of each point and the suspected ones, which are slow; those of a family
    cross equally many uplinks.
    """
    for each in maps:
        slow = {part.name: part for part in each.slow}
        by_kind: dict[int, Family] = defaultdict(dict)
        for row in each.rows:
            name, nodes = row.key.node, row.key.node.split("+")
            path, part = crossed(nodes, each.behind), slow.get(name)
            place = name, ""
            if part and not part.confirmed:
                verdict = SlowRow(part.behind, part.low, part.high, nan)
                by_kind[len(path)][place] = replace(row, slow=verdict)
            elif slow.keys().isdisjoint({name, *nodes, *path}):
                by_kind[len(path)][place] = row
        yield from by_kind.values()


def _families(tables: Rows, maps: Iterable[LinkMap]) -> Iterator[Family]:
    yield from fleet.families(tables)
    yield from link_families(maps)


def check_values(results: Results, row: Row, purpose: str) -> list[float]:
    """What the extra cells of a row measured, in SI units."""
    wanted = (row.key.workload, row.key.variant, row.table.metric)
    return [
        float(entry["value"])
        for record in results.checks_by_row.get(planned(row, purpose), ())
        for entry in record.data["measurements"]
        if (entry["workload"], entry["variant"], entry["metric"]) == wanted
        and row.key.block in (None, entry["block"])
    ]


def planned(row: Row, purpose: str = "") -> str:
    """The row of the plan that filled a row of a table, or that of its extra cells."""
    return replace(row.measured.points[0].record.cell, purpose=purpose).row


def choose(results: Results, tables: Rows, maps: Iterable[LinkMap]) -> dict[str, list[str]]:
    """Rows of the plan in which nodes or links are slow -> those of healthy ones of their class."""
    chosen: dict[str, list[str]] = {}
    lot = random.Random(f"{results.config.get('seed', 1)}/controls")  # noqa: S311 - not a secret
    for family in _families(tables, maps):
        slow = {place: row for place, row in family.items() if row.slow}
        healthy = {node for node, _ in family} - {node for node, _ in slow}
        controls = lot.sample(sorted(healthy), min(CONTROLS, len(healthy)))
        for (_, key), row in slow.items():
            beside = [family[node, key] for node in controls if (node, key) in family]
            chosen[planned(row)] = list(map(planned, beside))
    return chosen


def outcomes(results: Results, tables: Rows, maps: Iterable[LinkMap]) -> list[SecondMeasurement]:
    """What came of each slow row that was measured again, in the order of the nodes."""
    if not results.suspects:
        return []
    families = _families(tables, maps)
    found = [each for family in families for each in _outcomes(results, family)]
    return sorted(found, key=lambda each: natural(each.row.key.node))


def _outcomes(results: Results, family: Family) -> Iterator[SecondMeasurement]:
    later: dict[Place, list[float]] = {}
    controls: dict[Place, list[str]] = {}
    for place, row in family.items():
        again = check_values(results, row, AGAIN) if row.slow else []
        beside = results.suspects.get(planned(row), ()) if again else ()
        shares = {
            node: statistics.median(values) / other.measured.summary.median
            for (node, key), other in family.items()
            if key == place[1] and planned(other) in beside
            if (values := check_values(results, other, AGAIN))
        }
        if shares:
            # What moved the healthy nodes meanwhile moved the suspect too.
            drift = statistics.median(list(shares.values()))
            later[place], controls[place] = [value / drift for value in again], list(shares)
    keys = {key for _, key in later}
    first = {place: row.measured.values for place, row in family.items() if place[1] in keys}
    slow = fleet.judge({**first, **later}, fleet.times(family))
    for place, values in later.items():
        row, verdict = family[place], slow.get(place)
        sign = 1 if row.table.lower_is_better else -1
        behind = row.slow.behind if row.slow else 0
        typical = row.measured.summary.median / (1 + sign * behind)
        lost = [sign * (value / typical - 1) for value in values]
        share = statistics.median(lost)
        if row.is_pair:  # as for a link with enough repetitions: its own interval decides
            interval = statistics.median_interval(lost)
            is_slow = interval.enough and interval.low > fleet.DELTA
            limits = share, interval.low, interval.high
            verdict = SlowRow(*limits, nan) if is_slow else None
        yield SecondMeasurement(row, verdict, share, controls[place])


def not_confirmed(found: Sequence[SecondMeasurement]) -> set[str]:
    """The nodes and links that were measured again and of which no row was slow again."""
    slow = {each.row.key.node for each in found if each.second}
    return {each.row.key.node for each in found} - slow


def second_verdicts(found: Iterable[SecondMeasurement]) -> list[Message]:
    """A sentence on each node or link that was measured again."""
    by_node: dict[str, list[SecondMeasurement]] = defaultdict(list)
    for each in found:
        by_node[each.row.key.node].append(each)
    sentences = []
    for node, rows in by_node.items():
        slow = [each for each in rows if each.second]
        beside = dict.fromkeys(name for each in rows for name in each.controls)
        worse = sum(each.case == "worse" for each in slow)
        confirmed = "worse" if 2 * worse > len(slow) else "confirmed"
        sentences.append(
            message(
                "second-measurement",
                case=confirmed if slow else "flaky",
                node=node.replace("+", " → "),
                rows=len(slow),
                of=len(rows),
                beside=tuple(name.replace("+", " → ") for name in beside),
                behind=statistics.median([each.behind for each in slow or rows]),
            )
        )
    return sentences


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
        return Rates(*np.add(self, other).tolist())

    def messages(self, case: str) -> list[Message]:
        """What stands beside the verdict. ``case``: ``trials`` or ``records``."""
        parts = {
            "certificate-found": (self.found, self.slowed),
            "certificate-false": (self.false, self.healthy),
        }
        messages = []
        for code, (count, of) in parts.items():
            if of:
                low, high = statistics.wilson(count, of)
                each = message(code, case=case, count=count, of=of, loss=LOSS, low=low, high=high)
                messages.append(each)
        return messages


def certify(results: Results, tables: Rows) -> list[Message]:
    """What stands beside the verdict where ``certify`` asks for it."""
    if not results.config.get("certify"):
        return []
    tried, drawn = Rates(), Rates()
    for family in fleet.families(tables):
        times, values = fleet.times(family), fleet.values_of(family)
        healthy = {place: row for place, row in family.items() if not row.slow}
        trials = {place: check_values(results, row, TRIAL) for place, row in healthy.items()}
        trials = {place: each for place, each in trials.items() if len(each) >= statistics.ENOUGH}

        def opened(family: Family = family) -> set[Place]:
            secret = planfile.open_seal(results.directory)
            return {place for place, row in family.items() if planned(row, TRIAL) in secret}

        with suppress(RecordError):  # without its seal a trial tells nothing
            tried = tried.plus(of_trials(values, trials, opened, times))
        seed = int(results.config.get("seed", 1))
        drawn = drawn.plus(of_records(values, family.keys() - healthy.keys(), times, seed))
    return [*tried.messages("trials"), *drawn.messages("records")]


def of_trials(
    values: Values,
    trials: Mapping[Place, Sequence[float]],
    opened: Callable[[], Collection[Place]],
    lower_is_better: Collection[Hashable],
) -> Rates:
    """Rates of rows that were measured once more, some of them slowed.

    Args:
        values: by which the verdict was made.
        trials: repetitions of the extra measurements, by the healthy row whose
            place they take.
        opened: opens the seal: the places of those that were slowed.
        lower_is_better: rows of times.
    """
    slow = fleet.judge({**values, **trials}, lower_is_better).keys()
    secret = trials.keys() & set(opened())
    healthy = trials.keys() - secret
    return Rates(len(slow & secret), len(secret), len(slow & healthy), len(healthy))


def of_records(
    values: Values,
    known: Collection[Place],
    lower_is_better: Collection[Hashable],
    seed: int,
    cases: int = CASES,
) -> Rates:
    """Rates in fleets that are drawn from the records of rows that are not slow.

    A node's level and the deviations of its repetitions are drawn each for itself, so that nodes and
    repetitions differ as much as those of the records.

    Args:
        values: of all rows.
        known: the places of the slow ones.
        lower_is_better: rows of times.
        seed: of the draw.
        cases: so many slow rows at least.
    """
    lot = np.random.default_rng(seed)
    places: dict[Hashable, list[Place]] = defaultdict(list)
    for place in values:
        places[place[1]].append(place)
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
            drawn |= zip(each, (np.exp(one).tolist() for one in logs), strict=True)
        slow = fleet.judge(drawn, lower_is_better).keys()
        healthy = len(drawn) - len(slowed)
        rates = rates.plus(Rates(len(slow & slowed), len(slowed), len(slow - slowed), healthy))
    # Few records tell little of the spread on which the rate depends, however many fleets are drawn.
    most = len(values) * SHARE
    parts = [min(1.0, most / max(1, of)) for of in (rates.slowed, rates.healthy)]
    scaled = np.multiply(rates, np.repeat(parts, 2))
    return Rates(*scaled.tolist())


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
