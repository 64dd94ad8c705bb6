"""How it was measured, in words: what is counted, how repetitions are summarised, which programs ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.tables import SMALL_RECORD, TABLES
from peakmark.formatting import plural, typeset
from peakmark.judging.row import Row
from peakmark.judging.rows import centre_of, layout_of
from peakmark.judging.verdict import planned
from peakmark.statistics import ENOUGH
from peakmark.storage.results import Results
from peakmark.tables.presentation import empty_reason
from peakmark.units import format_size

MISSING = "–"
_CENTRES = {
    "median": "The measured columns show the median of the repetitions.",
    "mean": "The measured columns show the arithmetic mean of the repetitions, as the configuration asks.",
}

COUNTED = (
    (
        "CPU",
        "QP HP SP DP",
        "One addition or one multiplication on one lane: 8-, 16- and 32-bit integers, 64-bit floating point. A fused "
        "multiply-add counts as two. The best multiply-add of the instruction set is used; the records name it.",
    ),
    ("CPU", "FP32 QPDOT", "32-bit floating point; 8-bit dot product, every multiplication and addition counted."),
    (
        "Memory",
        "RS WS RWS",
        "Bytes read plus bytes written, blocks in sequence: read, write, copy. What the processor reads in order to "
        "write (write-allocate) is not counted; the limit of rows with ordinary stores is lower by it. Rows of a pool "
        "stream their stores around the caches unless they say otherwise.",
    ),
    (
        "Memory",
        "RR WR RWR LAT",
        "The same, blocks in random order. LAT: loads of which each needs the result of the one before.",
    ),
    ("Disk", "RS WS RR WR", "Bytes with direct I/O, one file per thread, the flush to the device inside the clock."),
    (
        "Network",
        "TCP UDP LAT",
        "Payload that reached the receiver; lost, repeated and reordered datagrams counted apart. TCP may join messages"
        " of which eight or more fit into a segment. LAT: round trips of a one-byte message.",
    ),
)


def build(results: Results, rows: Mapping[str, Sequence[Row]], mark: str = ".") -> dict[str, Any]:
    """Paragraphs by heading, the table of workloads, and the table of programs."""
    subsystems = planned(rows)
    ran = programs(results, tuple(subsystems))
    return {
        "parts": [
            {
                "title": "How a number arises",
                "paragraphs": [typeset(paragraph, mark) for paragraph in _arises(results)],
            },
            {"title": "How to read a row", "paragraphs": _reading(rows)},
        ],
        "adaptive": bool(results.decisions),
        "workloads": [list(line) for line in COUNTED if line[0] in [SUBSYSTEMS[name].title for name in subsystems]],
        "programs": ran,
        "programs_text": _in_a_sentence(ran),
    }


def _in_a_sentence(lines: Sequence[Sequence[str]]) -> str:
    """The same programs where paper is short: the commands of the appendix have their paths."""
    present = [f"{name} {version}" for name, version, _ in lines if version != MISSING]
    missing = [f"{name} ({why})" for name, version, why in lines if version == MISSING]
    sentences = [f"{'; '.join(present)}. Their paths stand in the commands of the appendix." if present else ""]
    sentences += [f"Missing: {'; '.join(missing)}." if missing else ""]
    return " ".join(filter(None, sentences)) or "No program ran."


def _arises(results: Results) -> list[str]:
    return [
        "A cell is one program at one point, once. Cells run one at a time on a machine, in an order that mixes "
        "programs and repetitions, so that a slow drift does not look like a difference between programs. Threads are "
        "pinned, one per core first; those of the disk programs may use all CPUs of their job. After a warm-up they start together, run for a least time or share a "
        "fixed total of work, and the rate is the work of all threads divided by the time from the first start to the "
        "last stop.",
        f"{_CENTRES[centre_of(results)]} The standard deviation (n − 1) and the number of repetitions n are those of "
        "the own kernel. The interval is one of the median, whatever the columns show, from order statistics, which "
        "assumes no distribution. Its level stands in its heading: 95 % from six repetitions on; of fewer, the smallest "
        "and the largest value enclose the median as rarely as it says. Tests and factors are of medians too.",
        *_adaptive(results),
        "The efficiency is the summarised value divided by the theoretical value; for latencies the theoretical value "
        "divided by the summarised one. It is never a mean of ratios. Above 105 % the row is marked: then the limit or "
        "the measurement is wrong. A ratio to a reference is the median of the rounds in which both ran on one host.",
        "Theoretical values come from facts of the machine, as a formula with its numbers beside each table. What could "
        "not be read is called unknown, not guessed. Clocks are kept apart: nominal, maximum and observed. For the CPU's "
        "rows the clock is observed under the work: between timed calls of a kernel, a short one now and then does the "
        "same instructions beside a chain of loads whose length in cycles is known and which takes a little longer than "
        "they do. Some cores lower their clock for wide multiplications and raise it within microseconds of their end, so "
        "the clock before and after a run, from a chain of its own, is kept beside it but is not the limit's. Other rows, "
        "and records without the former, use the latter. Reference programs tell no clock: their share of the limit is "
        "that of the own kernel's runs in the same row.",
        "What the numbers say stands below each table and is computed from it. One row is called faster than another only "
        f"where both have {ENOUGH} repetitions or more and their intervals do not touch (Hoefler and Belli 2015), and a best one is named only where the "
        "test of Kruskal and Wallis (1952) sees a difference among all of them; everything else is said not to be shown, or repeats "
        "values without a claim. Rows whose figure is wrong are used for no claim. Two workloads, and of rows "
        "measured few times block sizes, numbers of threads and references too, are compared over all rows that both have, by the "
        "summed ranks within each (van Elteren 1960), with the probability of chance alone, at 5 % for all of a table together (Holm "
        "1979, Tarone 1990). That a program stays short of its limit is a sign test over its rows.",
    ]


def _adaptive(results: Results) -> list[str]:
    """How the number of repetitions was decided, where it was."""
    if not results.decisions:
        return []
    criteria = dict.fromkeys(entry.criterion for entry in results.decisions.values())
    bounds = "; ".join(f"{entry.least} to {entry.most} until ±{entry.until * 100:g} %" for entry in criteria)
    reached = sum(entry.decision == "narrow" for entry in results.decisions.values())
    return [
        "Repetitions were made in rounds, each half as long as all before it together. After a round a row got no "
        "further repetition once half the interval of its median was narrow enough, in every figure that its program "
        f"reports: {bounds}. {reached} of {len(results.decisions)} rows became as sure as that, and {len(results.spared)} "
        "planned repetitions were spared. Each look between rounds is one more chance to stop by luck, so the 5 % of cases in which "
        "an interval may miss were divided among the looks beforehand (Lan and DeMets 1983): whenever a row ended, its interval "
        "holds the median in at least 95 % of cases, and is wider than that of a fixed number of repetitions."
    ]


def _reading(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    small = format_size(SMALL_RECORD).replace("KiB", " KiB")
    text = [
        "Sizes are binary (1 KiB = 1024 B) unless written as kB or MB, rates decimal (1 MB/s = 10⁶ B/s). Measured values have four significant "
        "digits here; the CSV files beside this report have all of them. An empty cell means that a program has no "
        "such measurement; a column that is empty throughout is explained below its table. Letters in the last column "
        "lead to notes below the table; where a note has a range, the number beside the letter is the row's own. What to do about it "
        "stands at the first note that says so.",
        f"Random accesses of up to {small} are rows of the IOPS and latency tables, all others of the throughput "
        "table.",
    ]
    few = max((row.own.summary.n for table in rows.values() for row in table if row.own), default=0)
    if few and few < 6:
        often = plural(few, "repetition")
        text.append(f"This campaign has at most {often} of each own measurement: too few for 95 % intervals.")
    return text


def programs(results: Results, subsystems: Collection[str] = tuple(SUBSYSTEMS)) -> list[list[str]]:
    """Name with what the tables call it, version and path of each program that ran, then those of the subsystems that are
    missing, with the reason.
    """
    versions: dict[tuple[str, str, str], None] = {}
    for record in results.records:
        tool = record.data["context"]["tool"]
        if record.ok and tool is not None:
            library = record.data["context"].get("library") or {}
            extra = "; ".join(f"{name} {value}" for name, value in sorted(library.items()) if value is not None)
            version = str(tool["version"]) + (f" ({extra})" if extra else "")
            versions[(record.cell.instrument, version, str(tool["path"]))] = None
    ran = {name for name, _, _ in versions}
    order = [series.instrument for table in TABLES if table.subsystem in subsystems for series in table.series]
    lines = [
        list(line)
        for line in sorted(versions, key=lambda line: (order.index(line[0]) if line[0] in order else 99, line))
    ]
    for name in dict.fromkeys(order):
        # A layout has its own choice of programs: others are not missing.
        if name not in ran and (layout_of(results) is None or any(cell.instrument == name for cell in results.cells)):
            lines.append([name, MISSING, empty_reason(results, name)])
    called = _called(results)
    return [[called.get(name, name), version, path] for name, version, path in lines]


def _called(results: Results) -> dict[str, str]:
    """``diskbench (MyDiskBench)``: programs whose name in the tables, or in those of the layout, is another one."""
    layout = layout_of(results)
    names: dict[str, dict[str, None]] = {}
    printed = {sheet.table.name for sheet in layout.sheets} if layout else {table.name for table in TABLES}
    for table in TABLES:
        called = layout.called(table) if layout else table
        for series in called.series if table.name in printed else ():
            if series.heading.lower() != series.instrument:
                names.setdefault(series.instrument, {})[series.heading] = None
    return {instrument: f"{instrument} ({', '.join(headings)})" for instrument, headings in names.items()}
