"""Compute the physical limit of each point, from the facts that its runs recorded of the machine.

The limit of a CPU row holds at the observed clock, so that a node whose clock is too low still has a high
efficiency. Therefore the clock itself is compared with the highest clock known for the same work.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from peakmark.comparability import equipment_of
from peakmark.formatting import natural
from peakmark.limits import Limit, Question, for_row
from peakmark.limits.memory import level_of
from peakmark.messages import words
from peakmark.rows import schema
from peakmark.rows.runs import ROW
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME

WORK = ["cpu_class", "workload", "isa", "concurrency"]
"""Columns that must be equal in two rows whose clocks are compared: many cores and wide vectors lower the clock."""
ABOVE = 1.005
"""A value above this multiple of its limit shows that the limit is too low, or that the clock was misread."""
BOOSTED_THREADS = 2
"""Number of threads up to which a CPU reaches its maximum clock: datasheets state it for one or two
busy cores.
"""


def find_limits(runs: pd.DataFrame, unequal: pd.Series, results: Results) -> pd.DataFrame:
    """Return the limit of each point, with the columns of ``_COLUMNS``. The point is the index.

    Args:
        runs: frame ``runs``.
        unequal: (point, instrument) -> text of the facts in which the nodes of a row differ; empty for
            equal nodes. Rows of unequal nodes have no limit.
        results: records and facts of the campaign.
    """
    columns = []
    for point in schema.lines(describe_points(runs)):
        differ = unequal.get((point.point, kernel_of(point.table)), "")
        columns.append(limit_of(point, differ, results))
    return pd.DataFrame(columns, columns=_COLUMNS).set_index("point")


_COLUMNS = [
    "point", "limit", "bound", "limit_kind", "limit_origin", "limit_formula", "limit_detail",
    "limit_sources", "limit_clock", "limit_clock_hz", "limit_clock_loaded", "limit_bandwidth",
    "limit_reason", "limit_remarks", "limit_finding", "limit_host", "cache_level", "maximum_hz", "nominal_hz",
]  # fmt: skip


def describe_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each point what its limit depends on: hosts, clocks, placement, stores and link.

    All are taken from the runs that ``runs_for_limits`` returns. The clock is the median of these
    runs, as the value is: a clock drifts between runs, and the rate with it. Clocks before and after the work are those
    of undisturbed runs or, if all are disturbed, the highest: who waits for its CPU reads a low clock.
    """
    runs = runs[runs["table"].ne("")]
    points = runs[["point", "subsystem", *schema.POINT]].drop_duplicates("point")
    chosen = runs_for_limits(runs)
    texts = chosen[["store", "isa", "link"]]
    # Where a clock during the work is known, ``clock_hz`` is the same or, if it was misread, another.
    # An empty text becomes unknown, so that the first known one is taken.
    seen = chosen.assign(
        clock_work_hz=chosen["clock_hz"].where(chosen["clock_work_hz"].gt(0)),
        **texts.where(texts != ""),
    )
    facts = seen.groupby("point").agg(
        hosts=("host", "unique"),
        median=("value", "median"),
        clock_work_hz=("clock_work_hz", "median"),
        highest_hz=("clock_idle_hz", "max"),
        loopback=("loopback", "any"),
        store=("store", "first"),
        isa=("isa", "first"),
        link=("link", "first"),
    )
    clean = chosen[chosen["causes"].eq("")]
    idle = clean.groupby("point")["clock_idle_hz"].median()
    facts["clock_idle_hz"] = idle.reindex(facts.index).fillna(facts["highest_hz"])
    places = best_places(chosen)
    return points.join(facts, on="point").join(places, on="point")


def runs_for_limits(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the usual runs of one program at each point.

    It is peakmark's kernel or, at points where the kernel has no usual run, the first other
    program.
    """
    usual = runs[runs["is_usual"]]
    is_own = usual["instrument"].eq(usual["table"].map(kernel_of))
    has_own = usual["point"].isin(usual.loc[is_own, "point"])
    program = usual[is_own | ~has_own].drop_duplicates("point")[ROW]
    return usual.merge(program, on=ROW)


def best_places(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each point the cores, sockets, NUMA nodes and cache that its threads could use.

    If threads were placed differently in the repetitions, the repetition with the most resources counts:
    a limit may be too high, but never too low.
    """
    placed = runs[runs["placed_cores"].notna()]
    # The NUMA nodes are a JSON list: one with more commas has more nodes.
    commas = placed["placed_numa_nodes"].str.count(",")
    most_first = placed.assign(commas=commas).sort_values(
        ["placed_cores", "placed_sockets", "commas"], ascending=False, kind="stable"
    )
    columns = {
        "placed_cores": "cores",
        "placed_sockets": "sockets",
        "placed_numa_nodes": "numa_nodes",
        "placed_cache_bytes": "last_level_bytes",
    }
    best = most_first.drop_duplicates("point").set_index("point")
    return best[list(columns)].rename(columns=columns)


def kernel_of(table: str) -> str:
    """Return the instrument of a table's own program, usually peakmark's kernel."""
    return BY_NAME[table].own.instrument


class Answer(NamedTuple):
    """Limit of a point on one host.

    Attributes:
        host: the host; None if no host of the point has facts.
        limit: the limit.
        question: what the limit was computed from.
    """

    host: str | None
    limit: Limit
    question: Question


def limit_of(point: Any, unequal: str, results: Results) -> dict[str, Any]:
    """Return the columns of one point's limit, by name.

    Args:
        point: a line of ``describe_points``.
        unequal: text of the facts in which the point's nodes differ; empty if they are equal.
        results: records and facts of the campaign.
    """
    host, limit, question = best_answer(point, results)
    if unequal:
        limit = question.unknown("unequal-nodes", differ=unequal)
    clocks = {name: clock.hz for name, clock in question.clocks.items()}
    return {
        "point": point.point,
        "limit": limit.value,
        "bound": limit.bound,
        "limit_kind": limit.kind,
        "limit_origin": limit.origin,
        "limit_formula": limit.formula,
        "limit_detail": limit.detail,
        "limit_sources": json.dumps(limit.sources, ensure_ascii=False),
        "limit_clock": limit.clock,
        "limit_clock_hz": question.clock_hz,
        "limit_clock_loaded": question.clock_loaded,
        "limit_bandwidth": limit.bandwidth,
        "limit_reason": limit.reason,
        "limit_remarks": json.dumps(limit.remarks, ensure_ascii=False),
        "limit_finding": limit.finding,
        "limit_host": host or "",
        "cache_level": level_of(question) if question.subsystem == "memory" else "",
        "maximum_hz": clocks.get("maximum"),
        "nominal_hz": clocks.get("nominal"),
    }


def best_answer(point: Any, results: Results) -> Answer:
    """Return the answer for the host with the best limit: the highest rate or the lowest time.

    The limits of the hosts may differ. The best is taken, so that no host can exceed the limit. An unknown
    limit counts as the best: it may be better than the known ones.
    """

    def share_of_one(found: Answer) -> float:
        """Return the share of the limit that a value of 1 reaches. It is smallest for the best limit."""
        return found.limit.share(1.0) or 0.0

    return min(answers_of(point, results), key=share_of_one)


def answers_of(point: Any, results: Results) -> list[Answer]:
    """Return an answer for each host that measured a point and has facts; if none has, a single one without a host."""
    answers = []
    measured = [] if point.hosts is None else sorted(point.hosts, key=natural)
    known = [host for host in measured if host in results.facts]
    for host in known or [None]:
        question = question_of(point, host, results)
        limit = answer(question, point)
        # No value can be above its limit, so the clock during the work was misread. Use the one before or after.
        # This needs a higher clock before or after the work.
        is_above = question.clock_loaded and (limit.share(point.median) or 0) > ABOVE
        if is_above and (point.clock_idle_hz or 0) > point.clock_work_hz:
            question = replace(question, clock_hz=point.clock_idle_hz, clock_loaded=False)
            limit = answer(question, point)
        answers.append(Answer(host, limit, question))
    return answers


def question_of(point: Any, host: str | None, results: Results) -> Question:
    """Return the question to ``peakmark.limits`` that asks for the limit of a point on a host."""
    table = BY_NAME[point.table]
    placed = None
    if point.cores:
        placed = {
            "cores": point.cores,
            "sockets": point.sockets,
            "numa_nodes": json.loads(point.numa_nodes or "[]"),
            "last_level_bytes": point.last_level_bytes,
        }
    return Question(
        subsystem=table.subsystem,
        workload=point.workload,
        variant=point.variant,
        block=point.block_bytes,
        concurrency=point.concurrency,
        metric=table.metric,
        facts=facts_of(point.node, host, point.link, results),
        site=results.config.site_facts,
        clock_hz=point.clock_work_hz or point.clock_idle_hz,
        loopback=bool(point.loopback),
        clock_loaded=point.clock_work_hz is not None,
        placed=placed,
        store=point.store,
        isa=point.isa,
    )


def facts_of(node: str, host: str | None, link: str | None, results: Results) -> Mapping[str, Any]:
    """Return the facts of the machine from which the limit of a row is computed.

    The link that was measured, as JSON, replaces that of the default route.
    """
    facts = results.facts_for(node, host)
    if link:
        return {**facts, "network": json.loads(link)}
    return facts


def answer(question: Question, point: Any) -> Limit:
    """Return the limit of a point.

    It is unknown if the configuration has a word for the concurrency, such as ``cores``, and no
    record says yet how many threads the word means.
    """
    if point.concurrency_word and not question.concurrency:
        return question.unknown("word", word=point.concurrency_word)
    return for_row(question)


# -- clocks


def add_clocks(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add ``clock_hz``, ``clock_share`` and ``clock_source`` to the CPU rows of peakmark's kernel.

    - ``clock_hz``: the clock of the row's limit.
    - ``clock_share``: its share of the highest clock known for the same work.
    - ``clock_source``: in words, this highest clock and where it comes from.
    """
    by_host = clean_clocks(rows, kept, results)
    of_rows = rows[["point"]].join(best_clocks(by_host, rows), on="point")
    is_own = rows["is_own"] & rows["table"].eq("cpu")
    # The best clock is another node's or the datasheet's, so a row's own clock may be higher.
    share = (rows["limit_clock_hz"] / of_rows["best_hz"]).clip(upper=1)
    return rows.assign(
        clock_hz=rows["limit_clock_hz"].where(is_own),
        clock_share=share.where(is_own),
        clock_source=of_rows["source"].where(is_own & share.notna(), ""),
    )


def clean_clocks(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the median clock of each CPU point on each host.

    The columns are ``point``, ``host``, those of ``WORK``, and ``clock_hz``.

    Only undisturbed runs of peakmark's kernel on hosts with facts count.
    """
    is_clean = kept["causes"].eq("") & kept["clock_hz"].gt(0) & kept["host"].isin([*results.facts])
    # The merge drops the runs of other programs.
    clean = kept[is_clean & kept["table"].eq("cpu")].merge(rows.loc[rows["is_own"], ROW], on=ROW)
    classes = {host: equipment_of(facts).cpu for host, facts in results.facts.items()}
    of_work = clean.assign(cpu_class=clean["host"].map(classes)).groupby(
        ["point", "host", *WORK], dropna=False
    )
    return of_work["clock_hz"].median().reset_index()


def best_clocks(by_host: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each point the highest clock known for its work, and the source of this clock.

    The source is another node with an equal CPU, or the datasheet.
    """
    clocks = [*clocks_of_nodes(by_host), *clocks_of_datasheet(by_host, rows)]
    frame = pd.DataFrame(clocks, columns=["point", "best_hz", "source"])
    ordered = frame.sort_values("best_hz", ascending=False, kind="stable")
    highest = ordered.drop_duplicates("point").set_index("point")
    # A frame without lines has no types of its own.
    return highest.astype({"best_hz": float, "source": object})


def clocks_of_nodes(by_host: pd.DataFrame) -> Iterator[tuple[str, float, str]]:
    """Yield (point, clock in Hz, source) for each other node with an equal CPU that did the same work."""
    pairs = by_host.merge(by_host, on=WORK, suffixes=("", "_other"))
    is_other = pairs["host"].ne(pairs["host_other"]) & pairs["cpu_class"].ne("")
    for other in schema.lines(pairs[is_other]):
        hz = other.clock_hz_other
        yield other.point, hz, words("clock-of-node", best=hz, node=other.host_other)


def clocks_of_datasheet(
    by_host: pd.DataFrame, rows: pd.DataFrame
) -> Iterator[tuple[str, float, str]]:
    """Yield (point, the CPU's maximum clock in Hz, source) for each point with at most ``BOOSTED_THREADS`` threads."""
    # Datasheets state the maximum clock for as few busy cores.
    few = rows["is_own"] & rows["concurrency"].le(BOOSTED_THREADS) & rows["maximum_hz"].gt(0)
    for row in schema.lines(rows[few & rows["point"].isin(by_host["point"])]):
        yield row.point, row.maximum_hz, words("clock-of-datasheet", best=row.maximum_hz)
