"""One side of a comparison: the rows of a campaign, with their repetitions and what was recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pandas as pd

from peakmark.comparability import fact, flat, matters
from peakmark.formatting import natural, size
from peakmark.rows.schema import CampaignFrames

ROW = ["point", "instrument"]
KEY = [
    "table", "instrument", "workload", "variant", "block_bytes", "threads", "node", "percentile",
]  # fmt: skip
"""Columns by which a row finds its like. ``threads`` is the word that was asked for, else the number:
two threads and all cores of a node with two are not the same question.
"""
PERCENTILES = {"": "", "p50": "p50", "p99": "p99", "p999": "p99.9"}
"""What is compared of a row -> its heading: the value itself, and percentiles of latencies."""


@dataclass(frozen=True)
class Dataset:
    """The rows of a campaign, as they are compared.

    Attributes:
        name: of the campaign.
        rows: the columns of ``KEY``, ``severity``, ``unequal_nodes`` and ``facts``: what was asked
            and recorded of the row, by title. Its index numbers the rows.
        values: for each row its values in SI units, a column for each repetition.
        starts: when the repetitions were begun, in seconds since 1970, sorted.
        machine: all facts of the machines, by title.
        hosts: that measured.
    """

    name: str
    rows: pd.DataFrame
    values: pd.DataFrame
    starts: tuple[float, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()

    @property
    def nodes(self) -> list[str]:
        """The nodes of the rows, in the order of their names."""
        return sorted(set(self.rows["node"]), key=natural)

    @property
    def without_node(self) -> Dataset:
        """The same rows without the name of their node."""
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
        name,
        every[[*KEY, "severity", "unequal_nodes", "facts"]],
        pd.concat(values, ignore_index=True).astype(float),
        tuple(sorted(runs["time"].dropna())),
        known.machine() | {"node": ", ".join(nodes)},
        frozenset(frames.facts["host"]),
    )


def with_facts(rows: pd.DataFrame, runs: pd.DataFrame, known: FactsOfHosts) -> pd.DataFrame:
    """Add ``threads`` and ``facts`` to rows."""
    threads = [threads_of(row) for row in rows.itertuples()]
    ends = pd.concat(
        [runs[[*ROW, "host"]], runs[[*ROW, "server_host"]].set_axis([*ROW, "host"], axis=1)]
    )
    hosts = ends.groupby(ROW)["host"].agg(frozenset)
    rows = rows.join(hosts.rename("ends"), on=ROW)
    facts: list[Any] = [facts_of(row, known) for row in rows.itertuples()]
    blocks = rows["block_bytes"].fillna(0).astype(int)
    return rows.assign(threads=threads, facts=facts, block_bytes=blocks)


def threads_of(row: Any) -> str:
    """Return the word that was asked for, else the number of threads."""
    return str(row.concurrency_word or row.concurrency)


def facts_of(row: Any, known: FactsOfHosts) -> dict[str, str]:
    """Return what was asked of a row, and recorded of it and of its hosts, by title."""
    hosts = row.ends if isinstance(row.ends, frozenset) else frozenset()
    facts: dict[str, str] = json.loads(row.settings or "{}")
    facts |= known.of_row(hosts, row.subsystem, row.instrument)
    facts |= json.loads(row.recorded or "{}")
    if row.concurrency_word:
        facts[f"threads of {row.concurrency_word}"] = str(row.concurrency)
    return facts


class FactsOfHosts:
    """The facts of a campaign's hosts as texts; what differs between hosts is listed."""

    def __init__(self, frames: CampaignFrames) -> None:
        self._by_host: dict[str, dict[str, str]] = {}
        for line in frames.facts.itertuples():
            of_host = self._by_host.setdefault(str(line.host), {})
            for name, text in flat(json.loads(str(line.value)), str(line.key)):
                if fact(name)["subsystems"] != "-":
                    of_host[name] = text
        self._versions: list[str] = sorted(frames.campaign.get("versions", ()))
        self.of = cache(self._of)
        self.of_row = cache(self._of_row)

    def _of(self, hosts: frozenset[str]) -> dict[str, str]:
        """Return the facts of some hosts by dotted name."""
        known: dict[str, set[str]] = {}
        for host in hosts:
            for name, text in self._by_host.get(host, {}).items():
                known.setdefault(name, set()).add(text)
        return {name: " or ".join(sorted(texts)) for name, texts in known.items()}

    def _of_row(self, hosts: frozenset[str], subsystem: str, instrument: str) -> dict[str, str]:
        """Return those that matter to the rows of a program, by title."""
        facts = self.of(hosts).items()
        return {
            fact(name)["title"]: text
            for name, text in facts
            if matters(name, subsystem, instrument)
        }

    def machine(self) -> dict[str, str]:
        """Return the facts of all hosts, and the versions of peakmark that measured, by title."""
        facts = self.of(frozenset(self._by_host))
        titles = {fact(name)["title"]: text for name, text in facts.items()}
        if self._versions:
            titles["peakmark"] = ", ".join(self._versions)
        return titles


def describe(row: Any) -> str:
    """Return ``disk_throughput diskbench RS psync 1 MiB x4`` for a line with the columns of ``KEY``."""
    node = row.node if row.node not in ("", "any") else ""
    place = [size(row.block_bytes or None), f"x{row.threads}", node, PERCENTILES[row.percentile]]
    parts = [row.table, row.instrument, row.workload, row.variant, *place]
    return " ".join(filter(None, parts))
