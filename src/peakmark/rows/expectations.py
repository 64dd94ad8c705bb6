"""Compare nodes with the promised values of the site file, and list for ``peakmark check`` what nodes reach.

The list is ``rows/check.json``. The check itself runs in a prolog, where Python has its standard library alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from peakmark.catalogue import HEADLINES, KERNELS, SHAPES, is_together
from peakmark.comparability import Equipment, equipment_of
from peakmark.formatting import format_size
from peakmark.machine.host import parse_cpu_list
from peakmark.messages import message
from peakmark.promises import Promise, verdict
from peakmark.rows import schema
from peakmark.rows.labels import choose, rows_of_headline
from peakmark.rows.row_warnings import line_of
from peakmark.rows.schema import CampaignFrames
from peakmark.storage.results import Results, StoredRecord

LEAST_MARGIN = 1.1
"""Smallest factor between the worse end of a class's interval and the bound of a check.

Other programs may take 5 % of the CPUs unnoticed (``activity.MATTERS``), and good nodes vary by up to 5 %
from day to day.
"""
LEAST_VALUES = 3
"""Fewest values of a class in a row. If nothing has changed, the best of three new values is worse than
all three of the class with a probability of 1/20; six values make it 1/84.
"""
INSTRUMENTS = (KERNELS["cpu"], KERNELS["memory"])
"""Programs whose rows are checked. They write no files and use no network."""
WORK = ("--seconds", "--operations", "--total", "--accesses")
"""Options of these programs that set the amount of work. A check sets its own."""
LEAST_OVERHEAD_S, MOST_OVERHEAD_S = 0.1, 5.0
"""Plausible seconds that a program takes besides measuring: start, warm-up, and filling its memory."""
PRIVATE_CACHES = ("L1", "L2")
"""Cache levels that the core of a thread has for itself."""


def list_classes(frames: CampaignFrames, results: Results) -> list[dict[str, Any]]:
    """Return the entries of ``check.json``: for each class of equal nodes a dict with ``equipment`` and ``rows``.

    ``equipment`` has the fields of ``Equipment``. ``rows`` are the dicts of ``_row`` with ``is_headline``,
    the headlines first.
    """
    commands = _commands(results)
    promised = {entry["point"]: entry["amount"] for entry in frames.campaign["promises"]}
    rows = _usable(frames.rows)
    classes = []
    for _, nodes in frames.nodes.groupby("class", sort=False):
        own = rows[rows["node"].isin(nodes["node"])]
        # A place is a point on any node, so the lines of a place are those of the class's nodes.
        known = {}
        for place, lines in own.groupby("place", sort=False):
            row = _row(lines, commands, promised)
            if row is not None:
                known[place] = row
        equipment = Equipment(*nodes.iloc[0][[*Equipment._fields]].fillna(""))
        if not equipment.cpu:
            equipment = _shared_equipment(results)
        headlines = _headlines(own[own["place"].isin(known)], nodes)
        listed = []
        # The headlines first, then all other places. A promised value makes its row a headline too.
        for place in dict.fromkeys([*headlines, *known]):
            row = known[place]
            row["is_headline"] = place in headlines or row["promised"] is not None
            listed.append(row)
        classes.append({"equipment": equipment._asdict(), "rows": listed})
    return classes


def _shared_equipment(results: Results) -> Equipment:
    """Return the equipment that all hosts of a campaign have in common.

    Cells of the node ``any`` have no other known equipment, because any host may measure them.
    """
    of_hosts = map(equipment_of, results.facts.values())
    columns = zip(*of_hosts, strict=True)
    return Equipment(*(values[0] if len(set(values)) == 1 else "" for values in columns))


def _headlines(rows: pd.DataFrame, nodes: pd.DataFrame) -> list[str]:
    """Return the places of the rows of ``HEADLINES``, in the order of ``HEADLINES``.

    If no row belongs to a headline, return the place of the first row: a check needs a headline. The list is
    empty only without rows.
    """
    places = []
    for headline in HEADLINES:
        of_headline = rows_of_headline(rows, headline)
        if len(of_headline):
            places.append(choose(of_headline, headline, nodes)["place"].iloc[0])
    return places or list(rows["place"].head(1))


def _usable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the checked kernels whose value shows what a good node reaches.

    Slow nodes and wrong rows are left out, and rows that one check of one node cannot measure: matrices,
    curves, and rows of nodes that measured together.
    """
    # astype: the mask of a frame without rows is not one of booleans.
    is_together_row = rows["variant"].map(is_together).astype(bool)
    is_point = ~rows["workload"].isin(SHAPES) & ~is_together_row
    is_checked = rows["instrument"].isin(INSTRUMENTS)
    return rows[schema.is_usable(rows) & rows["is_slow"].ne(True) & is_point & is_checked]


def _commands(results: Results) -> dict[tuple[Any, ...], StoredRecord]:
    """Return (instrument, workload, variant, block, concurrency, node) -> the first record with pinned threads."""
    found: dict[tuple[Any, ...], StoredRecord] = {}
    for record in results.records:
        cell = record.cell
        if not record.ok or cell.instrument not in INSTRUMENTS:
            continue
        if "--cpus" in record.data.context.commands[0].argv:
            # The measured block: the node may have chosen it.
            block = record.data.measurements[0].block
            asked = cell.word or str(cell.concurrency)
            key = (cell.instrument, cell.workload, cell.variant, block, asked, cell.node)
            found.setdefault(key, record)
    return found


def _row(
    lines: pd.DataFrame,
    commands: Mapping[tuple[Any, ...], StoredRecord],
    promised: Mapping[str, float],
) -> dict[str, Any] | None:
    """Return the entry of ``check.json`` for one point of a class.

    Return None if the class has too few values, or if no record has a command for the point.

    Args:
        lines: the rows of the point, one for each node of the class.
        commands: records, as ``_commands`` returns them.
        promised: point -> value that the site file promises.
    """
    first = lines.iloc[0]
    # Find the record of the row on the first node, whose command stands for all nodes of the class.
    asked = str(first["concurrency_word"] or first["concurrency"])
    block = None if pd.isna(first["block_bytes"]) else int(first["block_bytes"])
    record = commands.get(
        (first["instrument"], first["workload"], first["variant"], block, asked, first["node"])
    )
    if lines["n"].sum() < LEAST_VALUES or record is None:
        return None
    table = first["place"].partition("/")[0]  # a place begins with its table
    size = "" if block is None else format_size(block)
    words = [table, first["workload"], first["variant"], size, f"x{asked}"]
    lowest, highest = float(lines["low"].min()), float(lines["high"].max())
    is_cpu = first["subsystem"] == "cpu"
    return {
        "name": " ".join(filter(None, words)),
        "threads": int(first["concurrency"]),
        "unit": first["unit"],
        "highest": highest,
        "bound": bound(lowest, highest, is_time=first["unit"] == "s"),
        "promised": next((promised[point] for point in lines["point"] if point in promised), None),
        "is_cpu": is_cpu,
        # Whether the row uses nothing that other cores share.
        "is_private": is_cpu or first["cache_level"] in PRIVATE_CACHES,
        **_recipe(first["instrument"], record),
    }


def bound(lowest: float, highest: float, *, is_time: bool) -> float:
    """Return the value that every good node reaches: a lower bound for rates, an upper bound for times.

    This value is the worse end of the class's interval, made worse by a factor: the ratio of the
    two ends or ``LEAST_MARGIN``, whichever is larger.

    Args:
        lowest: lower end of the interval.
        highest: upper end of the interval.
        is_time: whether lower values are better.
    """
    factor = max(LEAST_MARGIN, highest / lowest)
    if is_time:
        return highest * factor
    return lowest / factor


def _recipe(instrument: str, record: StoredRecord) -> dict[str, Any]:
    """Return what a check takes from a record.

    - ``argv``: the command without the options in ``WORK``.
    - ``cpus``: CPUs of its threads.
    - ``overhead_s``: seconds that the program took besides measuring, limited to the plausible
      range from ``LEAST_OVERHEAD_S`` to ``MOST_OVERHEAD_S``.
    - ``clock_limit_hz``: highest clock that governor and firmware allowed; None if it is unknown.
    """
    command = record.data.context.commands[0]
    words = [instrument]
    arguments = command.argv[1:]
    for option, value in zip(arguments[::2], arguments[1::2], strict=True):  # each has a value
        if option not in WORK:
            words += [option, value]
    measured_s: Any = record.data.measurements[0].details.get("seconds", 0.0)
    overhead_s = command.seconds - measured_s
    noise = record.data.context.noise
    return {
        "argv": words,
        "cpus": parse_cpu_list(words[words.index("--cpus") + 1]),  # the value of this option
        "overhead_s": min(MOST_OVERHEAD_S, max(LEAST_OVERHEAD_S, overhead_s)),
        "clock_limit_hz": noise.clock_limit_hz if noise else None,
    }


# -- promised values


def judge_promises(rows: pd.DataFrame, promised: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a verdict for each promised value and each node that was to measure it.

    If several rows of a node match the promise, the best one counts. Wrong values do not count.

    Args:
        rows: frame ``rows`` with the codes of its warnings.
        promised: the site file's key ``promise``.
    """
    verdicts = []
    for key, text in promised.items():
        promise = Promise.parse(key, text)
        matching = rows[rows["is_own"] & is_of(rows, promise)]
        # A promise that no row matches has a verdict without a node.
        nodes = dict.fromkeys(matching["node"]) or [""]
        usable = matching[schema.is_usable(matching) & matching["unit"].eq(promise.unit)]
        for node in nodes:
            entry = {"promise": promise.text, "node": node, "point": "", "amount": promise.amount}
            # The verdict without a usable row.
            entry["verdict"] = "not measured" if node else "no row with these words and this unit"
            of_node = usable[usable["node"].eq(node)].sort_values("value")
            if len(of_node):
                # The shortest time or the highest rate.
                best = of_node.iloc[0 if promise.unit == "s" else -1]
                value, low, high = (float(best[name]) for name in ("value", "low", "high"))
                entry["point"] = best["point"]
                entry["verdict"] = verdict(value, low, high, promise.amount, promise.unit)
            verdicts.append(entry)
    return verdicts


def is_of(rows: pd.DataFrame, promise: Promise) -> pd.Series:
    """Return a mask of the rows, with or without values, that have all words of a promise."""
    subsystem, workload, *words = promise.words
    found = rows["subsystem"].eq(subsystem) & rows["workload"].eq(workload)
    # A row without a value has no unit.
    found &= rows["unit"].fillna("").isin(["", promise.unit])
    # A word is a variant, a size, or a concurrency such as ``x8`` or ``xcores``.
    asked = rows["concurrency_word"].where(
        rows["concurrency_word"].ne(""), rows["concurrency"].astype("str")
    )
    sizes = rows["block_bytes"].map(format_size, na_action="ignore")
    for word in words:
        found &= rows["variant"].eq(word) | sizes.eq(word) | ("x" + asked).eq(word)
    return found


def add_promises(warnings: pd.DataFrame, verdicts: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Add to the frame ``warnings`` a note on each row that a promise was compared with."""
    lines = []
    for entry in verdicts:
        if entry["point"]:
            brief = entry["verdict"].partition(" (")[0]
            interval = entry["verdict"].removeprefix(brief)
            note = message("promise", promise=entry["promise"], verdict=brief, interval=interval)
            lines.append(line_of(note, entry["point"]))
    if not lines:
        return warnings
    notes = schema.typed("warnings", pd.DataFrame(lines))
    return pd.concat([warnings, notes], ignore_index=True)
