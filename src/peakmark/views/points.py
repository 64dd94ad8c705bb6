"""The points of a table as frames: the rows of peakmark's kernel, and the values of all programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from peakmark.formatting import listed
from peakmark.rows.schema import CampaignFrames, is_usable
from peakmark.tools.tables import Table

MANY = 4
"""With at most this many nodes, tables on paper have a line for each node."""
NUMBERS = ["value", "mean", "median", "sd", "resolution", "limit", "efficiency", "share"]
"""Columns of ``rows`` that tables show of each program."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


class Points(NamedTuple):
    """The points of a table.

    Attributes:
        own: rows of peakmark's kernel, by point; the column ``line`` is the number of the line of a table
            that shows the point.
        rows: rows of all programs at these points.
        programs: instrument -> ``NUMBERS`` of its rows with a value, by point.
    """

    own: pd.DataFrame
    rows: pd.DataFrame
    programs: Mapping[str, pd.DataFrame]

    def of(self, instrument: str, name: str) -> pd.Series:
        """Return one of ``NUMBERS`` of a program by point; it is NaN at points without a value."""
        if instrument not in self.programs:
            return pd.Series(float("nan"), self.own.index)
        return self.programs[instrument][name].reindex(self.own.index)


def points_of(rows: pd.DataFrame) -> Points:
    """Return the points of rows, with a line for each point."""
    own = rows[rows["is_own"]].set_index("point", drop=False)
    # Select columns before rows: ``rows`` has about 80 columns.
    numbers = rows[["point", "instrument", *NUMBERS]][rows["n"].gt(0)].set_index("point")
    programs = {str(name): values for name, values in numbers.groupby("instrument")}
    return Points(own.assign(line=range(len(own))), rows, programs)


def rows_of(frames: CampaignFrames, table: Table) -> pd.DataFrame:
    """Return the rows of a table."""
    return frames.rows[frames.rows["table"].eq(table.name)]


def is_many(frames: CampaignFrames) -> bool:
    """Return whether tables on paper have no room for a line for each node."""
    return len(frames.nodes) > MANY


def place_label(own: pd.DataFrame) -> str:
    """Return the heading of the column of nodes; empty if one node measured all points."""
    if own["clients"].ne(own["servers"]).any():
        return "Client → server"
    return "Node" if own["node"].nunique() > 1 else ""


def places_of(own: pd.DataFrame) -> pd.Series:
    """Return where each point was measured, see ``place``."""
    places = map(place, own["clients"], own["servers"], own["node"])
    return pd.Series([*places], own.index, dtype=object)


def place(clients: str, servers: str, node: str) -> str:
    """Return where a point was measured: ``node1``, ``client → server`` or ``3 pairs``."""
    hosts = zip(clients.split("; "), servers.split("; "), strict=True)
    pairs = {pair for pair in hosts if pair[0] != pair[1]}
    if len(pairs) > 1:
        return f"{len(pairs)} pairs"
    return " → ".join(pairs.pop()) if pairs else node


# -- equal nodes


def with_medians(own: pd.DataFrame) -> pd.DataFrame:
    """Return the usable rows with the median of their class of nodes at the same place.

    The new columns are ``group``, the number of class and place in their order, ``median_of_nodes``, and
    ``behind``: the share by which a node is worse than its class.
    """
    in_order = own[["node_class", "place"]].sort_values("node_class", kind="stable")
    group = in_order.groupby(["node_class", "place"], sort=False).ngroup()
    usable = own.assign(group=group)[is_usable(own)]
    median = usable.groupby("group")["value"].transform("median")
    share = usable["value"] / median - 1
    worse = share.where(usable["unit"].eq("s"), -share)
    behind = usable["behind"].where(usable["is_slow"], worse)
    return usable.assign(median_of_nodes=median, behind=behind)


def typical_node(usable: pd.DataFrame) -> str:
    """Return the node that represents all nodes.

    Among the nodes of the first class with the most points, it is the one nearest to the medians.

    Args:
        usable: see ``with_medians``; at least one row.
    """
    of_class = usable[usable["node_class"].eq(usable["node_class"].min())]
    off = of_class["behind"].abs().groupby(of_class["node"], sort=False)
    nodes = off.agg(["size", "median"])
    in_order = nodes.sort_values(["size", "median"], ascending=[False, True], kind="stable")
    return str(in_order.index[0])


def noun_of(own: pd.DataFrame) -> str:
    """Return the noun for the nodes of rows: ``nodes``, ``pairs``, or both."""
    is_pair = own["node"].str.contains("+", regex=False)
    return listed(sorted(is_pair.map({True: "pairs", False: "nodes"}).unique()))
