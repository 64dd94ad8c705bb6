"""Find the nodes and the pairs of nodes that are slow on the network, by medians.

Values are compared as logarithms of times or of reciprocal rates, so that a higher number is slower. A
pair is *behind* by its difference to the median pair of healthy nodes that crosses as many uplinks. A
node is behind by the median over its pairs with healthy nodes.

Random rounds measure each node with several partners, so that a few pairs for each node suffice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.rows.fleet import DELTA, LEAST_PAIRS, LEAST_PARTNERS, values_of
from peakmark.rows.schema import is_mapped
from peakmark.tools.tables import BY_NAME

QUANTILES = (0.25, 0.5, 0.5)
"""Quantile of the pairs of healthy nodes that is the usual pair, in each pass.

The first is below the median, because a slow rack can make most pairs slow. The passes after it know
the slow nodes.
"""
SPREADS = 4.0
"""Number of standard deviations of the other pairs by which a slow pair is behind, beyond ``DELTA``."""
NORMAL = 1.4826
"""Standard deviation of normally distributed values, as a multiple of their median absolute deviation."""

Kind = Literal["node", "pair"]


class SlowPart(NamedTuple):
    """A slow node or pair of nodes.

    Attributes:
        kind: ``node`` or ``pair``.
        name: name of the node; ``client+server`` for a pair.
        low: ``behind`` at the lower end of its confidence interval.
        behind: share by which the node or pair is behind.
        high: ``behind`` at the upper end of the interval.
        pairs: number of pairs from which this was estimated.
    """

    kind: Kind
    name: str
    low: float
    behind: float
    high: float
    pairs: int


def list_slow_parts(
    rows: pd.DataFrame, runs: pd.DataFrame, known: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Return a line of ``fleet`` for each slow node and pair, at each point.

    A point is here what the pairs of nodes have in common: workload, variant, block and concurrency.

    Args:
        rows: frame ``rows`` with severities. Only the rows of pairs that measured their link count
            (``is_mapped``).
        runs: frame ``runs``.
        known: switch or uplink -> nodes behind it.
    """
    of_links = rows[is_mapped(rows)]
    behind = {name: frozenset(nodes) for name, nodes in known.items()}
    lines = []
    for (table, point), pairs in of_links.groupby(["table", "place"], sort=False):
        by_time = {pair: values for (pair, _), values in values_of(pairs, runs).items()}
        # Keep the order of the rows: the order of the runs must not decide how ties are listed.
        measured = {pair: by_time[pair] for pair in pairs["node"]}
        for part in slow_parts(measured, BY_NAME[str(table)].lower_is_better, behind):
            line = part._asdict() | {"table": table, "point": point}
            line |= {"behind_low": part.low, "behind_high": part.high, "subsystem": "network"}
            lines.append(line)
    return pd.DataFrame(lines)


def slow_parts(
    measured: Mapping[str, Sequence[float]],
    lower_is_better: bool,
    known: Mapping[str, Collection[str]],
) -> list[SlowPart]:
    """Return the slow nodes, then the slow pairs, each with the slowest first.

    Args:
        measured: ``client+server`` -> the pair's repetitions, positive, in any unit.
        lower_is_better: whether the repetitions are times.
        known: switch or uplink -> nodes behind it.
    """
    if len(measured) < LEAST_PAIRS:
        return []
    sign = 1 if lower_is_better else -1
    pairs = frame_of_pairs(
        {name: sign * np.log(values) for name, values in measured.items()}, known
    )
    slow = pd.DataFrame(columns=["low", "behind", "high", "pairs"], dtype=float)
    # Which nodes are slow depends on the usual pair, and the usual pair is one of healthy nodes.
    for quantile in QUANTILES:
        is_healthy = ~(pairs["client"].isin(slow.index) | pairs["server"].isin(slow.index))
        logs = pairs["log"].where(is_healthy)
        usual = logs.groupby(pairs["uplinks"]).transform("quantile", quantile)
        behind = pairs["log"] - usual.fillna(pairs["log"].quantile(quantile))
        slow = slow_nodes(pairs.assign(behind=behind), slow.index)
    pairs = pairs.assign(behind=behind)[is_healthy]
    return [*parts_of("node", slow, sign), *parts_of("pair", slow_pairs(pairs), sign)]


def frame_of_pairs(
    logs: Mapping[str, NDArray[np.float64]], known: Mapping[str, Collection[str]]
) -> pd.DataFrame:
    """Return a line for each pair: its nodes, the number of uplinks between them, and its interval.

    Args:
        logs: pair -> logarithms of its repetitions; a higher number is slower.
        known: switch or uplink -> nodes behind it.
    """
    lines = {}
    for name, values in logs.items():
        client, server = name.split("+")
        interval = statistics.median_interval(values)
        lines[name] = {
            "client": client,
            "server": server,
            "uplinks": sum((client in nodes) != (server in nodes) for nodes in known.values()),
            "log": statistics.median(values),
            "log_low": interval.low,
            "log_high": interval.high,
        }
    return pd.DataFrame.from_dict(lines, orient="index")


def slow_nodes(pairs: pd.DataFrame, suspected: pd.Index[str]) -> pd.DataFrame:
    """Return the nodes of which the whole interval of the median is more than ``DELTA`` behind.

    Args:
        pairs: frame of pairs with the column ``behind``.
        suspected: nodes that seemed slow before; pairs with them say nothing about their partners.
    """
    ends = pd.concat(
        [
            pairs.assign(node=pairs["client"], partner=pairs["server"]),
            pairs.assign(node=pairs["server"], partner=pairs["client"]),
        ]
    )
    lines = {}
    with_healthy = ends[~ends["partner"].isin(suspected)]
    for node, of_node in with_healthy.groupby("node")["behind"]:
        values = of_node.to_numpy()
        interval = statistics.median_interval(values)
        if len(values) >= LEAST_PARTNERS and interval.low > DELTA:
            low, high = interval.low, interval.high
            middle = statistics.median(values)
            lines[node] = {"low": low, "behind": middle, "high": high, "pairs": len(values)}
    columns = ["low", "behind", "high", "pairs"]
    return pd.DataFrame.from_dict(lines, orient="index", columns=columns)


def slow_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that are behind by more than ``DELTA`` and than other pairs scatter.

    Args:
        pairs: frame of the pairs of healthy nodes, with the column ``behind``.
    """
    behind = pairs["behind"]
    spread = NORMAL * (behind - behind.median()).abs().median()
    slow = pairs[behind > DELTA + SPREADS * spread]
    return slow.assign(
        low=slow["behind"] + slow["log_low"] - slow["log"],
        high=slow["behind"] + slow["log_high"] - slow["log"],
        pairs=1,
    )


def parts_of(kind: Kind, slow: pd.DataFrame, sign: int) -> Iterator[SlowPart]:
    """Yield slow nodes or pairs, the slowest first, with the logarithms converted to shares.

    Args:
        kind: what the lines of ``slow`` are.
        slow: name -> columns ``low``, ``behind``, ``high`` and ``pairs``.
        sign: 1 for times, -1 for rates.
    """
    for name, line in slow.sort_values("behind", ascending=False, kind="stable").iterrows():
        low, behind, high = sign * np.expm1(sign * line[["low", "behind", "high"]].astype(float))
        yield SlowPart(kind, str(name), low, behind, high, int(line["pairs"]))
