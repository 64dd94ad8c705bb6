"""Find the settings and recorded facts of rows, which show readers whether rows are comparable.

*Settings* are what the configuration asks for; *recorded facts* are what the record of a row states.
Both are mappings of title -> text. The file ``data/comparability.csv`` lists the facts that matter, and
the rows for which they matter. Facts that slow nodes alone have in common may be the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd

from peakmark.catalogue import SHAPES
from peakmark.cell import Cell
from peakmark.comparability import fact, flat, is_listed, matters
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.storage.record_types import RecordContext
from peakmark.storage.results import Results

WRITTEN = ("instruction set", "stores", "sync", "fill")
"""Titles of settings in which another program may differ from peakmark's kernel."""
ALWAYS: Mapping[str, Mapping[str, str]] = {"hpl": {"instruction set": "the widest"}}
"""Program -> settings that the configuration does not change."""
SHOWN = 3
"""Largest number of differing facts that are listed for a node."""


def settings_of(cell: Cell, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return title -> text of the settings with which a value was measured.

    These are the options, and how memory or disk is accessed.
    """
    known = {}
    for name, text in flat({"options": cell.options}):
        if fact(name)["subsystems"]:
            known[fact(name)["title"]] = text
    return known | access_of(cell.subsystem, workload, {**cell.options, **details})


def access_of(subsystem: str, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return title -> text of how a measurement accesses memory or disk.

    Args:
        subsystem: subsystem of the value.
        workload: workload of the value.
        details: options of the cell, overridden by what the program reported. Missing details have
            the default of peakmark's kernels.
    """
    is_writing = "W" in workload or workload == "TRIAD"
    if subsystem == "memory" and is_writing and details.get("store"):
        return {"stores": str(details["store"])}
    if subsystem != "disk" or workload in SHAPES:
        return {}
    access = {"O_DIRECT": "yes"}
    if details.get("direct") is False:
        access["O_DIRECT"] = "no"
    if is_writing:
        access["sync"] = str(details.get("sync", "end"))
        access["fill"] = str(details.get("fill", "overwrite"))
    return access


def recorded_of(cell: Cell, context: RecordContext, details: Mapping[str, Any]) -> dict[str, str]:
    """Return the recorded facts of a value that matter to a comparison, by title."""
    known = {}
    by_name = msgspec.to_builtins(context, order="sorted")
    for part, values in (("context", by_name), ("details", details)):
        for key, value in values.items():
            name = f"{part}.{key}"
            if not is_listed(name):
                continue
            for place, text in flat(value, name):
                if matters(place, cell.subsystem, cell.instrument):
                    known[fact(place)["title"]] = text
    return known


def deviations(own: Mapping[str, str], program: str, other: Mapping[str, str]) -> list[str]:
    """Return the settings in which a program differs from peakmark's kernel, as texts.

    A text reads ``fill overwrite, not new``.

    Args:
        own: settings of peakmark's kernel.
        program: name of the other program.
        other: settings of the other program.
    """
    used = {**other, **ALWAYS.get(program, {})}
    found = []
    for title in WRITTEN:
        wanted = own.get(title, "auto")
        if title in used and wanted not in ("auto", used[title]):
            found.append(f"{title} {used[title]}, not {wanted}")
    return found


# -- reasons for slow nodes


def add_reasons(
    fleet: pd.DataFrame,
    rows: pd.DataFrame,
    nodes: pd.DataFrame,
    results: Results,
) -> pd.DataFrame:
    """Add the column ``reasons``: facts that the slow nodes of a class share. They prove no cause."""
    classes = nodes.set_index("node")["class"]
    texts: dict[Any, str] = {}
    # Reasons belong to a node and subsystem. A line with a table is about pairs of nodes.
    is_node = fleet["kind"].eq("node") & fleet["table"].eq("")
    for subsystem, of_subsystem in fleet[is_node].groupby("subsystem"):
        facts = facts_of_nodes(rows[rows["subsystem"].eq(subsystem)], results)
        for name, of_class in of_subsystem.groupby(of_subsystem["name"].map(classes)):
            members = facts[facts["node"].map(classes).eq(name)]
            shared = [*differing(members, of_class["name"].tolist())][:SHOWN]
            sentences = [each.full_sentence for each in shared]
            texts |= dict.fromkeys(of_class.index, json.dumps(sentences, ensure_ascii=False))
    reasons = pd.Series(texts, index=fleet.index, dtype="object").fillna("")
    return fleet.assign(reasons=reasons)


def facts_of_nodes(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the facts of nodes that matter to their rows: columns ``node``, ``title`` and ``text``.

    Args:
        rows: rows of one subsystem.
        results: records and facts of the campaign.
    """
    own_rows = rows[rows["is_own"] & rows["n"].gt(0)]
    lines = []
    # One row is enough: all rows of a node have the same hosts, and so the same facts.
    for row in schema.lines(own_rows.drop_duplicates("node")):
        known = facts_of(json.loads(row.hosts), row.subsystem, row.instrument, results)
        known |= json.loads(row.recorded)
        lines += [(row.node, title, text) for title, text in known.items()]
    return pd.DataFrame(lines, columns=["node", "title", "text"])


def facts_of(
    hosts: Sequence[str], subsystem: str, instrument: str, results: Results
) -> dict[str, str]:
    """Return the facts of hosts that matter to rows of a program, by title.

    If the hosts differ in a fact, the text lists all values: ``A or B``.
    """
    known: dict[str, dict[str, None]] = {}
    for host in hosts:
        for name, text in flat(results.facts.get(host)):
            if matters(name, subsystem, instrument):
                known.setdefault(fact(name)["title"], {})[text] = None
    return {title: " or ".join(sorted(texts)) for title, texts in known.items()}


def differing(facts: pd.DataFrame, slow: Sequence[str]) -> Iterator[Message]:
    """Yield a message on each fact that all slow nodes of a class share and no other node has.

    Args:
        facts: facts of the nodes of the class, as ``facts_of_nodes`` returns them.
        slow: names of the slow nodes.
    """
    healthy = facts.loc[~facts["node"].isin(slow), "node"].nunique()
    for title, of_title in facts.groupby("title", sort=False):
        is_slow = of_title["node"].isin(slow)
        own = of_title.loc[is_slow, "text"]
        others = of_title.loc[~is_slow, "text"]
        is_shared = len(own) == len(slow) and own.nunique() == 1
        if not is_shared or others.isin(own).any():
            continue
        usual = others.value_counts()
        usual[""] = healthy - len(others)
        # A fact that differs on every node is an identifier (a serial number), not a cause.
        if 2 * usual.max() <= healthy:
            continue
        yield message(
            "differs",
            what=str(title),
            value=own.iloc[0],
            usual=str(usual.idxmax()) or "unknown",
            slow=len(slow),
            others=healthy,
        )
