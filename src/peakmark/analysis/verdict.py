"""Page one: the row that speaks for each subsystem, and what a reader must know before using it.

A row with a wrong figure speaks for nothing, and one that is unsure only where no other can be had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from peakmark import limits
from peakmark.analysis import fleet, ratios, row_warnings
from peakmark.analysis.fleet import NodeGroup
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import listed, percent, plural
from peakmark.messages import Message, merge
from peakmark.statistics import ENOUGH

Rows = Mapping[str, Sequence[Row]]

NO_ROW = "no row that can be trusted"


@dataclass(frozen=True)
class Headline:
    """A telling number: what it is, the number with its unit, how it stands to limit and reference,
    how sure it is and what speaks against it.
    """

    label: str
    value: str
    comparison: str
    confidence: str
    specific_warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What can be said of one subsystem, as texts for a table's line; the row that speaks for it,
    None without one.

    clocks      the shares of the limit at the clocks on the box, in brackets; empty where there are
                none
    spread      lowest and highest repetition, in the unit of ``measured``
    reference   ratio to the best reference with its number of runs, empty without one
    slowest     the slowest of several nodes, ``behind`` its value and by how much it is behind
                their median; then ``measured`` is that median, ``spread`` the lowest and highest
                node, and ``row`` that of the node nearest to it
    confidence  no doubt seen, unsure, one run, or empty without a row; ``why`` gives the reason, or
                why there is no row
    """

    subsystem: str
    row: Row | None = None
    what: str = "not measured"
    measured: str = ""
    spread: str = ""
    limit: str = ""
    share: str = ""
    clocks: str = ""
    reference: str = ""
    confidence: str = ""
    why: str = ""
    slowest: str = ""
    behind: str = ""

    @property
    def title(self) -> str:
        """What headings call the subsystem."""
        return SUBSYSTEMS[self.subsystem].title


def headline(rows: Rows, subsystem: str) -> Row | None:
    """The row that stands for a subsystem: its best double-precision, DRAM, disk or TCP throughput.

    Of rows without doubt the best, or the best on as many threads that can be compared with a limit
    or a reference; where all are in doubt the same of those that are merely unsure. None when
    nothing was measured, or all of it is wrong. Of several nodes it is the one whose value is
    nearest to the median of all: the best node does not speak for the others.
    """
    group = headline_group(rows, subsystem)
    return group.middle if group else None


def headline_group(rows: Rows, subsystem: str) -> NodeGroup | None:
    """The same with all nodes that measured it."""
    return _best(candidates(rows, subsystem))


def candidates(rows: Rows, subsystem: str) -> list[Row]:
    """The measured rows that could speak for a subsystem. Where DRAM was measured, a cache does not
    stand for it.
    """
    preferred: Mapping[str, tuple[str, Callable[[Row], bool]]] = {
        "cpu": ("cpu", lambda row: row.key.workload == "DP"),
        "memory": ("memory_throughput", lambda row: row.key.variant == "pool"),
        "disk": ("disk_throughput", lambda _: True),
        "network": ("network_throughput", lambda row: row.key.workload == "TCP"),
    }
    table, fits = preferred[subsystem]
    measured = [row for row in rows[table] if row.own is not None]
    return [row for row in measured if fits(row)] or measured


def telling_numbers(rows: Rows) -> list[Headline]:
    """The five most telling numbers, as far as there are any: four throughputs and the fastest
    small disk access.
    """
    small = _best([row for row in rows["disk_iops"] if row.own is not None])
    latency = _best([row for row in rows["memory_latency"] if row.own is not None])
    chosen = [
        headline_group(rows, "cpu"),
        headline_group(rows, "memory"),
        headline_group(rows, "disk"),
        small or latency,
    ]
    return [
        _number(group) for group in (*chosen, headline_group(rows, "network")) if group is not None
    ]


def _number(group: NodeGroup) -> Headline:
    row, labels = group.middle, LabelFormatter(group.table)
    label, value, compared = (
        describe(row),
        labels.quantity(row.measured.centre),
        _comparison(row),
    )
    if len(group.rows) > 1:
        title = SUBSYSTEMS[row.table.subsystem].title
        label = (
            f"{title} {LabelFormatter.of(row).point_on_all(row)}, median of {len(group.rows)} nodes"
        )
        value = labels.quantity(group.median)
        compared = f"slowest {group.worst.key.node} with {labels.quantity(group.worst.measured.centre)}; {compared}"
    return Headline(
        label,
        value,
        compared,
        confidence(row),
        row.said(row.specific_warnings or row.shared_warnings),
    )


def planned(rows: Rows) -> list[str]:
    """The subsystems that the plan measures, in the order of the report; all where it measures
    nothing.
    """
    subsystems = {row.table.subsystem for table in rows.values() for row in table}
    return [subsystem for subsystem in SUBSYSTEMS if subsystem in subsystems or not subsystems]


def verdicts(rows: Rows) -> list[Verdict]:
    """One verdict per planned subsystem, in the order of the report."""
    return [_verdict(rows, subsystem) for subsystem in planned(rows)]


def with_limit(rows: Rows) -> list[tuple[str, Row]]:
    """Title and headline row of each resource whose limit is known: what can be drawn as a share of
    it.
    """
    headlines = [
        (SUBSYSTEMS[subsystem].title, headline(rows, subsystem)) for subsystem in planned(rows)
    ]
    return [
        (title, row) for title, row in headlines if row is not None and row.limit.value is not None
    ]


def _verdict(rows: Rows, subsystem: str) -> Verdict:
    group = headline_group(rows, subsystem)
    if group is None:
        reasons = Counter(
            row.specific_warnings[0].fact
            for row in candidates(rows, subsystem)
            if row.specific_warnings
        )
        return (
            Verdict(subsystem, what=NO_ROW, why=reasons.most_common(1)[0][0])
            if reasons
            else Verdict(subsystem)
        )
    of_node = _of_node(group.middle)
    return of_node if group.planned == 1 else _of_nodes(group, of_node)


def _of_nodes(group: NodeGroup, middle: Verdict) -> Verdict:
    """The same of several nodes, by the verdict on that which is nearest to their median."""
    labels, worst, n = LabelFormatter(group.table), group.worst, len(group.rows)
    behind = f", {percent(group.behind(worst))}\u00a0% behind" if n > 1 else ""
    doubted = [row for row in group.rows if row.level is not None]
    confidence, why = middle.confidence, middle.why
    if doubted:
        confidence = f"unsure on {_which(doubted, n)}"
        why = Counter(row.specific_warnings[0].fact for row in doubted).most_common(1)[0][0]
    if n < group.planned:
        why = "; ".join(
            filter(
                None, (f"without {plural(group.planned - n, 'node')} (wrong or not measured)", why)
            )
        )
    return replace(
        middle,
        what=LabelFormatter.of(group.middle).point_on_all(group.middle) + _over(group.middle),
        measured=labels.quantity(group.median),
        spread=_range(labels, group.low, group.high) if n > 1 else "",
        share=_share(limits.efficiency(group.median, group.middle.limit)),
        reference=ratios.text_of_nodes(group.rows),
        slowest=worst.key.node,
        behind=f"{labels.quantity(worst.measured.centre)}{behind}",
        confidence=confidence,
        why=why,
    )


def _range(labels: LabelFormatter, low: float, high: float) -> str:
    return f"{labels.number(low)} to {labels.number(high)}"


def _share(share: float | None) -> str:
    return "" if share is None else f"{percent(share)}\u00a0%"


def _which(rows: Sequence[Row], of: int) -> str:
    """``node3``, ``all 8 nodes``, ``5 of 8 nodes``."""
    if len(rows) == 1:
        return rows[0].key.node
    return f"all {of} nodes" if len(rows) == of else f"{len(rows)} of {of} nodes"


def _of_node(row: Row) -> Verdict:
    own, labels = row.measured, LabelFormatter(row.table)
    why = ""
    if row.specific_warnings:
        why = row.specific_warnings[0].fact
    elif row.shared_warnings:
        doubt = row.shared_warnings[0]
        why = f"as most rows: {doubt.fact}" if doubt.code in row_warnings.SHARED else doubt.fact
    if own.summary.n == 1:
        why = why or "measured once: nothing is known of the spread"
    limit = (
        "none: no link" if row.loopback else "unknown"
    )  # nobody can state the limit of a link that is none
    return Verdict(
        subsystem=row.table.subsystem,
        row=row,
        what=LabelFormatter.of(row).point(row) + _over(row),
        measured=labels.quantity(own.centre),
        spread=_range(labels, own.summary.minimum, own.summary.maximum)
        if own.summary.n > 1
        else "",
        limit=limit if row.limit.value is None else labels.quantity(row.limit.value),
        share=_share(own.efficiency),
        clocks=_at_clocks(row).strip(),
        reference=ratios.text(row),
        confidence=confidence(row),
        why=why,
    )


def _over(row: Row) -> str:
    return ", over loopback" if row.loopback else ""


def confidence(row: Row) -> str:
    """``no doubt seen``, ``unsure`` or ``wrong``; ``one run`` where nothing speaks against a figure
    but nothing for it either; ``no doubt of its own`` where it is one that is said once, of most
    rows of a campaign or of all of a disk.
    """
    if row.level is not None:
        return str(row.level)
    if row.measured.summary.n == 1:
        return "one run"
    return "no doubt of its own" if row.shared_warnings else "no doubt seen"


def describe(row: Row) -> str:
    """What a row measures, in words: ``CPU DP, 2 threads`` or ``Disk RR of 4 KiB, 8 threads``."""
    return f"{SUBSYSTEMS[row.table.subsystem].title} {LabelFormatter.of(row).point(row)}"


def _comparison(row: Row) -> str:
    """How the own value stands to the limit and to the best reference."""
    share = row.measured.efficiency
    limit = (
        f"{percent(share)} % of the limit{_at_clocks(row)}"
        if share is not None
        else "limit unknown"
    )
    return "; ".join(filter(None, (limit, ratios.text(row))))


def _at_clocks(row: Row) -> str:
    """The shares of the limit at the clocks on the box, in brackets after the one at the clock that
    was seen.
    """
    shares = [f"{percent(share)} % at the {name} clock" for name, share in row.shares.items()]
    return f" ({', '.join(shares)})" if shares else ""


def _best(rows: Sequence[Row]) -> NodeGroup | None:
    """The best of the points that are not wrong: first those without doubt on most nodes; of as
    many threads as the best one has those that can be compared, as one thread with a reference
    beside it says little of a memory that four threads fill.
    """
    every = fleet.group_rows(rows)
    sure = [
        group
        for group in every
        if 2 * sum(row.level is None for row in group.rows) > len(group.rows)
    ]
    for choice in (sure, every):
        if choice:
            choose = min if choice[0].table.lower_is_better else max
            best = choose(choice, key=lambda group: group.median)
            beside = [
                group
                for group in choice
                if group.middle.key.concurrency == best.middle.key.concurrency
                and (group.middle.limit.value is not None or ratios.best(group.middle) is not None)
            ]
            return choose(beside or [best], key=lambda group: group.median)
    return None


def build_caveats(rows: Rows, verdicts: list[Verdict], config: Mapping[str, object]) -> list[str]:
    """Sentences for the first page, the weightiest first."""
    measured = [row for table in rows.values() for row in table if row.own is not None]
    # What keeps the machine itself below what its CPUs could have.
    findings = dict.fromkeys(row.limit.finding.text for row in measured if row.limit.finding)
    return [
        *_nothing_sure(verdicts),
        *_doubtful(measured),
        *_whole(measured),
        *(f"{text[:1].upper()}{text[1:]}." for text in findings),
        *_part_of_node(rows, verdicts),
        *_narrower(verdicts),
        *_scaled(config),
        *_limits(verdicts),
        *_loopback(measured),
        *_holes(rows),
    ]


def _part_of_node(rows: Rows, verdicts: list[Verdict]) -> Iterator[str]:
    """A share of the limit of four cores says nothing about a node with 128."""
    for entry in verdicts:
        contexts = [point.context for point in entry.row.measured.points] if entry.row else []
        known = [
            (c["placed"]["cores"], c["allowed"].get("node_cores"))
            for c in contexts
            if c.get("placed") and c.get("allowed")
        ]
        used, cores = max(known, default=(0, None), key=lambda pair: pair[0])
        if entry.row and SUBSYSTEMS[entry.subsystem].pinned and cores and used < cores:
            share = ", and so is its share of the limit" if entry.share else ""
            yield f"{entry.title}: measured on {used} of the node's {cores} cores{share}; {_why_not_more(rows, entry.row)}."


def _why_not_more(rows: Rows, chosen: Row) -> str:
    """Why none of the rows of more threads that could speak for the resource does."""
    more = [
        row
        for row in candidates(rows, chosen.table.subsystem)
        if row.key.node == chosen.key.node and row.key.concurrency > chosen.key.concurrency
    ]
    slower = [row for row in more if row.level is None and not _is_better(row, chosen)]
    reasons = {
        "slower": bool(slower),
        "in doubt": any(row.level is not None for row in more),
        "without a limit or a reference": any(
            row.level is None and row not in slower for row in more
        ),
    }
    which = [reason for reason, holds in reasons.items() if holds]
    if not which and any(_asked_for_more(row, chosen) for row in rows[chosen.table.name]):
        which = ["not measured"]
    return (
        f"its rows of more threads are {listed(which, 'or')}"
        if which
        else "concurrency: [cores] loads them all"
    )


def _asked_for_more(row: Row, chosen: Row) -> bool:
    """Whether a hole is one of more threads; of a word nobody knows how many it means before it was
    measured.
    """
    unknown = row.key.word != "" and not row.key.concurrency
    return row.own is None and (unknown or row.key.concurrency > chosen.key.concurrency)


def _is_better(row: Row, than: Row) -> bool:
    ahead = row.measured.centre > than.measured.centre
    return ahead != row.table.lower_is_better


def _narrower(verdicts: list[Verdict]) -> Iterator[str]:
    """That a share on page one is of instructions that were asked for, not of the node."""
    for verdict in verdicts:
        for note in verdict.row.warnings if verdict.row else ():
            if note.code == "narrower":
                yield f"{verdict.title}: {note.text}."


def _nothing_sure(verdicts: list[Verdict]) -> Iterator[str]:
    """That none of the figures above is to be quoted, where that is so."""
    judged = [entry for entry in verdicts if entry.row is not None]
    if len(judged) > 1 and all(
        entry.row is not None and entry.row.level is not None for entry in judged
    ):
        yield (
            f"None of the {len(judged)} figures above is sure: another run may well give others. Measure again on a node that "
            "does nothing else before you quote one."
        )


def _doubtful(measured: list[Row]) -> Iterator[str]:
    means = {
        "wrong": "a wrong row speaks for nothing",
        "unsure": "another run of an unsure one may well differ",
    }
    counts = {word: sum(row.level == word for row in measured) for word in means}
    parts = [
        f"{count} {'is' if count == 1 else 'are'} {word}" for word, count in counts.items() if count
    ]
    if parts:
        what = "; ".join(means[word] for word, count in counts.items() if count)
        yield f"Of {len(measured)} measured rows {listed(parts)}: {what}; the notes say why."


def _whole(measured: list[Row]) -> Iterator[str]:
    """What most rows share, once, with the range of its numbers: the most frequent fact, then
    others of its kind.
    """
    kinds: dict[str, list[Message]] = {}
    for row in measured:
        for code, note in {
            note.code: replace(note, about="") for note in row.warnings if note.is_shared
        }.items():
            kinds.setdefault(row_warnings.kind(code), []).append(note)
    for shared in kinds.values():
        merged = merge(shared)
        (sentence, count), *others = Counter(
            merged[note].message.sentence for note in shared
        ).most_common()
        where = (
            f"all {count} rows" if count == len(measured) else f"{count} of {len(measured)} rows"
        )
        more = "".join(f"; in {number}, {other.fact}" for other, number in others)
        yield f"In {where}, {sentence._replace(fact=sentence.fact + more)}."


def _scaled(config: Mapping[str, object]) -> Iterator[str]:
    scale = config.get("scale")
    if isinstance(scale, int | float) and not isinstance(scale, bool) and scale < 1:
        yield (
            f"Times, amounts of work and files are {scale:g} times those of the configuration (scale): the "
            "figures are real but short, and a short disk figure may be the cache's."
        )


def _limits(verdicts: list[Verdict]) -> Iterator[str]:
    unknown = [
        entry
        for entry in verdicts
        if entry.row and entry.row.limit.value is None and not entry.row.loopback
    ]
    if unknown:
        names = [SUBSYSTEMS[entry.subsystem].named for entry in unknown]
        which = listed(names)
        lines = ", ".join(
            entry.subsystem for entry in unknown
        )  # as the sections of a site file are called
        plural = len(unknown) > 1
        yield (
            f"{which[:1].upper()}{which[1:]} {'have' if plural else 'has'} no known limit, so no share of one: this machine "
            f"does not tell it. State it in a site file (section{'s' if plural else ''} {lines}; see config/sites/example.yaml) "
            "and run the same command again: finished cells stay."
        )
    for entry in verdicts:
        if entry.row is None and entry.why:
            yield f"{entry.title}: {entry.what}: {entry.why}."


def _loopback(measured: list[Row]) -> Iterator[str]:
    if any(row.loopback for row in measured):
        yield (
            "The network was measured within one machine, over loopback, which has no limit but the CPU: it says nothing "
            "about a link between nodes."
        )


def _holes(rows: Rows) -> Iterator[str]:
    everything = [row for table in rows.values() for row in table]
    holes = sum(row.own is None for row in everything)
    if holes:
        yield f"{holes} of {len(everything)} rows {'is' if holes == 1 else 'are'} not measured."
    most = max((row.own.summary.n for row in everything if row.own), default=0)
    few = any(note.code == "few" and note.is_shared for row in everything for note in row.warnings)
    if 0 < most < ENOUGH and not few:
        yield (
            f"With at most {plural(most, 'repetition')} no single row is called faster than another; {ENOUGH} "
            "or more allow it."
        )
