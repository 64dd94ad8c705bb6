"""The few rows that speak for a subsystem, and what they say: for the first page and for the terminal.

A sentence repeats numbers of a row; nothing is judged that the row does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from peakmark.formatting import percent, significant
from peakmark.judging.rows import Row
from peakmark.tables.layout import SUBSYSTEM_TITLES
from peakmark.tables.words import Words, quantity

Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Number:
    """A telling number: what it is, the number with its unit, how it stands to limit and reference, and why it may be
    wrong.
    """

    label: str
    value: str
    comparison: str
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What can be said of one subsystem: its headline row, None when nothing was measured, a few words, a sentence."""

    subsystem: str
    title: str
    row: Row | None
    short: str
    sentence: str


def headline(rows: Rows, subsystem: str) -> Row | None:
    """The row that stands for a subsystem: its best double-precision, DRAM, disk or TCP throughput; None without one.

    Rows that can be compared, with a limit or a reference, come before those that cannot. A row that is marked as
    doubtful is not passed over.
    """
    if subsystem == "cpu":
        return _best(rows["cpu"], lambda row: row.key.workload == "DP") or _best(rows["cpu"])
    if subsystem == "memory":
        table = rows["memory_throughput"]
        return _best(table, lambda row: row.key.variant == "pool") or _best(table)
    if subsystem == "disk":
        return _best(rows["disk_throughput"])
    return _best(rows["network_throughput"], lambda row: row.key.workload == "TCP") or _best(rows["network_throughput"])


def telling_numbers(rows: Rows, mark: str = ".") -> list[Number]:
    """The five most telling numbers, best first known: four throughputs and the fastest small disk access; fewer if
    unmeasured.
    """
    chosen = [
        headline(rows, "cpu"),
        headline(rows, "memory"),
        headline(rows, "disk"),
        _best(rows["disk_iops"]) or _best(rows["memory_latency"]),
        headline(rows, "network"),
    ]
    return [
        Number(describe(row), value_of(row, mark), comparison(row, mark), row.doubts)
        for row in chosen
        if row is not None
    ]


def planned(rows: Rows) -> dict[str, str]:
    """Subsystem -> title of those that the plan measures, in the order of the report; all where it measures nothing."""
    found = {row.table.subsystem for table in rows.values() for row in table}
    return {subsystem: title for subsystem, title in SUBSYSTEM_TITLES.items() if subsystem in found or not found}


def verdicts(rows: Rows, mark: str = ".") -> list[Verdict]:
    """One verdict per planned subsystem, in the order of the report."""
    found = []
    for subsystem, title in planned(rows).items():
        row = headline(rows, subsystem)
        everything = [entry for table in rows.values() for entry in table if entry.table.subsystem == subsystem]
        if row is None:
            sentence = "Nothing was measured."
        else:
            sentence = f"{point(row)}: {value_of(row, mark)}; {comparison(row, mark)}."
        holes = sum(entry.own is None for entry in everything)
        marked = sum(bool(entry.doubts) for entry in everything)
        if holes:
            sentence += f" {holes} of {len(everything)} rows are not measured."
        if marked:
            which = ", this one among them" if row is not None and row.doubts else ""
            sentence += f" {marked} of {len(everything)} rows are doubtful{which}; the notes say why."
        found.append(Verdict(subsystem, title, row, _short(row, mark), sentence))
    return found


def _short(row: Row | None, mark: str) -> str:
    """A verdict in a few words: ``86 % of its limit``, with a word of doubt where there is one."""
    if row is None:
        return "Not measured"
    share = row.measured.efficiency
    if share is not None:
        text = f"{percent(share, mark)}\u00a0% of its limit"
    elif row.best_reference is not None:
        heading, series = row.best_reference
        text = f"Limit unknown; {significant(row.measured.centre / series.centre, 3, mark)}\u00a0×\u00a0{heading}"
    else:
        text = "Limit unknown"
    return text + (", in doubt" if row.doubts else "")


def caveats(rows: Rows, enough: int) -> list[str]:
    """What a reader must know before using the numbers: unknown limits, few repetitions, loopback."""
    heads = {title: headline(rows, subsystem) for subsystem, title in planned(rows).items()}
    found = []
    unknown = [
        f"the {title if title == 'CPU' else title.lower()}"
        for title, row in heads.items()
        if row and row.peak.value is None
    ]
    if unknown:
        which = unknown[0] if len(unknown) == 1 else f"{', '.join(unknown[:-1])} and {unknown[-1]}"
        said = f"limit of {which} is" if len(unknown) == 1 else f"limits of {which} are"
        found.append(
            f"The {said} unknown: this machine does not tell what {'it is' if len(unknown) == 1 else 'they are'} computed "
            "from. The chapter Machine lists what could not be read, and how to supply it."
        )
    most = max((row.own.summary.n for table in rows.values() for row in table if row.own), default=0)
    if 0 < most < enough:
        found.append(
            f"With at most {most} repetition{'' if most == 1 else 's'} no row is called faster than another; {enough} or more "
            "allow it."
        )
    measured = [row for table in rows.values() for row in table if row.own]
    contexts = [point.record.data["context"] for row in measured for point in row.measured.points]
    if any((context.get("network") or {}).get("loopback") for context in contexts):
        found.append(
            "The network was measured within one machine, over loopback: it says nothing about a link between nodes."
        )
    return found


def describe(row: Row) -> str:
    """What a row measures, in words: ``CPU DP, 2 threads`` or ``Disk RR of 4 KiB, 8 threads``."""
    return f"{SUBSYSTEM_TITLES[row.table.subsystem]} {point(row)}"


def point(row: Row) -> str:
    """The same without the subsystem: ``RR of 4 KiB, 8 threads``."""
    return Words.of(row).point(row)


def value_of(row: Row, mark: str = ".") -> str:
    """The row's own summarised value with its unit; the row must have one."""
    return quantity(row.table, row.measured.centre, mark)


def comparison(row: Row, mark: str = ".") -> str:
    """How the own value stands to the limit and to the best reference, with the reason where there is no limit."""
    own, reference = row.measured, row.best_reference
    parts = []
    if own.efficiency is not None:
        parts.append(f"{percent(own.efficiency, mark)} % of the limit")
    else:
        parts.append("limit unknown")
    if reference is not None:
        heading, series = reference
        ratio = significant(own.centre / series.centre, 3, mark)
        text = f"{ratio} × {heading} ({quantity(row.table, series.centre, mark)}"
        text += f", {percent(series.efficiency, mark)} %)" if series.efficiency is not None else ")"
        parts.append(text)
    return "; ".join(parts)


def _best(rows: Sequence[Row], condition: Callable[[Row], bool] | None = None) -> Row | None:
    """The measured row with the best value among those that meet the condition, if possible one that can be
    compared.
    """
    measured = [row for row in rows if row.own is not None and (condition is None or condition(row))]
    comparable = [row for row in measured if row.peak.value is not None or row.best_reference is not None]
    if not measured:
        return None
    choose = min if measured[0].table.lower_is_better else max
    return choose(comparable or measured, key=lambda row: row.measured.centre)
