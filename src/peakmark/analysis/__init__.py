"""A campaign with the rows of its tables: what was planned and measured, joined with summary, limit and
warnings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from peakmark.analysis import (
    core_checks,
    findings,
    fleet,
    links,
    reasons,
    row_warnings,
    suspects,
)
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.fleet import FleetClass, SlowNode
from peakmark.analysis.links import LinkMap
from peakmark.analysis.row import (
    CLOCKS,
    Details,
    Key,
    Repetition,
    Row,
    Rows,
    Series,
    hosts_of,
    seen_clock,
)
from peakmark.catalogue import NUMA, SHAPES, UNITS
from peakmark.cell import Cell
from peakmark.config import layouts
from peakmark.config.layouts import Layout
from peakmark.formatting import natural
from peakmark.limits import Limit, Question, for_row
from peakmark.messages import Message
from peakmark.plan.cluster import Behind, Cluster, behind
from peakmark.run import noise
from peakmark.storage.facts import differences, node_class
from peakmark.storage.results import Results, StoredAttempt, StoredRecord
from peakmark.tools.tables import TABLES, Table

ECHO = "LAT-ICMP"
"""Workload of ping."""
KeyOf = Callable[[Cell, str, str, int | None, int], Key]
"""Of a cell, and of the workload, variant, block and concurrency that one of its measurements has.
"""


@dataclass
class _Draft:
    points: dict[str, list[Repetition]] = field(default_factory=lambda: defaultdict(list))
    planned: list[Cell] = field(default_factory=list)


def build_rows(results: Results) -> dict[str, list[Row]]:
    """Rows of every table by the table's name, in the order of the tables; a table without rows is
    there and empty.

    A row exists for every planned point of an own kernel, measured or not, and for every point that
    a reference measured. With a layout, rows are in its order, and their tables carry its names.
    """
    centre = "median"
    layout = Analysis(results).layout
    key_of = _key_of(results)
    probes = _best_probes(results)
    by_table = row_warnings.kept_by_host(
        {
            table.name: _table_rows(results, table, layout, centre, key_of, probes)
            for table in TABLES
        }
    )
    by_table["cpu"] = core_checks.with_clocks(results, by_table["cpu"])
    measured = [row for table in by_table.values() for row in table if row.own is not None]
    codes = row_warnings.widespread(measured)
    by_table = {
        name: [row_warnings.shared(row, codes) for row in table] for name, table in by_table.items()
    }
    return fleet.with_verdicts(by_table, node_facts(results, by_table))


def node_facts(results: Results, rows: Rows) -> dict[str, Details]:
    """Node -> the facts of its host."""
    return {node: results.facts_for(node) for node in fleet.node_names(rows)}


def _table_rows(
    results: Results, table: Table, layout: Layout | None, centre: str, key_of: KeyOf,
    best_probes: Mapping[tuple[str, int], float],
) -> list[Row]:  # fmt: skip
    records = [record for record in results.records if record.cell.subsystem == table.subsystem]
    cells = [cell for cell in results.cells if cell.subsystem == table.subsystem]
    if not records and not cells:
        return []
    if layout is not None:
        table = layout.called(table)
    drafts: dict[Key, _Draft] = defaultdict(_Draft)
    echoes: dict[tuple[str, int], list[Repetition]] = defaultdict(list)
    headings = {series.instrument for series in table.series}
    filled: dict[str, set[Key]] = defaultdict(set)
    for record in records:
        cell = record.cell
        if cell.instrument not in headings or not record.ok:
            continue
        for attempt, entry in _entries(record):
            context, workload, block = attempt.context, entry["workload"], entry["block"]
            if entry["metric"] != table.metric or not table.takes(workload, block):
                continue
            count = entry["concurrency"]
            if noise.probes(entry["details"]):
                best = best_probes[context["host"], count]
                context = {**context, "dram_compared": best}
            point = Repetition(
                float(entry["value"]), entry["details"], context, cell.options,
                repetition=cell.repetition, record=record, left_out=attempt.left_out,
            )  # fmt: skip
            if workload == ECHO:  # neither TCP nor UDP: stands beside both
                if not point.left_out:
                    echoes[cell.place, count].append(point)
                continue
            key = key_of(cell, workload, entry["variant"], block, count)
            filled[cell.row].add(key)
            drafts[key].points[cell.instrument].append(point)
    lacking = {
        record.cell.row for record in results.refused if record.cell.workload in (*UNITS, *NUMA)
    }
    for cell in cells:
        is_of_table = cell.instrument in headings and table.takes(cell.workload, cell.block)
        is_left_out = cell.row in lacking or cell.workload in ("ALL", ECHO)
        if is_left_out or not is_of_table:
            continue
        block = None if cell.automatic else cell.block
        key = key_of(cell, cell.workload, cell.variant, block, 0 if cell.word else cell.concurrency)
        if cell.workload in SHAPES and cell.row in filled:
            for row in filled[cell.row]:
                drafts[row].planned.append(cell)
        elif cell.instrument == table.own.instrument or key in drafts:
            drafts[key].planned.append(cell)
    for key, draft in drafts.items():  # ping's echoes: of the same concurrency, else of the lowest
        streams = sorted(count for place, count in echoes if place == key.node)
        if streams:
            count = key.concurrency if key.concurrency in streams else streams[0]
            draft.points["ping"].extend(echoes[key.node, count])
    ordered = sorted(
        drafts,
        key=lambda key: (
            natural(key.node),
            layout.place(table, key.workload, key.variant) if layout else (),
            *table.order(key.workload, key.variant, key.concurrency, key.block),
        ),
    )
    table_rows = [_row(results, table, key, drafts[key], centre) for key in ordered]
    if layout is None:
        centres = (series.centre for row in table_rows for series in row.series.values())
        printed = table.fitted(centres)
        return [replace(row, table=printed) for row in table_rows]
    return [
        replace(row, layout_table=layout.layout_table_of(table, row.key.workload, row.key.variant))
        for row in table_rows
    ]


def _entries(record: StoredRecord) -> Iterator[tuple[StoredAttempt, Details]]:
    """The measurements of a record, each with its attempt."""
    for attempt in record.attempts:
        for entry in attempt.measurements:
            yield attempt, entry


def _best_probes(results: Results) -> dict[tuple[str, int], float]:
    """(host, number of threads) -> the best rate at which they have read DRAM in the campaign."""
    best: dict[tuple[str, int], float] = defaultdict(float)
    for record in results.records:
        for attempt, entry in _entries(record):
            place = attempt.context["host"], entry["concurrency"]
            best[place] = max([best[place], *noise.probes(entry["details"])])
    return best


def _key_of(results: Results) -> KeyOf:
    """What a point's key is, with what words and ``auto`` came to where it was measured: the most
    threads and the largest area where hosts differ.
    """
    threads: dict[tuple[str, str], int] = defaultdict(int)
    areas: dict[tuple[str, int | str], int] = defaultdict(int)
    for record in results.records:
        cell, placed = record.cell, record.data["context"].get("placed")
        word, area = (cell.node, cell.word), (cell.node, cell.asked)
        if cell.word and placed:
            threads[word] = max(threads[word], int(placed["threads"]))
        if cell.automatic:
            blocks = [int(entry["block"]) for entry in record.data["measurements"]]
            areas[area] = max([areas[area], *blocks])

    def key_of(cell: Cell, workload: str, variant: str, block: int | None, concurrency: int) -> Key:
        count = threads.get((cell.node, cell.word), concurrency)
        area = areas.get((cell.node, cell.asked)) or None if cell.automatic else block
        return Key(cell.place, workload, variant, area, count, cell.word)

    return key_of


def _row(results: Results, table: Table, key: Key, draft: _Draft, centre: str) -> Row:
    kernel = table.own.instrument
    counted = {
        name: [point for point in points if not point.left_out]
        for name, points in draft.points.items()
    }
    own_points = counted.get(kernel) or next(iter(counted.values()), [])
    hosts = [host for host in hosts_of(own_points) if host in results.facts]
    facts = [results.facts_for(key.node, host) for host in hosts or (None,)]
    site = results.config.get("site_facts") or {}
    # Where equal nodes have different limits, the row has the best one: it is none too low.
    questions = [_question(table, key, own_points, each, site) for each in facts]
    limit, question = min(
        ((_limit(key, each), each) for each in questions),
        key=lambda answer: answer[0].share(1.0) or 0.0,
    )
    unequal_nodes = _unequal_nodes(results, counted, own_points)
    if kernel in unequal_nodes:
        limit = question.unknown("unequal-nodes", differ=unequal_nodes[kernel])
    clock_hz = question.clock_hz
    series = {
        name: Series.of(draft.points[name], limit, clock_hz, centre)
        for name in sorted(draft.points)
    }
    planned = [cell for cell in draft.planned if cell.instrument == kernel]
    own = series.get(kernel)
    shares: dict[str, float] = {}
    for name in CLOCKS:
        clock = question.clocks.get(name)
        if own and limit.clock and clock:
            at_clock = replace(question, clock_hz=clock.hz, clock_loaded=False)
            share = _limit(key, at_clock).efficiency(own.centre)
            shares |= {} if share is None else {name: share}
    row = Row(
        table,
        key,
        series,
        limit,
        missing=max(0, len(planned) - len(counted.get(kernel, ()))),
        shares=shares,
        unequal_nodes=unequal_nodes,
    )
    return replace(row, warnings=row_warnings.of_row(results, row, question, planned))


def _unequal_nodes(
    results: Results, points: Mapping[str, Sequence[Repetition]], own: Sequence[Repetition]
) -> dict[str, str]:
    """Instrument -> in what the nodes of its repetitions and of the own kernel's are not equal, by
    the nodes' facts.

    A client and its server may be unequal, as long as they are alike in all repetitions.
    """
    unequal_nodes = {}
    for name, theirs in points.items():
        differ: list[str] = []
        for end in ("host", "server_host"):
            hosts = hosts_of([*own, *theirs], end)
            classes = {host: node_class(results.facts.get(host) or {}) for host in hosts}
            differ += differences(classes)
        if differ:
            unequal_nodes[name] = "; ".join(dict.fromkeys(differ))
    return unequal_nodes


def _question(
    table: Table, key: Key, points: Sequence[Repetition], facts: Details, site: Details
) -> Question:
    """What the limit of a row depends on, at the clock that was seen while it was measured.

    The interface is the one that was measured, which need not be that of the host's default route.
    Where repetitions were placed differently, the best place counts: the limit is none too low.
    """
    contexts = [point.context for point in points]
    networks = [context["network"] for context in contexts if context.get("network")]
    links = [network["link"] for network in networks if network.get("link")]
    stores = [str(point.details["store"]) for point in points if point.details.get("store")]
    return Question(
        subsystem=table.subsystem,
        workload=key.workload,
        variant=key.variant,
        block=key.block,
        concurrency=key.concurrency,
        metric=table.metric,
        facts={**facts, "network": links[0]} if links else facts,
        site=site,
        clock_hz=seen_clock(points),
        loopback=any(network.get("loopback") for network in networks),
        clock_loaded=any(point.known("clock_hz_loaded") for point in points),
        placed=max(
            (context["placed"] for context in contexts if context.get("placed")),
            key=lambda placed: (placed["cores"], placed["sockets"], len(placed["numa_nodes"])),
            default=None,
        ),
        store=stores[0] if stores else None,
    )


def _limit(key: Key, question: Question) -> Limit:
    """The limit of a row; a number of threads that is not known yet has none."""
    if key.word and not key.concurrency:
        return question.unknown("word", word=key.word)
    return for_row(question)


@dataclass(frozen=True)
class Analysis:
    """All that is known of a campaign."""

    results: Results

    @classmethod
    def of(cls, campaign: Path | Analysis) -> Analysis:
        """The campaign in a folder; an analysis is returned as it is.

        Raises:
            RecordError: the folder holds no campaign.
        """
        return campaign if isinstance(campaign, Analysis) else cls(Results.read(campaign))

    @cached_property
    def rows(self) -> Rows:
        """The rows of each table by its name, see ``build_rows``."""
        return build_rows(self.results)

    def conclusions(self, rows: Sequence[Row]) -> list[Conclusion]:
        """What rows of one table say without a layout: computed once, for tables and report."""
        place = tuple((row.table.name, row.key) for row in rows)
        if place not in self._conclusions:
            conclude = fleet.fleet_conclusions if self.is_fleet else findings.conclusions
            maps = [each for each in self.link_maps if each.rows[0] in rows]
            self._conclusions[place] = [*conclude(rows), *links.conclusions(maps)]
        return self._conclusions[place]

    @cached_property
    def _conclusions(self) -> dict[tuple[tuple[str, Key], ...], list[Conclusion]]:
        return {}

    @cached_property
    def second_verdicts(self) -> dict[str, Message]:
        """What is said of each slow node or link that this campaign measures a second time."""
        return suspects.second_verdicts(self.results, self.rows)

    @cached_property
    def link_maps(self) -> list[LinkMap]:
        """Pairs of nodes, of each point of each table."""
        return [each for rows in self.rows.values() for each in links.link_maps(rows, self.behind)]

    @cached_property
    def behind(self) -> Behind:
        """What the nodes of pairs share: switch or uplink -> the nodes behind it."""
        known = self.results.plan.get("cluster")
        return behind(self.results.config, Cluster.from_json(known)) if known else {}

    @cached_property
    def classes(self) -> list[FleetClass]:
        """The classes of equal nodes, the largest first."""
        return fleet.classes(node_facts(self.results, self.rows))

    @cached_property
    def slow(self) -> list[tuple[SlowNode, list[Message]]]:
        """Slow nodes, the slowest first, each with what may be the reason."""
        slow = fleet.slow_nodes(self.rows)
        why = reasons.reasons(self.results, self.rows, self.classes, slow)
        return list(zip(slow, why, strict=True))

    @cached_property
    def layout(self) -> Layout | None:
        """The layout that ``report.tables`` names, None without one. Errors: ConfigError."""
        name = self.results.report_config.get("tables")
        return layouts.load(str(name)) if name else None

    @cached_property
    def has_several_nodes(self) -> bool:
        """Whether more than one node was measured by itself."""
        return len(fleet.node_names(self.rows)) > 1

    @cached_property
    def is_fleet(self) -> bool:
        """Whether there are too many nodes for a line of each."""
        return fleet.is_many(self.rows)
