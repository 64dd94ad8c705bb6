"""Compare two campaigns row by row, and report it as text.

A campaign is read as ``Dataset``: its rows with their repetitions and recorded facts.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from peakmark import statistics
from peakmark.comparability import fact, flat, matters
from peakmark.errors import ConfigError
from peakmark.formatting import natural, plural, quantity, significant, size, typeset
from peakmark.messages import Trust
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, Table

ROW = ["point", "instrument"]  # what identifies a row within a campaign
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
        rows: a line for each row, with the columns of ``KEY``, ``trust``, ``unequal_nodes`` and
            ``facts``. ``facts`` maps titles to settings and recorded facts. The index numbers the rows.
        values: the values of each row in SI units, with a column for each repetition.
        machine: all facts of the machines, by title.
    """

    name: str
    rows: pd.DataFrame
    values: pd.DataFrame
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """Return the nodes of the rows, in the order of their names."""
        return sorted(set(self.rows["node"]), key=natural)

    @property
    def without_node(self) -> Dataset:
        """Return the dataset without the names of its nodes."""
        return replace(self, rows=self.rows.assign(node=""))


def dataset_of(name: str, frames: CampaignFrames) -> Dataset:
    """Return a judged campaign as one of the two campaigns of a comparison."""
    known = FactsOfHosts(frames)
    runs = frames.runs[frames.runs["kept"]]
    rows = with_facts(frames.rows[frames.rows["n"] > 0], runs, known)
    # The value of a row (the empty name in ``PERCENTILES``) and each of its percentiles are rows of
    # the dataset. ``parts`` and ``values`` have the same order.
    parts, values = [], []
    for percentile in PERCENTILES:
        column = percentile or "value"
        part = rows[rows[column].notna()].assign(percentile=percentile)
        # An area that the node chose may be one that the configuration also names: then a row has
        # two runs of each repetition, of which the last counts.
        of_runs = runs.pivot_table(column, ROW, "repetition", aggfunc="last")
        parts.append(part)
        values.append(of_runs.reindex(pd.MultiIndex.from_frame(part[ROW])))
    every = pd.concat(parts, ignore_index=True)
    nodes = sorted(set(rows["node"]), key=natural)
    return Dataset(
        name=name,
        rows=every[[*KEY, "trust", "unequal_nodes", "facts"]],
        values=pd.concat(values, ignore_index=True).astype(float),
        machine=known.machine() | {"node": ", ".join(nodes)},
    )


def with_facts(rows: pd.DataFrame, runs: pd.DataFrame, known: FactsOfHosts) -> pd.DataFrame:
    """Add the columns ``threads`` and ``facts`` to rows, and set a missing block size to 0.

    ``threads`` is the word of the configuration, such as ``cores``, or the number if there is no
    word.
    """
    threads = [str(row.concurrency_word or row.concurrency) for row in rows.itertuples()]
    # The hosts of the runs of each row: that of the program, and that of its server if there is one.
    ends = runs.melt(ROW, ["host", "server_host"], value_name="end")
    hosts = ends.groupby(ROW)["end"].agg(frozenset)
    rows = rows.join(hosts.rename("ends"), on=ROW)
    facts: list[Any] = [facts_of(row, known) for row in rows.itertuples()]
    blocks = rows["block_bytes"].fillna(0).astype(int)
    return rows.assign(threads=threads, facts=facts, block_bytes=blocks)


def facts_of(row: Any, known: FactsOfHosts) -> dict[str, str]:
    """Return the settings of a row, its recorded facts, and the facts of its hosts: title -> text.

    If several facts have the same title, the fact in the row's own records (``recorded``) counts.
    """
    # A row without runs has no hosts: its cell of the joined column ``ends`` is NaN.
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
            for name, text in flat(json.loads(line.value), line.part):
                # Facts marked "-" change from run to run or repeat another fact.
                if fact(name)["subsystems"] != "-":
                    self._by_host[line.host][name] = text
        self._versions: list[str] = sorted(frames.campaign.get("versions", ()))
        # Many rows have the same hosts and program.
        self.facts_of_hosts = cache(self._facts_of_hosts)
        self.facts_of_row = cache(self._facts_of_row)

    def _facts_of_hosts(self, hosts: frozenset[str]) -> dict[str, str]:
        """Return dotted name -> text of the facts of some hosts. Hosts without facts are left out."""
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


# -- the rows of both campaigns

CLAIMS = ("better", "worse")
# In the order in which the numbers of their rows are printed.
VERDICTS = (*CLAIMS, "no difference shown", "cannot tell", "not comparable")
UNJUDGED = ("cannot tell", "not comparable")
FALSE_DISCOVERIES = 0.05
"""False discovery rate over all rows; the intervals have the confidence 1 - ``FALSE_DISCOVERIES``."""
TOLERANCE = 0.03
"""Share by which a row may differ without a verdict. Two campaigns of one machine at different times
seldom differ by less.
"""
JUDGED_TOGETHER = ["table", "percentile", "variant", "node", "is_comparable"]
"""Columns that are equal in rows whose changes are judged together: the values of such rows spread similarly."""
LEAST_TIMES = 1.5
"""Smallest factor that is written as ``1.7 times faster``; a smaller one is written ``12 % faster``."""
LEVEL_PERCENT = 0.5
"""Change below which a ratio is written as ``level``, %."""


@dataclass(frozen=True)
class Rules:
    """The rules by which rows get their verdicts.

    Attributes:
        tolerance: share by which a row may differ without a verdict.
        changed: titles of facts that the user changed on purpose; these may differ.
    """

    tolerance: float = TOLERANCE
    changed: Sequence[str] = ()


DEFAULT_RULES = Rules()


def compare(
    before: Dataset, after: Dataset, rules: Rules = DEFAULT_RULES
) -> tuple[pd.DataFrame, int, int]:
    """Return the rows that both campaigns have, each with its verdict, and count the rows that only one has.

    Args:
        before: campaign A.
        after: campaign B.
        rules: for the verdicts.

    Returns:
        Three values: the table, the number of rows that only A has, and that of rows that only B has.
        The table has a line for each row in the order of A, with the columns of ``KEY`` and

        - ``value_a``, ``value_b``: geometric means in SI units; ``n_a``, ``n_b``: repetitions;
        - ``trust_a``, ``trust_b``: ``no``, ``care`` or ``ok``. No trust prevents a verdict: both
          campaigns may have measured loopback, and a reader sees the trust beside the verdict;
        - ``differ``: settings and facts that differ, sentences by title;
        - ``change``, ``half``, ``p``: logarithm of B / A, half the width of its 95 % interval
          (``FALSE_DISCOVERIES``), p-value. A positive change is worse in a table of times;
        - ``verdict``: ``better`` or ``worse`` if the change is significant and larger than the
          tolerance; ``cannot tell`` with too few values; ``not comparable`` if a fact in ``differ``
          matters.
    """
    pairs = matched(before, after)
    if len(pairs):
        differ: list[Any] = [differences_of(pair) for pair in pairs.itertuples()]
        comparable = [set(each) <= set(rules.changed) for each in differ]
        pairs = pairs.assign(differ=differ, is_comparable=comparable)
        pairs = pairs.pipe(add_changes, before, after).pipe(add_verdicts, rules.tolerance)
    return pairs, len(before.rows) - len(pairs), len(after.rows) - len(pairs)


def matched(before: Dataset, after: Dataset) -> pd.DataFrame:
    """Return the rows that both campaigns have, each in one line: ``row_a`` and ``row_b`` are their numbers.

    If each campaign has one node, the nodes' names may differ.
    """
    if len(before.nodes) == len(after.nodes) == 1:
        before, after = before.without_node, after.without_node
    first, second = before.rows.reset_index(names="row"), after.rows.reset_index(names="row")
    return first.merge(second, on=KEY, suffixes=("_a", "_b"))


def differences_of(pair: Any) -> dict[str, str]:
    """Return the facts and settings of a row that differ between the campaigns, as sentences by title."""
    found = sentences_on(differences(pair.facts_a, pair.facts_b))
    # A row over unequal nodes has no fact with a title: the user cannot name it in ``changed``.
    mixed = pair.unequal_nodes_a or pair.unequal_nodes_b
    if mixed:
        side = "A" if pair.unequal_nodes_a else "B"
        found[""] = f"{side} mixes nodes that are not equal ({mixed})"
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the facts that both campaigns know and that differ: title -> the text of each campaign."""
    found = {}
    for name, text in before.items():
        other = after.get(name, text)  # a fact that B does not know counts as equal
        if other != text:
            found[name] = text, other
    return found


def sentences_on(differences: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return a sentence on each difference, by its title."""
    sentences = {}
    for title, (first, second) in differences.items():
        sentences[title] = f"{title}: A has {first}, B has {second}"
    return sentences


# -- verdicts


def add_changes(pairs: pd.DataFrame, before: Dataset, after: Dataset) -> pd.DataFrame:
    """Add the change of each row, with an interval from all rows whose values spread similarly."""
    groups = []
    for _, group in pairs.groupby(JUDGED_TOGETHER, sort=False):
        # Logarithms of the values: a line for each row, a column for each repetition.
        first = np.log(before.values.loc[group["row_a"]].to_numpy())
        second = np.log(after.values.loc[group["row_b"]].to_numpy())
        changes = statistics.changes(first, second, confidence=1 - FALSE_DISCOVERIES)
        found = pd.DataFrame(changes, index=group.index, columns=["mean", "half", "p"])
        groups.append(
            group.assign(
                value_a=np.exp(np.nanmean(first, axis=1)),
                value_b=np.exp(np.nanmean(second, axis=1)),
                n_a=np.isfinite(first).sum(axis=1),
                n_b=np.isfinite(second).sum(axis=1),
                change=found["mean"],
                half=found["half"],
                p=found["p"],
            )
        )
    return pd.concat(groups).sort_index()


def add_verdicts(pairs: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """Add verdicts with a false discovery rate of at most ``FALSE_DISCOVERIES``."""
    limit = math.log1p(tolerance)
    # A row with too few values has no p-value.
    judged = pairs[pairs["is_comparable"] & pairs["p"].notna()]
    # A change within the tolerance is never stated, however significant.
    p = judged["p"].where(judged["change"].abs() > limit, 1.0)
    found = np.array(statistics.discoveries(list(p), FALSE_DISCOVERIES), dtype=bool)
    # An increase is worse where lower values are better, and a decrease where higher ones are.
    is_worse = judged["change"].gt(0) == judged["table"].map(is_lower_better)
    claim = pd.Series("better", judged.index).mask(is_worse, "worse")
    verdicts = pd.Series("cannot tell", pairs.index)
    verdicts = verdicts.mask(~pairs["is_comparable"], "not comparable")
    verdicts.update(claim.where(found, "no difference shown"))
    return pairs.assign(verdict=verdicts)


def is_lower_better(table: str) -> bool:
    """Return whether lower values of a table are better."""
    return BY_NAME[table].lower_is_better


# -- the comparison as a whole


@dataclass(frozen=True)
class CampaignComparison:
    """Two campaigns with the verdict on each row.

    Attributes:
        before: campaign A.
        after: campaign B.
        rules: for the verdicts.
        pairs: the rows of ``compare``, the largest change first.
        only: numbers of the rows that only A has, and that only B has.
        facts: the facts and settings that differ: title -> different sentences.
    """

    before: Dataset
    after: Dataset
    rules: Rules
    pairs: pd.DataFrame
    only: tuple[int, int]
    facts: Mapping[str, Sequence[str]]

    @property
    def counts(self) -> Counter[str]:
        """Return the number of rows with each verdict."""
        return Counter(self.pairs["verdict"])


def judge(before: Dataset, after: Dataset, rules: Rules = DEFAULT_RULES) -> CampaignComparison:
    """Return the comparison of two campaigns. The arguments are those of ``compare``.

    Raises:
        ConfigError: the campaigns have no row in common, or a fact in ``rules.changed`` is equal.
    """
    pairs, only_in_a, only_in_b = compare(before, after, rules)
    if pairs.empty:
        raise ConfigError(
            f"{before.name} and {after.name} have no row in common: they measured other workloads, blocks, thread counts or nodes"
        )
    facts = facts_that_differ(before, after, pairs, rules.changed)
    pairs = pairs.sort_values("change", key=abs, ascending=False, kind="stable")
    return CampaignComparison(before, after, rules, pairs, (only_in_a, only_in_b), facts)


# -- text


def report(found: CampaignComparison) -> str:
    """Return the comparison as text. It begins with two sentences on the whole comparison."""
    lines = [verdict_sentence(found.counts), largest_sentence(found.pairs)]
    if found.facts:
        lines += ["", *fact_lines(found.facts, found.pairs, found.rules.changed)]
    head = (
        f"A is {found.before.name}, B is {found.after.name}: geometric means, and the speed of B against A with"
        f" {100 * (1 - FALSE_DISCOVERIES):g} % intervals"
    )
    rows = [*found.pairs.itertuples()]
    width = max(len(describe(row)) for row in rows)
    lines += ["", head, ""]
    lines += [line_of(row, width) for row in rows]
    lines += ["", *remarks(found)]
    return "\n".join(lines)


def verdict_sentence(counts: Counter[str]) -> str:
    """Return the number of rows with each verdict as a sentence."""
    given = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"Of {plural(counts.total(), 'row')}: {'; '.join(given)}."


def largest_sentence(pairs: pd.DataFrame) -> str:
    """Return a sentence on the largest change of a row that is better or worse."""
    changed = pairs[pairs["verdict"].isin(CLAIMS)]
    # The largest change comes first, see ``CampaignComparison.pairs``.
    if len(changed):
        row: Any = next(changed.itertuples())
        change = speed_change(BY_NAME[row.table], math.exp(row.change))
        return f"Largest change: {describe(row)} is {change} ({row.verdict})."
    if pairs["verdict"].isin(UNJUDGED).all():
        return "No row could be judged."
    return "No row shows a change."


def facts_that_differ(
    before: Dataset, after: Dataset, pairs: pd.DataFrame, changed: Sequence[str]
) -> dict[str, list[str]]:
    """Return the facts and settings that differ, as sentences below their title.

    Raises:
        ConfigError: a fact in ``changed`` is equal in both campaigns.
    """
    found: dict[str, list[str]] = {}
    # Facts of the machines that matter to no row of ``pairs`` are listed too.
    of_machine = sentences_on(differences(before.machine, after.machine))
    for differ in [*pairs["differ"], of_machine]:
        for title, text in differ.items():
            known = found.setdefault(title, [])
            if text not in known:
                known.append(text)
    # The title "" is that of unequal nodes, which a user cannot choose.
    if not found.keys() >= set(changed):
        known_titles = ", ".join(sorted(found.keys() - {""})) or "none"
        raise ConfigError(
            f"--changed {', '.join(changed)}: each must be a fact that differs; these do: {known_titles}"
        )
    return found


def fact_lines(
    facts: Mapping[str, Sequence[str]], pairs: pd.DataFrame, changed: Sequence[str]
) -> list[str]:
    """Return a line for each fact or setting in which the campaigns differ.

    A line also has the number of rows that get no verdict because of the difference.
    """
    # Sentence on a difference -> number of the rows that it makes not comparable.
    stops: Counter[str] = Counter()
    for differ in pairs.loc[~pairs["is_comparable"], "differ"]:
        stops.update(text for title, text in differ.items() if title not in changed)
    lines = []
    for texts in facts.values():
        for text in texts:
            stopped = ""
            if text in stops:
                stopped = f"; no verdict on {plural(stops[text], 'row')}"
            lines.append(text + stopped)
    return lines


def remarks(found: CampaignComparison) -> list[str]:
    """Return sentences that a reader of the verdicts must know."""
    pairs, rules = found.pairs, found.rules
    only_in_a, only_in_b = found.only
    sentences = []
    sentences.append(
        f"without any change, at most {100 * FALSE_DISCOVERIES:g} % of comparisons call a row better or worse;"
        f" a difference below {100 * rules.tolerance:g} % gets no verdict"
    )
    is_doubtful = pairs["trust_a"].ne(Trust.OK) | pairs["trust_b"].ne(Trust.OK)
    if is_doubtful.any():
        sentences.append(
            f"trust is care or no: {plural(int(is_doubtful.sum()), 'row')}:"
            " read the warnings in the reports before you believe a verdict"
        )
    # 3 repetitions: two samples of 3 values have ``statistics.FEWEST_FREEDOM`` degrees of freedom.
    few = int(pairs["verdict"].eq("cannot tell").sum())
    if few:
        sentences.append(
            f"cannot tell of {plural(few, 'row')}: a verdict takes 3 repetitions on each side"
        )
    if only_in_a or only_in_b:
        sentences.append(
            f"{plural(only_in_a, 'row')} only in A, {plural(only_in_b, 'row')} only in B"
        )
    return sentences


def speed_of(table: Table, ratio: float) -> float:
    """Return the speed of B as a multiple of A's speed, from the ratio of B's value to A's value."""
    return 1 / ratio if table.lower_is_better else ratio


def speed_change(table: Table, ratio: float) -> str:
    """Return the ratio of B's value to A's value in words: ``1.7 times faster``, ``12 % slower`` or ``level``."""
    speed = speed_of(table, ratio)
    direction = "faster" if speed > 1 else "slower"
    factor = max(speed, 1 / speed)
    if factor >= LEAST_TIMES:
        return f"{significant(factor, digits=2)} times {direction}"
    percent = 100 * abs(speed - 1)
    if percent < LEVEL_PERCENT:
        return "level"
    return f"{significant(percent, digits=2)} % {direction}"


def line_of(row: Any, width: int) -> str:
    """Return one row of the text: values, change with its interval, repetitions, verdict."""
    table = BY_NAME[row.table]
    old, new = (typeset(quantity(value, table.unit)) for value in (row.value_a, row.value_b))
    counts = f"n {row.n_a}, {row.n_b}"
    doubts = []
    for side, trust in (("A", row.trust_a), ("B", row.trust_b)):
        if trust != Trust.OK:
            doubts.append(f"{side} {trust}")
    verdict = row.verdict
    if doubts:
        verdict += f" ({', '.join(doubts)})"
    name = describe(row).ljust(width)
    values = f"{old:>14} -> {new:<14}"
    change = speed_change(table, math.exp(row.change))
    return f"{name}  {values} {change:<17} {interval_of(row):<21} {counts:<9} {verdict}"


def interval_of(row: Any) -> str:
    """Return the interval of a change of speed, empty for a row with too few values."""
    if math.isnan(row.p):
        return ""
    table = BY_NAME[row.table]
    ends = [speed_of(table, math.exp(row.change + end)) for end in (-row.half, row.half)]
    # From multiples of A's speed to changes in percent.
    low, high = 100 * min(ends) - 100, 100 * max(ends) - 100
    return f"({low:+.1f} to {high:+.1f} %)"
