"""Page one: one sentence for each subsystem, by its best row that can be defended, and few caveats.

A row with a wrong value speaks for nothing, and one that is unsure only where no other can be had.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from peakmark.catalogue import FUSED, SUBSYSTEMS
from peakmark.formatting import listed, round_bound
from peakmark.messages import Message, Range, Scope, Severity, merge, message
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.statistics import ENOUGH
from peakmark.tools.tables import BY_NAME, Table, subsystem_tables
from peakmark.views import layouts, node_groups
from peakmark.views.node_groups import NodeGroup
from peakmark.views.points import Line, Point, points_of, rows_of
from peakmark.views.printed import has_bound

LEVEL_UNTIL = 1.05
"""Factor between two programs up to which they are level."""
DISTURBANCES = ("steal", "other-load", "waited", "crowded-core", "clock-moved", "memory-load")
"""Codes of what disturbs runs."""
CLOCKS = ("nominal", "maximum")
"""Clocks at which the share of the limit is given too."""


@dataclass(frozen=True)
class Headline:
    """What is said of one subsystem.

    Attributes:
        subsystem: its name.
        point: that speaks for it, None where none can; of several nodes the one nearest to their
            median.
        text: one sentence.
        warning: the heaviest warning of the point, None without one.
    """

    subsystem: str
    point: Point | None
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
        severity = self.point.own.severity if self.point else ""
        text = f"{severity}: {self.warning.fact}".removeprefix(": ")
        return f"{text[:1].upper()}{text[1:]}"


# -- which row speaks


def planned(frames: CampaignFrames) -> list[str]:
    """Return the subsystems that the plan measures, in the order of the report.

    These are all where it measures nothing.
    """
    subsystems = set(frames.rows["subsystem"])
    return [subsystem for subsystem in SUBSYSTEMS if subsystem in subsystems or not subsystems]


def speaking_tables(subsystem: str) -> list[Table]:
    """Return the tables that can speak for a subsystem, the first choice first: rates before times."""
    return sorted(subsystem_tables(subsystem), key=lambda table: table.lower_is_better)


def candidates(frames: CampaignFrames, table: Table) -> list[Point]:
    """Return the measured points of a table that could speak for its subsystem.

    Double precision speaks for a CPU and TCP for a network; where DRAM was measured, a cache does
    not stand for it.
    """
    points = points_of(frames, rows_of(frames, table))
    measured = [point for point in points if point.is_measured]
    return [point for point in measured if is_preferred(point.own)] or measured


def is_preferred(row: Line) -> bool:
    """Return whether a row speaks for its subsystem before others of its table."""
    if row.subsystem == "memory":
        return "DRAM" in (row.cache_level, row.variant) or str(row.variant) == "pool"
    if row.subsystem == "disk":
        return True
    workload = str(row.workload)
    return workload.removeprefix("LAT-") in ("DP", "TCP")


def headline_groups(frames: CampaignFrames, subsystem: str) -> list[NodeGroup]:
    """Return each class of nodes at the best point of a subsystem, the largest first.

    That is the best of the points that are without a warning on most nodes of that class, else of
    all that are not wrong, in the first table that has one.
    """
    for table in speaking_tables(subsystem):
        groups = node_groups.group_points(candidates(frames, table))
        if groups:
            break
    else:
        return []
    largest = [group for group in groups if group.node_class == groups[0].node_class]
    sure = [group for group in largest if is_sure(group)]
    by_speed = sorted(sure or largest, key=lambda group: group.median, reverse=True)
    best = by_speed[-1] if table.lower_is_better else by_speed[0]
    place = node_groups.place_of(best.middle)
    return [group for group in groups if node_groups.place_of(group.middle) == place]


def is_sure(group: NodeGroup) -> bool:
    """Return whether most nodes of a group are without a warning."""
    without = [point for point in group.points if not point.own.severity]
    return 2 * len(without) > len(group.points)


def headline_point(frames: CampaignFrames, subsystem: str) -> Point | None:
    """Return the point that stands for a subsystem.

    It is None where nothing was measured, or all of it is wrong. Of several nodes it is the one
    nearest to their median: the best node does not speak for others.
    """
    groups = headline_groups(frames, subsystem)
    return groups[0].middle if groups else None


def with_limit(frames: CampaignFrames) -> list[tuple[str, Point]]:
    """Return title and point of each subsystem whose limit is known.

    This is what can be drawn as a share of it.
    """
    found = []
    for subsystem in planned(frames):
        point = headline_point(frames, subsystem)
        if point is not None and point.own.limit is not None:
            found.append((SUBSYSTEMS[subsystem].title, point))
    return found


# -- what is said


def headlines(frames: CampaignFrames) -> list[Headline]:
    """Return what is said of each planned subsystem, in the order of the report."""
    return [headline(frames, subsystem) for subsystem in planned(frames)]


def headline(frames: CampaignFrames, subsystem: str) -> Headline:
    """Return what is said of a subsystem."""
    groups = headline_groups(frames, subsystem)
    if groups:
        point = groups[0].middle
        warning = next(warnings_of(point), None)
        if warning is None and point.own.n == 1:
            warning = message("one-run")
        return Headline(subsystem, point, sentence(frames, groups[0]), warning)
    measured: list[Point] = []
    for table in speaking_tables(subsystem):
        measured += candidates(frames, table)
    text = message("no-row" if measured else "nothing-measured")
    warnings = (warning for point in measured for warning in warnings_of(point))
    return Headline(subsystem, None, text, next(warnings, None))


def warnings_of(point: Point) -> Iterator[Message]:
    """Yield what speaks against the value of peakmark's kernel at a point, the heaviest first."""
    for note in point.notes:
        is_own = note.about in ("", point.own.instrument)
        if is_own and note.is_warning and not note.is_shared:
            yield note


def sentence(frames: CampaignFrames, group: NodeGroup) -> Message:
    """Return what a group measured, with its limit and its reference."""
    row = group.middle.own
    table = BY_NAME[row.table].fitted([group.median])
    labels = layouts.labels_of(layouts.layout_of(frames), table, row)
    ends = (row.min, row.max)
    nodes: Message | str = ""
    if len(group.every) > 1:
        ends = (group.low, group.high)
        nodes = message(
            "of-nodes",
            nodes=len(group.points),
            planned=len(group.every),
            noun=node_groups.noun(group.points),
            slowest=group.worst.own.node,
            behind=group.behind(group.worst),
        )
    spread = ""
    if ends[0] < ends[1]:
        spread = f" ({labels.number(ends[0])} to {labels.number(ends[1])})"
    is_first = table.name == subsystem_tables(table.subsystem)[0].name
    return message(
        "headline",
        case="time" if table.lower_is_better else "",
        what=message("workload", case=row.workload),
        point=labels.point(row, variant=not is_first, node=not nodes),
        loopback=message("over-loopback") if row.loopback else "",
        value=labels.quantity(group.median),
        spread=spread,
        limit=share_of_limit(labels, row),
        mix=share_of_all_pipes(frames, labels, row),
        reference=beside_reference(group),
        nodes=nodes,
    )


def share_of_limit(labels: Labels, row: Line) -> Message | str:
    """Return the share of the limit, with the shares at the clocks on the box."""
    if row.limit is None or row.efficiency is None:
        return bound_of(labels, row)
    clocks = []
    for clock in CLOCKS:
        share = getattr(row, f"efficiency_at_{clock}")
        if share is not None:
            clocks.append(message("at-clock", share=share, clock=clock))
    return message(
        "of-limit",
        case="named" if row.limit_name else "",
        name=row.limit_name,
        share=row.efficiency,
        limit=labels.quantity(row.limit),
        clocks=message("at-clocks", shares=tuple(clocks)) if clocks else "",
    )


def bound_of(labels: Labels, row: Line) -> Message | str:
    """Return what nothing can exceed, where at least half of it is reached."""
    if not has_bound(row):
        return ""
    is_time = labels.table.lower_is_better
    shown = round_bound(row.bound * labels.factor, digits=4, is_upper=not is_time)
    case = "time" if is_time else "rate"
    return message("of-bound", case=case, bound=labels.quantity(shown / labels.factor))


def share_of_all_pipes(frames: CampaignFrames, labels: Labels, row: Line) -> Message | str:
    """Return what the same cores reach when additions keep their other pipes busy, and its share."""
    rows = frames.rows
    mixed = rows[rows["workload"].eq(FUSED.get(row.workload, "")) & rows["is_own"]]
    for other in schema.lines(mixed[mixed["node"].eq(row.node) & mixed["n"].gt(0)]):
        is_same_place = other.concurrency == row.concurrency and other.table == row.table
        if is_same_place and other.efficiency is not None and other.severity != Severity.WRONG:
            return message(
                "of-all-pipes",
                value=labels.quantity(other.value),
                share=other.efficiency,
                limit=labels.quantity(other.limit),
            )
    return ""


def beside_reference(group: NodeGroup) -> Message | str:
    """Return how a group stands to its best reference, by the rounds in which both ran."""
    table = BY_NAME[group.middle.own.table]
    references = [line for line in group.points[0].measured.values() if line.is_comparable]
    if not references:
        return ""
    by_value = sorted(references, key=lambda line: line.value, reverse=not table.lower_is_better)
    reference = by_value[0]
    ratios: list[float] = []
    for point in group.points:
        line = point.measured.get(reference.instrument)
        if line is not None and line.is_comparable:
            ratios += (line.ratio_low, line.ratio_high)
    if table.lower_is_better:
        ratios = [1 / ratio for ratio in ratios]
    low, high = min(ratios), max(ratios)
    factor, case = Range(low, high), "unclear"
    if low >= 1 / LEVEL_UNTIL and high <= LEVEL_UNTIL:
        case = "level"
    elif low > 1:
        case = "faster"
    elif high < 1:
        factor, case = Range(1 / high, 1 / low), "slower"
    return message("beside", case=case, factor=factor, program=reference.program)


# -- caveats and conditions


def build_caveats(frames: CampaignFrames) -> list[Message]:
    """Return what a reader must know before using the numbers, the weightiest first.

    Together they have some hundred words at most.
    """
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    scale = frames.campaign["config"].get("scale")
    caveats = [
        *wrong_cores(frames),
        *doubtful_rows(measured),
        *shared_conditions(frames, measured),
        *findings_on_limits(measured),
        *parts_of_nodes(frames),
    ]
    if isinstance(scale, int | float) and scale < 1:
        caveats.append(message("scaled", scale=scale))
    caveats += rows_without_limit(measured)
    if measured["loopback"].any():
        caveats.append(message("loopback-only"))
    if len(measured) < len(own):
        caveats.append(message("holes", rows=len(own) - len(measured), of=len(own)))
    return caveats


def wrong_cores(frames: CampaignFrames) -> Iterator[Message]:
    """Yield the cores that were wrong more than once: what they compute is not to be trusted."""
    told = frames.warnings[frames.warnings["code"].eq("wrong-core")]
    counts = Counter(schema.message_of_line(line) for line in schema.lines(told))
    for warning, count in counts.items():
        if count > 1:
            values = (*warning.values, ("count", count))
            yield replace(warning, case="again", severity=Severity.WRONG, values=values)


def doubtful_rows(measured: pd.DataFrame) -> Iterator[Message]:
    """Yield how many rows are wrong, and how many unsure."""
    for severity in (Severity.WRONG, Severity.UNSURE):
        count = int(measured["severity"].eq(severity).sum())
        if count:
            yield message("doubtful", case=str(severity), rows=count, of=len(measured))


def shared_conditions(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[Message]:
    """Yield what most rows share, in short: the first page has no room for the numbers."""
    codes = conditions_by_code(frames)
    disturbed = [code for code in codes if code in DISTURBANCES]
    if disturbed:
        parts = tuple(message("in-short", case=code) for code in disturbed)
        yield message("disturbed-rows", parts=parts)
    runs = int(measured["n"].max()) if len(measured) else ENOUGH
    if runs < ENOUGH:
        yield message("few-runs", case="once" if runs == 1 else "", runs=runs, enough=ENOUGH)
    if "short-runs" in codes:
        yield message("short-runs-only")


def conditions(frames: CampaignFrames) -> list[Message]:
    """Return what most rows share, each with the range of its numbers."""
    is_measured = frames.rows["is_own"] & frames.rows["n"].gt(0)
    found = []
    for messages in conditions_by_code(frames).values():
        merged = merge(messages)
        texts = dict.fromkeys(merged[each].message for each in messages)
        rows = len(messages)
        found.append(message("in-rows", rows=rows, of=int(is_measured.sum()), parts=tuple(texts)))
    return found


def conditions_by_code(frames: CampaignFrames) -> dict[str, list[Message]]:
    """Return code -> the messages of it that are printed once for the campaign, one of each row."""
    is_measured = frames.rows["is_own"] & frames.rows["n"].gt(0)
    points = frames.rows.loc[is_measured, "point"]
    warnings = frames.warnings
    shared = warnings[warnings["scope"].eq(Scope.CAMPAIGN) & warnings["point"].isin(points)]
    by_code: dict[str, list[Message]] = defaultdict(list)
    for line in schema.lines(shared.drop_duplicates(["point", "code"], keep="last")):
        by_code[line.code].append(replace(schema.message_of_line(line), about=""))
    return by_code


def findings_on_limits(measured: pd.DataFrame) -> list[Message]:
    """Return what keeps limits below what the CPU could have, each once."""
    texts = dict.fromkeys(text for text in measured["limit_finding"] if text)
    return [schema.message_of(json.loads(text)) for text in texts]


def parts_of_nodes(frames: CampaignFrames) -> Iterator[Message]:
    """Yield where the headlines are of a part of the node, or of narrow instructions.

    A share of the limit of four cores says nothing about a node with 128.
    """
    for subsystem in planned(frames):
        point = headline_point(frames, subsystem)
        if point is None:
            continue
        part = SUBSYSTEMS[subsystem]
        if part.pinned:
            used, cores = cores_used(frames.runs, point.own)
            if used < cores:
                yield message("part-of-node", resource=part.title, used=used, cores=cores)
        for note in point.notes:
            if note.code == "narrower":
                yield note


def cores_used(runs: pd.DataFrame, row: Line) -> tuple[int, int]:
    """Return the cores that a row's threads had at most, and those of the node; 0 where unknown."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    known = runs[is_of_row & runs["kept"]].dropna(subset=["placed_cores", "allowed_cores"])
    pairs = zip(known["placed_cores"], known["node_cores"].fillna(0), strict=True)
    used, cores = max(pairs, default=(0, 0))
    return int(used), int(cores)


def rows_without_limit(measured: pd.DataFrame) -> Iterator[Message]:
    """Yield how many rows have a limit, and which sections of a site file would give others one."""
    unknown = measured[measured["limit"].isna() & ~measured["loopback"]]
    if len(unknown):
        kinds = Counter(measured["limit_kind"])
        count = message(
            "limits-counted",
            rows=len(measured),
            limits=kinds["limit"],
            bounds=kinds["at_most"],
            neither=kinds["none"],
        )
        yield message(
            "without-limit", count=count, sections=listed(list(unknown["subsystem"].unique()))
        )
