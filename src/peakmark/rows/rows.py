"""Compute the frame ``rows`` from ``runs``: one line for each point and instrument.

Peakmark's kernel has a line at every point, with ``n`` 0 if it has no values. ``build_rows`` lists the
steps. ``RowRuns`` is a row with its runs, as the checks read it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import pandas as pd

from peakmark import statistics
from peakmark.catalogue import SHAPES, SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.comparability import differences, equipment_of, fact, flat, is_listed, matters
from peakmark.formatting import natural
from peakmark.messages import Message, Trust, message, words
from peakmark.rows import placements, schema
from peakmark.rows.point_limits import find_limits, kernel_of
from peakmark.rows.runs import ROW
from peakmark.storage.record_types import RecordContext
from peakmark.storage.results import Results
from peakmark.tools.common import percentile_times, read_histogram
from peakmark.tools.tables import BY_NAME, TABLES

Messages = Iterator[Message]
Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""

MOST = 1.05
"""Largest share of a physical limit that measurement error explains; a higher value is wrong."""
NOT_COMPARED = ("ping",)
"""Programs whose values a row shows without comparing them. The OS kernel answers ping's echo requests,
while a process answers the other programs.
"""
STATUS_ORDER = {"ok": 0, "missing": 1, "failed": 2, "unavailable": 3}
"""Status of a run -> rank; the reason with the highest rank is shown. ``unavailable`` ranks highest,
because it explains more than a failed attempt: the machine cannot run the cell.
"""
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
"""Column of a percentile -> its share of the operations."""
SUMMARY = {
    "n": "n",
    "mean": "mean",
    "median": "median",
    "sd": "stdev",
    "min": "minimum",
    "max": "maximum",
    "low": "low",
    "high": "high",
    "level": "level",
}
"""Column of a row -> attribute of ``statistics.Summary``."""
CONFIRMED = 0.04
"""Undisturbed runs confirm a row's value if their median differs from it by less than this share.

The share is less than the spread of a quiet machine (docs/method.md).
"""
HEADINGS: dict[str, str] = {}
"""Instrument -> heading of its column in tables."""
for _table in TABLES:
    HEADINGS.update({program.instrument: program.heading for program in _table.series})


def build_rows(
    runs: pd.DataFrame, results: Results, centre: str = "median"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``runs`` with ``share``, ``above_limit`` and ``kept``, and ``rows`` without warnings.

    Args:
        runs: frame from ``runs.read_runs``.
        results: records and facts of the campaign.
        centre: what tables show of the repetitions: ``median`` or ``mean``.
    """
    unequal = find_unequal_nodes(runs, results)
    limits = find_limits(runs, unequal, results)
    runs = mark_kept(runs, limits)
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    rows = (
        list_rows(runs)
        .join(summarise(kept), on=ROW)
        .join(count_runs(runs), on=ROW)
        .join(limits, on="point")
        .join(find_percentiles(kept), on=ROW)
        .join(find_details(kept), on=ROW)
        .join(find_hosts(kept), on="point")
        .join(unequal, on=ROW)
        .pipe(add_settings, kept, results)
        .pipe(fill_holes)
        .pipe(add_shares, kept, centre)
        .pipe(add_comparable, kept)
        .pipe(add_ratios)
        .pipe(in_order)
    )
    return runs, rows


# -- runs that are kept


def find_unequal_nodes(runs: pd.DataFrame, results: Results) -> pd.Series:
    """Return for each row a text of the facts in which its nodes differ; empty if they are equal.

    The nodes of a reference are compared with each other and with the nodes of peakmark's kernel. A
    client is not compared with its server: these may differ.
    """
    of_rows = runs[runs["is_usual"]].groupby(ROW)
    clients: dict[Any, set[str]] = of_rows["host"].agg(set).to_dict()
    servers: dict[Any, set[str]] = of_rows["server_host"].agg(set).to_dict()
    lines = {}
    for row in clients:
        point, _ = row
        table = point.partition("/")[0]  # the name of a point begins with its table
        own = point, kernel_of(table)
        differ = [
            *differing(clients[row] | clients.get(own, set()), results),
            *differing(servers[row] | servers.get(own, set()), results),
        ]
        lines[row] = {"unequal_nodes": "; ".join(dict.fromkeys(differ))}
    return by_row(lines, ["unequal_nodes"])["unequal_nodes"]


def differing(hosts: set[str], results: Results) -> list[str]:
    """Return the facts in which hosts differ, as texts; empty for fewer than two hosts."""
    names = sorted(hosts - {""}, key=natural)
    if len(names) < 2:
        return []
    return differences({host: equipment_of(results.facts.get(host) or {}) for host in names})


def mark_kept(runs: pd.DataFrame, limits: pd.DataFrame) -> pd.DataFrame:
    """Add ``share`` (of limit or bound), ``above_limit``, and ``kept``: whether the run counts.

    Runs that are not usual (disturbed, or in another placement than most runs of the row) are not kept.
    Usual runs above the limit are not kept either, unless they are more than half of the row's usual
    runs: then the limit must be wrong.
    """
    share = shares_of_runs(runs, limits)
    is_usual = runs["is_usual"]
    is_above = is_usual & share.gt(MOST)
    # Number of usual runs of each row, and of those above the limit.
    row = [runs["point"], runs["instrument"]]
    above, usual = is_above.groupby(row).transform("sum"), is_usual.groupby(row).transform("sum")
    is_left_out = is_above & (above * 2 <= usual)
    return runs.assign(above_limit=is_left_out, kept=is_usual & ~is_left_out, share=share)


def shares_of_runs(runs: pd.DataFrame, limits: pd.DataFrame) -> pd.Series:
    """Return the share of the limit or bound that each run reaches at its own clock."""
    of_point = runs[["point"]].join(limits, on="point")
    limit = of_point["limit"].astype(float).fillna(of_point["bound"].astype(float))
    share = share_of(limit, runs["value"], runs["unit"])
    # Take the clock of the same kind as in the limit: during the work, or before and after it.
    is_loaded = of_point["limit_clock_loaded"].eq(True)
    known = runs["clock_hz"].where(runs["clock_work_hz"].gt(0))
    clock = known.where(is_loaded, runs["clock_idle_hz"])
    # A run without such a clock may have had the highest one of the point.
    clock = clock.fillna(clock.groupby(runs["point"]).transform("max"))
    # A limit at the observed clock holds at the clock of the point. A run with a lower clock has a lower limit.
    is_observed = of_point["limit_clock"].eq("observed")
    slower = (of_point["limit_clock_hz"].astype(float) / clock).where(is_observed)
    return share * slower.fillna(1.0)


def share_of(limit: pd.Series, value: pd.Series, unit: pd.Series) -> pd.Series:
    """Return the share of a limit that values reach: value over limit, or limit over value for times."""
    return (value / limit).mask(unit.eq("s"), limit / value).where(value > 0)


# -- parts of a row


def list_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each program with values at a point, and always one for peakmark's kernel."""
    shown = runs[runs["table"].ne("")]
    points = shown[["point", "subsystem", "unit", *schema.POINT]].drop_duplicates("point")
    own = points[["point"]].assign(instrument=points["table"].map(kernel_of))
    measured = shown.loc[shown["value"].notna(), ROW]
    rows = pd.concat([measured, own]).drop_duplicates().merge(points, on="point")
    is_own = rows["instrument"].eq(rows["table"].map(kernel_of))
    return rows.assign(program=rows["instrument"].map(HEADINGS), is_own=is_own)


def summarise(kept: pd.DataFrame) -> pd.DataFrame:
    """Return number, centre, spread and interval of the values of each row, in SI units."""
    lines = {}
    for row, values in kept.groupby(ROW)["value"]:
        summary = statistics.summarise(values.to_numpy())
        lines[row] = {column: getattr(summary, name) for column, name in SUMMARY.items()}
    rows = by_row(lines, [*SUMMARY])
    # A report may print an average with its deviation, but not the runs.
    printed = kept.groupby(ROW)["printed_sd"].first()
    return rows.assign(sd=rows["sd"].astype(float).fillna(printed))


def by_row(lines: dict[Any, dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Return lines as a frame whose index is the row (point and instrument), even if there are none."""
    index = pd.MultiIndex.from_tuples(lines, names=ROW)
    return pd.DataFrame(lines.values(), index=index, columns=columns)


def count_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each row the number of values planned, missing, measured again and above the limit.

    Add the ``reason`` why a value is missing. Of several reasons, those with the highest rank in
    ``STATUS_ORDER`` count, and of these the last.
    """
    counted = runs[ROW].assign(
        # A planned value has one line with attempt 0: the valid value, or the gap. Disturbed and failed
        # attempts have additional lines.
        planned=runs["attempt"].eq(0) & runs["status"].ne("failed"),
        missing=runs["status"].isin(["missing", "unavailable"]),
        above_limit=runs["above_limit"],
    )
    # Records with a disturbed attempt, which was measured again.
    is_again = runs["disturbed"].ne("")
    again = runs[is_again].groupby(ROW)["record"].nunique().rename("measured_again")
    with_reason = runs[runs["reason"].ne("")]
    order = with_reason["status"].map(STATUS_ORDER)
    by_rank = with_reason.assign(order=order).sort_values("order", kind="stable")
    reasons = by_rank.groupby(ROW)["reason"].last()
    return counted.groupby(ROW).sum().join(again).join(reasons)


def find_percentiles(kept: pd.DataFrame) -> pd.DataFrame:
    """Return percentiles of the time of an operation for each row."""
    is_time = kept["table"].isin(["disk_latency", "network_latency"])
    lines: dict[Any, dict[str, Any]] = {}
    for row, runs in kept[is_time].groupby(ROW)[[*PERCENTILES, "longest", "histogram"]]:
        lines[row] = {name: percentile(runs, name) for name in PERCENTILES}
    return by_row(lines, [*PERCENTILES]).astype(float)


def percentile(runs: pd.DataFrame, name: str) -> float | None:
    """Return a percentile of one row.

    It is computed from the merged histograms of the runs. Without histograms it is the median of the
    runs' percentiles. If a run's percentile equals its longest time, there were too few operations: the
    result is None.
    """
    values = runs[name]
    is_known = values.gt(0) & values.ne(runs["longest"])
    if not is_known.all():
        return None
    merged = []
    if runs["histogram"].ne("").all():
        histograms = [read_histogram(text) for text in runs["histogram"]]
        together = sum(histograms[1:], start=histograms[0])
        merged = percentile_times(together, [PERCENTILES[name]])
    return merged[0] if merged else float(values.median())


def find_details(kept: pd.DataFrame) -> pd.DataFrame:
    """Return resolution, energy, instruction set, report, loopback, hosts and band of each row.

    Args:
        kept: runs that are kept, in the order of the repetitions.
    """
    energy = kept[["joules", "watts"]]
    return (
        kept.assign(**energy.where(energy > 0), band=placements.bands_that_matter(kept))
        .groupby(ROW)
        .agg(
            resolution=("resolution", "max"),
            joules=("joules", "median"),
            watts=("watts", "median"),
            isa=("isa", "first"),
            printed_in=("printed_in", "first"),
            loopback=("loopback", "any"),
            hosts=("host", names_of),
            band=("band", placements.band_of),
        )
    )


def names_of(hosts: pd.Series) -> str:
    """Return the names of hosts as JSON, without duplicates, node2 before node10."""
    return json.dumps(sorted(set(hosts) - {""}, key=natural), ensure_ascii=False)


def find_hosts(kept: pd.DataFrame) -> pd.DataFrame:
    """Return the hosts of the clients and of the servers of each point, pair by pair.

    Pairs within one machine (loopback) are left out if other runs of the point crossed a network.
    """
    # A run without a server counts as a pair within its host.
    server = kept["server_host"].mask(kept["server_host"].eq(""), kept["host"])
    pairs = kept[["point", "host"]].assign(server=server).drop_duplicates()
    is_remote = pairs["host"].ne(pairs["server"])
    has_network = is_remote.groupby(pairs["point"]).transform("any")
    loopback = pairs[~is_remote & ~has_network]
    remote = pairs[is_remote].sort_values(["host", "server"])
    both = pd.concat([remote, loopback])
    return both.groupby("point").agg(clients=("host", "; ".join), servers=("server", "; ".join))


def add_settings(rows: pd.DataFrame, kept: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add ``settings`` and ``recorded`` from the row's first record: JSON objects of title -> text.

    *Settings* are what the configuration asks for; *recorded facts* are what the record states. The file
    ``data/comparability.csv`` lists them, and the rows for which they matter.
    """
    records = {record.path: record for record in results.records}
    lines: dict[Any, dict[str, str]] = {}
    first = kept.drop_duplicates(ROW)[[*ROW, "record", "measurement", "workload"]]
    for run in schema.lines(first):
        # A record may have several measurements; ``measurement`` is the number of the run's.
        record = records[run.record]
        details = record.data.measurements[run.measurement].details
        settings = settings_of(record.cell, run.workload, details)
        recorded = recorded_of(record.cell, record.data.context, details)
        lines[run.point, run.instrument] = {
            "settings": json.dumps(settings, ensure_ascii=False),
            "recorded": json.dumps(recorded, ensure_ascii=False),
        }
    return rows.join(by_row(lines, ["settings", "recorded"]), on=ROW)


def settings_of(cell: Cell, workload: str, details: Mapping[str, Any]) -> dict[str, str]:
    """Return title -> text of the settings with which a value was measured.

    These are the options that ``data/comparability.csv`` lists, and how memory or disk is accessed.
    """
    known = {}
    for name, text in flat({"options": cell.options}):
        # An option that the file lists for no subsystem matters to no comparison.
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


def fill_holes(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the counts of rows without runs to 0, and give every column its type.

    ``planned`` and ``missing`` are 0 for references: only values of peakmark's kernel are planned.
    """
    counts = ["n", "planned", "missing", "above_limit", "measured_again"]
    own = rows["is_own"]
    zeros = {name: rows[name].fillna(0).astype(int) for name in counts}
    zeros["planned"] = zeros["planned"].where(own, 0)
    zeros["missing"] = zeros["missing"].where(own, 0)
    # Later steps need these columns, which the file does not have.
    clocks = rows[["maximum_hz", "nominal_hz"]]
    typed = schema.typed("rows", rows.assign(**zeros))
    return typed.join(clocks.astype(float))


def add_shares(rows: pd.DataFrame, kept: pd.DataFrame, centre: str) -> pd.DataFrame:
    """Add ``value``, which tables show, and its shares ``efficiency`` and ``share``.

    ``efficiency`` is the share of the limit. ``share`` is the same or, without a limit, the share
    of the bound.

    HPL has no efficiency if its matrix was too small to reach its rate.
    """
    value, unit = rows[centre], rows["unit"]
    too_small = rows_with(rows, kept, kept["too_small"])
    return rows.assign(
        value=value,
        efficiency=share_of(rows["limit"], value, unit).mask(too_small),
        share=share_of(rows["limit"].fillna(rows["bound"]), value, unit),
    )


# -- references


def add_comparable(rows: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """Add ``is_comparable``, which marks references that may be compared with peakmark's kernel.

    Such references were measured on equal nodes, in the placement of peakmark's kernel. Estimates, and HPL
    with too small a matrix, are not comparable.
    """
    is_guess = rows_with(rows, kept, kept["estimated"] | kept["derived"] | kept["too_small"])
    is_measured = rows["n"].gt(0) & ~is_guess
    is_reference = ~rows["is_own"] & ~rows["instrument"].isin(NOT_COMPARED)
    is_comparable = is_reference & is_measured & rows["unequal_nodes"].eq("")
    own = rows["band"].where(rows["is_own"]).groupby(rows["point"]).transform("max")
    # The placement may matter to the reference alone.
    is_comparable &= schema.may_be_one(rows["band"], own) & (own.notna() | rows["band"].isna())
    return rows.assign(is_comparable=is_comparable)


def rows_with(rows: pd.DataFrame, kept: pd.DataFrame, mask: pd.Series) -> pd.Series:
    """Return a mask of ``rows``: those that have a run in ``kept`` for which ``mask`` is true."""
    found = pd.MultiIndex.from_frame(kept.loc[mask, ROW])
    return pd.Series(pd.MultiIndex.from_frame(rows[ROW]).isin(found), index=rows.index)


def add_ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the ratio of peakmark's value to a reference's.

    The ratio is always peakmark / reference. It is not inverted for latencies, where less is better.
    """
    own = rows["value"].where(rows["is_own"]).groupby(rows["point"]).transform("max")
    return rows.assign(ratio=(own / rows["value"]).where(~rows["is_own"]))


# -- order


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows in the order of tables: by table, node and point, peakmark's kernel first."""
    keys = [order_of(row) for row in schema.lines(rows)]
    places = sorted(range(len(keys)), key=keys.__getitem__)
    return rows.iloc[places].reset_index(drop=True)


def order_of(row: Any) -> tuple[Any, ...]:
    """Return the sort key of a row: position of its table, node, point in the table, position of its program."""
    table = BY_NAME[row.table]
    programs = [program.instrument for program in table.series]
    block = 0 if pd.isna(row.block_bytes) else int(row.block_bytes)
    place = table.order(row.workload, row.variant, int(row.concurrency), block)
    return TABLES.index(table), natural(row.node), place, programs.index(row.instrument)


# -- a row with its runs


@dataclass(frozen=True)
class NoiseOfHost:
    """Other activity on one host during the runs of a row.

    Attributes:
        where: the host, as part of a sentence; empty for the node itself.
        runs: a mapping for each run, with ``seconds``, ``steal``, ``others``, ``busy``, ``users``,
            ``throttled_seconds``, ``hot`` and ``counters``; ``seconds`` is None if the run was too
            short to measure other activity.
    """

    where: str
    runs: Sequence[Mapping[str, Any]]

    @property
    def long_runs(self) -> list[Mapping[str, Any]]:
        """Return the runs that were long enough to measure other activity."""
        return [run for run in self.runs if run["seconds"]]


@dataclass(frozen=True)
class RowRuns:
    """A row with its runs.

    Attributes:
        row: a line of ``rows``.
        runs: the row's kept lines of ``runs``, in the order of the repetitions; at least one.
        facts: facts of the machine from which the limit was computed.
    """

    row: Line
    runs: Sequence[Line]
    facts: Mapping[str, Any]

    def fact(self, part: str, name: str) -> Any:
        """Return a fact of the machine, None if it is not known."""
        return (self.facts.get(part) or {}).get(name)

    @cached_property
    def in_time(self) -> list[Line]:
        """Return the runs in order of time: a repetition that failed at first ran after later ones."""
        return sorted(self.runs, key=lambda run: run.time or 0.0)

    @cached_property
    def is_pinned(self) -> bool:
        """Return whether each thread is pinned to its own CPU."""
        return SUBSYSTEMS[self.row.subsystem].pinned

    def values_of(self, column: str) -> list[Any]:
        """Return the values of a column that are not missing, one for each run that has one."""
        values = [getattr(run, column) for run in self.runs]
        return [value for value in values if value is not None]

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column that are not empty, one for each run that has one."""
        texts = [getattr(run, column) for run in self.runs]
        return [text for text in texts if text]

    @cached_property
    def noises(self) -> list[NoiseOfHost]:
        """Return the activity of other programs, and throttling, during the row's runs.

        The first entry is for the node that measured: the client's, if there is a server. Each of the
        others is for a server's node.
        """
        here = [_noise(run, "") for run in self.in_time if run.noise_known]
        found = [NoiseOfHost("", here)]
        servers = [run for run in self.in_time if run.server_noise_known]
        for host in dict.fromkeys(run.server_host for run in servers):
            of_host = [_noise(run, "server_") for run in servers if run.server_host == host]
            found.append(NoiseOfHost(words("server", hosts=host), of_host))
        return found

    @cached_property
    def clean_runs(self) -> list[Line]:
        """Return the undisturbed runs in the order of time; empty if they do not confirm the row's value.

        They confirm the value if they are more than half of all runs and their median differs from the
        value by less than ``CONFIRMED``.
        """
        clean = [run for run in self.in_time if not run.causes]
        if 2 * len(clean) <= len(self.runs):
            return []
        median = statistics.median([run.value for run in clean])
        if abs(self.row.value - median) >= CONFIRMED * median:
            return []
        return clean

    @property
    def is_disturbed(self) -> bool:
        """Return whether a disturbance may have changed the value: the undisturbed runs do not confirm it."""
        return any(run.causes for run in self.runs) and not self.clean_runs

    def trust_of(self, code: str) -> Trust:
        """Return how a cause of disturbance lowers the trust.

        A cause that disturbed at least half of the runs calls for care. If there is no such cause,
        and the undisturbed runs do not confirm the row's value, every cause calls for care.
        """
        counts: Counter[str] = Counter()
        for run in self.runs:
            counts.update(run.causes.split())
        trusts = {cause: trust_of(count, len(self.runs)) for cause, count in counts.items()}
        if code not in trusts:
            return Trust.OK
        # No cause alone disturbed half of the runs, but together they leave the value in doubt.
        is_doubtful = Trust.CARE not in trusts.values() and not self.clean_runs
        return Trust.CARE if is_doubtful else trusts[code]

    def repeated(
        self,
        code: str,
        amounts: Sequence[float],
        least: float = 0.0,
        trust: Trust | None = None,
        where: str = "",
        **values: str,
    ) -> Messages:
        """Yield a message with the largest amount, and the number of runs with amounts above ``least``.

        Args:
            code: code of a message with the values ``share`` and ``often``.
            amounts: an amount for each run that recorded one.
            least: if no amount is above it, there is no message.
            trust: trust of the message; None computes it with ``trust_of``.
            where: host to name in the message, empty for the node itself.
            values: further fields of the message.
        """
        count = sum(amount > least for amount in amounts)
        if not count:
            return
        often = in_how_many(count, len(amounts), where)
        trust = trust or self.trust_of(code)
        yield message(code, trust, share=max(amounts), often=often, **values)


def trust_of(disturbed: int, n: int) -> Trust:
    """Return the trust in a value if a cause disturbed ``disturbed`` of ``n`` runs."""
    return Trust.CARE if 2 * disturbed >= n else Trust.OK


def in_how_many(count: int, n: int, where: str = "") -> str:
    """Return the host and ``in COUNT of N repetitions`` as part of a message; a single run has only the host."""
    return words("often", where=where, count=count, n=n) if n > 1 else where


def _noise(run: Line, prefix: str) -> dict[str, Any]:
    """Return the activity of other programs, and throttling, during a run on the node of the run.

    With the prefix ``server_``, return both for the node of the run's server.
    """
    names = ("seconds", "steal", "others", "busy", "users", "throttled_seconds", "hot", "counters")
    # Only the column of the seconds has another name.
    columns = {name: f"{prefix}{name}" for name in names} | {"seconds": f"{prefix}noise_seconds"}
    values = {name: getattr(run, column) for name, column in columns.items()}
    return values | {"counters": json.loads(values["counters"] or "{}")}
