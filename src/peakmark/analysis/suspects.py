"""Slow nodes and suspected links that are measured again: which, beside which, and what came of it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

from peakmark import statistics
from peakmark.analysis import fleet
from peakmark.analysis.links import LinkMap
from peakmark.analysis.row import Row, SlowRow
from peakmark.cell import AGAIN
from peakmark.formatting import natural
from peakmark.messages import Message, message
from peakmark.plan.pairs import crossed
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


Place = tuple[str, Hashable]
"""A node or a link, and the key of a row."""
Family = dict[Place, Row]
"""The rows of the nodes of one class, or of the links of one kind."""
Values = Mapping[Place, Sequence[float]]


def families(tables: Mapping[str, Sequence[Row]]) -> list[Family]:
    """The rows by which the nodes of each class are judged."""
    classes: dict[str, Family] = {}
    for name, rows in tables.items():
        for row in filter(fleet.is_judged, rows):
            key = (name, *fleet.place(row))
            classes.setdefault(row.node_class, {})[row.key.node, key] = row
    return list(classes.values())


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
                verdict = SlowRow(*place, part.behind, part.low, part.high, nan)
                by_kind[len(path)][place] = replace(row, slow=verdict)
            elif slow.keys().isdisjoint({name, *nodes, *path}):
                by_kind[len(path)][place] = row
        yield from by_kind.values()


def judge(values: Values, times: Collection[Hashable]) -> dict[Place, SlowRow]:
    """The slow rows of a class. ``times``: the keys of rows of which a low value is good."""
    by_node: dict[str, dict[Hashable, Sequence[float]]] = defaultdict(dict)
    for (node, key), series in values.items():
        by_node[node][key] = series
    return {(slow.node, slow.key): slow for slow in fleet.judge(by_node, times)}


def times(family: Family) -> set[Hashable]:
    """The keys of rows of which a low value is good."""
    return {key for (_, key), row in family.items() if row.table.lower_is_better}


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


def choose(
    results: Results, tables: Mapping[str, Sequence[Row]], maps: Iterable[LinkMap]
) -> dict[str, list[str]]:
    """Rows of the plan in which nodes or links are slow -> those of healthy ones of their class."""
    chosen: dict[str, list[str]] = {}
    lot = random.Random(f"{results.config.get('seed', 1)}/controls")  # noqa: S311 - not a secret
    for family in (*families(tables), *link_families(maps)):
        slow = {place: row for place, row in family.items() if row.slow}
        healthy = {node for node, _ in family} - {node for node, _ in slow}
        controls = lot.sample(sorted(healthy), min(CONTROLS, len(healthy)))
        for (_, key), row in slow.items():
            beside = [family[node, key] for node in controls if (node, key) in family]
            chosen[planned(row)] = list(map(planned, beside))
    return chosen


def planned(row: Row, purpose: str = "") -> str:
    """The row of the plan that filled a row of a table, or that of its extra cells."""
    return replace(row.measured.points[0].record.cell, purpose=purpose).row


def outcomes(
    results: Results, tables: Mapping[str, Sequence[Row]], maps: Iterable[LinkMap]
) -> list[SecondMeasurement]:
    """What came of each slow row that was measured again, in the order of the nodes."""
    found = []
    every = (*families(tables), *link_families(maps)) if results.suspects else ()
    for family in every:
        later: dict[Place, list[float]] = {}
        controls: dict[Place, list[str]] = {}
        lost: dict[Place, list[float]] = {}
        for place, row in family.items():
            if row.slow is None:
                continue
            again = check_values(results, row, AGAIN)
            beside = results.suspects.get(planned(row), ())
            shares = {
                node: statistics.median(values) / other.measured.summary.median
                for (node, key), other in family.items()
                if key == place[1] and planned(other) in beside
                if (values := check_values(results, other, AGAIN))
            }
            if again and shares:
                # What moved the healthy nodes meanwhile moved the suspect too.
                drift = statistics.median(list(shares.values()))
                later[place], controls[place] = [value / drift for value in again], list(shares)
                sign = 1 if row.table.lower_is_better else -1
                typical = row.measured.summary.median / (1 + sign * row.slow.behind)
                lost[place] = [sign * (value / typical - 1) for value in later[place]]
        keys = {key for _, key in later}
        first = {place: row.measured.values for place, row in family.items() if place[1] in keys}
        slow = judge({**first, **later}, times(family))
        for place, values in lost.items():
            row, verdict = family[place], slow.get(place)
            share, interval = statistics.median(values), statistics.median_interval(values)
            if row.is_pair:  # as for a link with enough repetitions: its own interval decides
                is_slow = interval.enough and interval.low > fleet.DELTA
                limits = share, interval.low, interval.high
                verdict = SlowRow(*place, *limits, nan) if is_slow else None
            found.append(SecondMeasurement(row, verdict, share, controls[place]))
    return sorted(found, key=lambda each: natural(each.row.key.node))


def not_confirmed(found: Iterable[SecondMeasurement]) -> set[str]:
    """The nodes and links that were measured again and of which no row was slow again."""
    return {
        node for node, rows in _by_node(found).items() if all(each.second is None for each in rows)
    }


def _by_node(found: Iterable[SecondMeasurement]) -> dict[str, list[SecondMeasurement]]:
    by_node: dict[str, list[SecondMeasurement]] = {}
    for each in found:
        by_node.setdefault(each.row.key.node, []).append(each)
    return by_node


def told(found: Iterable[SecondMeasurement]) -> list[Message]:
    """A sentence on each node or link that was measured again."""
    sentences = []
    for node, rows in _by_node(found).items():
        slow = [each for each in rows if each.second is not None]
        beside = [name for each in rows for name in each.controls]
        case = "flaky"
        if slow:
            worse = sum(each.case == "worse" for each in slow)
            case = "worse" if 2 * worse > len(slow) else "confirmed"
        sentences.append(
            message(
                "second-measurement",
                case=case,
                node=node.replace("+", " → "),
                rows=len(slow),
                of=len(rows),
                beside=tuple(name.replace("+", " → ") for name in dict.fromkeys(beside)),
                behind=statistics.median([each.behind for each in slow or rows]),
            )
        )
    return sentences
