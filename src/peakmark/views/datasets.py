"""One side of a comparison: the rows of a campaign, with their repetitions and recorded facts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pandas as pd

from peakmark.comparability import fact, flat, matters
from peakmark.formatting import natural, size
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames

ROW = ["point", "instrument"]
KEY = [
    "table", "instrument", "workload", "variant", "block_bytes", "threads", "node", "percentile",
]  # fmt: skip
"""Columns that must be equal in two rows that are compared. ``threads`` is the word in the configuration,
or the number if there is no word: ``2`` and ``cores`` are never compared, even on a node with two cores.
"""
PERCENTILES = {"": "", "p50": "p50", "p99": "p99", "p999": "p99.9"}
"""Percentile that is compared -> its heading; the empty name is the value of the row."""


@dataclass(frozen=True)
class Dataset:
    """The rows of a campaign for a comparison.

    Attributes:
        name: name of the campaign.
        rows: a line for each row, with the columns of ``KEY``, ``severity``, ``unequal_nodes`` and
            ``facts``. ``facts`` maps titles to settings and recorded facts. The index numbers the rows.
        values: the values of each row in SI units, with a column for each repetition.
        starts: starts of the repetitions, in seconds since 1970, sorted.
        machine: all facts of the machines, by title.
        hosts: hosts that measured.
    """

    name: str
    rows: pd.DataFrame
    values: pd.DataFrame
    starts: tuple[float, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()

    @property
    def nodes(self) -> list[str]:
        """Return the nodes of the rows, in the order of their names."""
        return sorted(set(self.rows["node"]), key=natural)

    @property
    def without_node(self) -> Dataset:
        """Return the dataset without the names of its nodes."""
        return replace(self, rows=self.rows.assign(node=""))


def dataset_of(name: str, frames: CampaignFrames) -> Dataset:
    """Return a judged campaign as one side of a comparison."""
    known = FactsOfHosts(frames)
    runs = frames.runs[frames.runs["kept"]]
    rows = with_facts(frames.rows[frames.rows["n"] > 0], runs, known)
    parts, values = [], []
    for percentile in PERCENTILES:
        column = percentile or "value"
        part = rows[rows[column].notna()].assign(percentile=percentile)
        of_runs = runs.pivot_table(column, ROW, "repetition", aggfunc="last")
        parts.append(part)
        values.append(of_runs.reindex(pd.MultiIndex.from_frame(part[ROW])))
    every = pd.concat(parts, ignore_index=True)
    nodes = sorted(set(rows["node"]), key=natural)
    return Dataset(
        name=name,
        rows=every[[*KEY, "severity", "unequal_nodes", "facts"]],
        values=pd.concat(values, ignore_index=True).astype(float),
        starts=tuple(sorted(runs["time"].dropna())),
        machine=known.machine() | {"node": ", ".join(nodes)},
        hosts=frozenset(frames.facts["host"]),
    )


def with_facts(rows: pd.DataFrame, runs: pd.DataFrame, known: FactsOfHosts) -> pd.DataFrame:
    """Add the columns ``threads`` and ``facts`` to rows, and set a missing block size to 0."""
    threads = [threads_of(row) for row in rows.itertuples()]
    ends = runs.melt(ROW, ["host", "server_host"], value_name="end")
    hosts = ends.groupby(ROW)["end"].agg(frozenset)
    rows = rows.join(hosts.rename("ends"), on=ROW)
    facts: list[Any] = [facts_of(row, known) for row in rows.itertuples()]
    blocks = rows["block_bytes"].fillna(0).astype(int)
    return rows.assign(threads=threads, facts=facts, block_bytes=blocks)


def threads_of(row: Any) -> str:
    """Return the word for the threads in the configuration, or their number if there is no word."""
    return str(row.concurrency_word or row.concurrency)


def facts_of(row: Any, known: FactsOfHosts) -> dict[str, str]:
    """Return the settings of a row, its recorded facts, and those of its hosts, by title."""
    hosts = row.ends if isinstance(row.ends, frozenset) else frozenset()
    facts: dict[str, str] = json.loads(row.settings or "{}")
    facts |= known.facts_of_row(hosts, row.subsystem, row.instrument)
    facts |= json.loads(row.recorded or "{}")
    if row.concurrency_word:
        facts[f"threads of {row.concurrency_word}"] = str(row.concurrency)
    return facts


class FactsOfHosts:
    """The facts of a campaign's hosts as texts. If hosts differ in a fact, its text lists all values."""

    def __init__(self, frames: CampaignFrames) -> None:
        self._by_host: dict[str, dict[str, str]] = {host: {} for host in frames.facts["host"]}
        for line in schema.lines(frames.facts):
            for name, text in flat(json.loads(line.value), line.key):
                # Facts marked "-" change from run to run or repeat another fact.
                if fact(name)["subsystems"] != "-":
                    self._by_host[line.host][name] = text
        self._versions: list[str] = sorted(frames.campaign.get("versions", ()))
        self.facts_of_hosts = cache(self._facts_of_hosts)
        self.facts_of_row = cache(self._facts_of_row)

    def _facts_of_hosts(self, hosts: frozenset[str]) -> dict[str, str]:
        """Return the facts of some hosts by dotted name."""
        known: dict[str, set[str]] = defaultdict(set)
        for host in hosts:
            for name, text in self._by_host.get(host, {}).items():
                known[name].add(text)
        return {name: " or ".join(sorted(texts)) for name, texts in known.items()}

    def _facts_of_row(
        self, hosts: frozenset[str], subsystem: str, instrument: str
    ) -> dict[str, str]:
        """Return the facts of a row's hosts that matter to the row's program, by title."""
        titles = {}
        for name, text in self.facts_of_hosts(hosts).items():
            if matters(name, subsystem, instrument):
                titles[fact(name)["title"]] = text
        return titles

    def machine(self) -> dict[str, str]:
        """Return the facts of all hosts, and the versions of peakmark that measured, by title."""
        facts = self.facts_of_hosts(frozenset(self._by_host))
        titles = {fact(name)["title"]: text for name, text in facts.items()}
        if self._versions:
            titles["peakmark"] = ", ".join(self._versions)
        return titles


def describe(row: Any) -> str:
    """Return ``disk_throughput diskbench RS psync 1 MiB x4`` for a line with the columns of ``KEY``."""
    parts = [row.table, row.instrument, row.workload, row.variant]
    parts += [size(row.block_bytes or None), f"x{row.threads}"]
    if row.node != "any":
        parts.append(row.node)
    parts.append(PERCENTILES[row.percentile])
    return " ".join(filter(None, parts))
