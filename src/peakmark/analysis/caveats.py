"""What a reader must know before using the numbers: what holds for the whole campaign, each said
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from peakmark.analysis import shared_warnings
from peakmark.analysis.row import Row
from peakmark.analysis.verdict import Rows, Verdict, candidates
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import listed, plural
from peakmark.messages import Message, merge
from peakmark.statistics import ENOUGH


def build(rows: Rows, verdicts: list[Verdict], config: Mapping[str, object]) -> list[str]:
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
            kinds.setdefault(shared_warnings.kind(code), []).append(note)
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
