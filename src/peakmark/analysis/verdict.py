"""Page one: one sentence for each subsystem, by its best row that can be defended, and few caveats.

A row with a wrong value speaks for nothing, and one that is unsure only where no other can be had.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from peakmark.analysis import comparisons, fleet, row_warnings
from peakmark.analysis.findings import LEVEL_UNTIL
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Rows
from peakmark.catalogue import FUSED, SUBSYSTEMS
from peakmark.formatting import listed
from peakmark.messages import Message, Range, Severity, merge, message
from peakmark.statistics import ENOUGH

HEADLINE_ROWS: Mapping[str, tuple[str, Callable[[Row], bool]]] = {
    "cpu": ("cpu", lambda row: row.key.workload == "DP"),
    "memory": ("memory_throughput", lambda row: row.key.variant == "pool"),
    "disk": ("disk_throughput", lambda _: True),
    "network": ("network_throughput", lambda row: row.key.workload == "TCP"),
}
"""The table of rates that speaks for a subsystem, and which of its rows are preferred."""
TELLING_BOUND = 0.1
"""A bound of which less is reached is too far away to stand on page one."""


@dataclass(frozen=True)
class Verdict:
    """What is said of one subsystem.

    Attributes:
        row: the row that speaks for it, None where none can; of several nodes the one nearest to
            their median.
        text: one sentence.
        warning: the heaviest warning of the row, None without one.
    """

    subsystem: str
    row: Row | None
    text: Message
    warning: Message | None = None

    @property
    def title(self) -> str:
        """What headings call the subsystem."""
        return SUBSYSTEMS[self.subsystem].title

    @property
    def caution(self) -> str:
        """``Unsure: values spread by 34% of their mean``; empty without a warning."""
        if self.warning is None:
            return ""
        level = f"{self.row.level}: " if self.row and self.row.level else ""
        text = f"{level}{self.warning.fact}"
        return f"{text[:1].upper()}{text[1:]}"


def planned(rows: Rows) -> list[str]:
    """The subsystems that the plan measures, in the order of the report; all where it measures
    nothing.
    """
    subsystems = {row.table.subsystem for table in rows.values() for row in table}
    return [subsystem for subsystem in SUBSYSTEMS if subsystem in subsystems or not subsystems]


def candidates(rows: Rows, subsystem: str) -> list[Row]:
    """The measured rows that could speak for a subsystem. Where DRAM was measured, a cache does not
    stand for it.
    """
    table, fits = HEADLINE_ROWS[subsystem]
    measured = [row for row in rows[table] if row.own is not None]
    return [row for row in measured if fits(row)] or measured


def headline_groups(rows: Rows, subsystem: str) -> list[NodeGroup]:
    """Each class of nodes at the best point of a subsystem, the largest first: of the points that are
    without a warning on most nodes of that class, else of all that are not wrong.
    """
    groups = fleet.group_rows(candidates(rows, subsystem))
    largest = [group for group in groups if group.node_class == groups[0].node_class]
    sure = [group for group in largest if _is_sure(group)]
    best = max(sure or largest, key=lambda group: group.median, default=None)
    return [group for group in groups if best and group.point == best.point]


def _is_sure(group: NodeGroup) -> bool:
    """Whether most of its nodes are without a warning."""
    return 2 * sum(row.level is None for row in group.rows) > len(group.rows)


def headline_group(rows: Rows, subsystem: str) -> NodeGroup | None:
    """The largest class of nodes at the best point of a subsystem."""
    return next(iter(headline_groups(rows, subsystem)), None)


def headline(rows: Rows, subsystem: str) -> Row | None:
    """The row that stands for a subsystem; None when nothing was measured, or all of it is wrong.
    Of several nodes it is the one nearest to their median: the best node does not speak for others.
    """
    groups = headline_groups(rows, subsystem)
    return groups[0].middle if groups else None


def with_limit(rows: Rows) -> list[tuple[str, Row]]:
    """Title and headline row of each resource whose limit is known: what can be drawn as a share of
    it.
    """
    headlines = {
        SUBSYSTEMS[subsystem].title: headline(rows, subsystem) for subsystem in planned(rows)
    }
    return [(title, row) for title, row in headlines.items() if row and row.limit.value is not None]


def verdicts(rows: Rows) -> list[Verdict]:
    """One verdict per planned subsystem, in the order of the report."""
    return [_verdict(rows, subsystem) for subsystem in planned(rows)]


def _verdict(rows: Rows, subsystem: str) -> Verdict:
    group = headline_group(rows, subsystem)
    if group is not None:
        row = group.middle
        warning = row.specific_warnings[0] if row.specific_warnings else None
        if warning is None and row.measured.summary.n == 1:
            warning = message("one-run")
        return Verdict(subsystem, row, _sentence(rows, group), warning)
    measured = candidates(rows, subsystem)
    warnings = [row.specific_warnings[0] for row in measured if row.specific_warnings]
    code = "no-row" if measured else "nothing-measured"
    return Verdict(subsystem, None, message(code), warnings[0] if warnings else None)


def _sentence(rows: Rows, group: NodeGroup) -> Message:
    """What the row measured, its limit and its reference."""
    row = group.middle
    labels, summary = LabelFormatter.of(row), row.measured.summary
    ends = (summary.minimum, summary.maximum)
    nodes: Message | str = ""
    if len(group.every) > 1:
        ends = (group.low, group.high)
        nodes = message(
            "of-nodes",
            nodes=len(group.rows),
            planned=len(group.every),
            noun=fleet.noun(group.rows),
            slowest=group.worst.key.node,
            behind=group.behind(group.worst),
        )
    spread = f"{labels.number(ends[0])} to {labels.number(ends[1])}"
    return message(
        "headline",
        what=message("workload", case=row.key.workload),
        point=labels.point(row, node=not nodes),
        loopback=message("over-loopback") if row.loopback else "",
        value=labels.quantity(group.median),
        spread=f" ({spread})" if ends[0] < ends[1] else "",
        limit=_share(labels, row),
        mix=_mix(labels, rows, row),
        reference=_reference(group.rows),
        nodes=nodes,
    )


def _share(labels: LabelFormatter, row: Row) -> Message | str:
    """The share of the limit, with the shares at the clocks on the box."""
    efficiency, limit = row.measured.efficiency, row.limit.value
    if efficiency is None or limit is None:
        bound = row.limit.bound
        share = row.limit.share(row.measured.centre)
        if bound is None or share is None or share < TELLING_BOUND:
            return ""
        return message("of-bound", case="rate", bound=labels.quantity(bound))
    shares = [message("at-clock", share=share, clock=name) for name, share in row.shares.items()]
    return message(
        "of-limit",
        case="named" if row.limit.name else "",
        name=row.limit.name,
        share=efficiency,
        limit=labels.quantity(limit),
        clocks=message("at-clocks", shares=tuple(shares)) if shares else "",
    )


def _mix(labels: LabelFormatter, rows: Rows, row: Row) -> Message | str:
    """Return what the same cores reach when additions keep their other pipes busy, and its share."""
    key = row.key._replace(workload=FUSED.get(row.key.workload, ""))
    mixed = (each for each in rows[row.table.name] if each.key == key and each.comparable)
    other = next(mixed, None)
    if other is None:
        return ""
    share, limit = other.measured.efficiency, other.limit.value
    if share is None or limit is None:
        return ""
    return message(
        "of-all-pipes",
        value=labels.quantity(other.measured.centre),
        share=share,
        limit=labels.quantity(limit),
    )


def _reference(rows: Sequence[Row]) -> Message | str:
    """How the row stands to its best reference, by the rounds in which both ran."""
    reference = comparisons.best_reference(rows[0])
    if reference is None:
        return ""
    program, _ = reference
    every = [
        ratio
        for row in rows
        if program.instrument in row.series
        for ratio in comparisons.ratios(row.measured, row.series[program.instrument])
    ]
    low, high = min(every), max(every)
    factor, case = Range(low, high), "unclear"
    if low >= 1:
        case = "faster"
    elif high <= 1:
        factor, case = Range(1 / high, 1 / low), "slower"
    elif low >= 1 / LEVEL_UNTIL and high <= LEVEL_UNTIL:
        case = "level"
    return message("beside", case=case, factor=factor, program=program.heading)


def build_caveats(rows: Rows, config: Mapping[str, object]) -> list[Message]:
    """What a reader must know before using the numbers, the weightiest first; together some hundred
    words at most.
    """
    every = [row for table in rows.values() for row in table]
    measured = [row for row in every if row.own is not None]
    scale, holes = config.get("scale"), len(every) - len(measured)
    return [
        *_wrong(every, measured),
        *_shared(measured),
        *dict.fromkeys(row.limit.finding for row in measured if row.limit.finding),
        *_part_of_node(rows),
        *([message("scaled", scale=scale)] if isinstance(scale, int | float) and scale < 1 else []),
        *_limits(measured),
        *([message("loopback-only")] if any(row.loopback for row in measured) else []),
        *([message("holes", rows=holes, of=len(every))] if holes else []),
    ]


def conditions(rows: Rows) -> list[Message]:
    """What most rows share, each with the range of its numbers."""
    measured = [row for table in rows.values() for row in table if row.own is not None]
    found = []
    for shared_by_rows in _by_code(measured).values():
        merged = merge(shared_by_rows)
        texts = dict.fromkeys(merged[each].message for each in shared_by_rows)
        count = len(shared_by_rows)
        found.append(message("in-rows", rows=count, of=len(measured), parts=tuple(texts)))
    return found


def _by_code(measured: Sequence[Row]) -> dict[str, list[Message]]:
    """Code -> the warnings of it that rows share, one of each row."""
    kinds: dict[str, list[Message]] = defaultdict(list)
    for row in measured:
        shared = {each.code: replace(each, about="") for each in row.warnings if each.is_shared}
        for code, each in shared.items():
            kinds[code].append(each)
    return kinds


def _wrong(every: Sequence[Row], measured: Sequence[Row]) -> Iterator[Message]:
    """Cores that were wrong more than once, as what they compute is not to be trusted, and rows in
    doubt.
    """
    wrong = Counter(
        warning for row in every for warning in row.warnings if warning.code == "wrong-core"
    )
    for warning, count in wrong.items():
        if count > 1:
            values = (*warning.values, ("count", count))
            yield replace(warning, case="again", severity=Severity.WRONG, values=values)
    for level in (Severity.WRONG, Severity.UNSURE):
        count = sum(row.level is level for row in measured)
        if count:
            yield message("doubtful", case=str(level), rows=count, of=len(measured))


def _shared(measured: Sequence[Row]) -> Iterator[Message]:
    """What most rows share, in one sentence: the first page has no room for the numbers."""
    codes = _by_code(measured)
    disturbed = [code for code in codes if code in row_warnings.DISTURBANCES]
    if disturbed:
        parts = tuple(message("in-short", case=code) for code in disturbed)
        yield message("disturbed-rows", parts=parts)
    runs = max((row.measured.summary.n for row in measured), default=ENOUGH)
    if runs < ENOUGH:
        yield message("few-runs", case="once" if runs == 1 else "", runs=runs, enough=ENOUGH)
    if "short-runs" in codes:
        yield message("short-runs-only")


def _part_of_node(rows: Rows) -> Iterator[Message]:
    """A share of the limit of four cores says nothing about a node with 128, nor one of narrow
    instructions about its widest.
    """
    for subsystem in planned(rows):
        row, part = headline(rows, subsystem), SUBSYSTEMS[subsystem]
        if row is None:
            continue
        contexts = [point.context for point in row.measured.points] if part.pinned else []
        known = [
            (context["placed"]["cores"], context["allowed"].get("node_cores") or 0)
            for context in contexts
            if context.get("placed") and context.get("allowed")
        ]
        used, cores = max(known, default=(0, 0))
        if used < cores:
            yield message("part-of-node", resource=part.title, used=used, cores=cores)
        yield from (warning for warning in row.warnings if warning.code == "narrower")


def _limits(measured: Sequence[Row]) -> Iterator[Message]:
    """How many rows have a limit, and which sections of a site file would give one to others."""
    unknown = [row for row in measured if row.limit.value is None and not row.loopback]
    if unknown:
        sections = dict.fromkeys(row.table.subsystem for row in unknown)
        kinds = Counter(row.limit.kind for row in measured)
        count = message(
            "limits-counted",
            rows=len(measured),
            limits=kinds["limit"],
            bounds=kinds["at_most"],
            neither=kinds["none"],
        )
        yield message("without-limit", count=count, sections=listed(list(sections)))
