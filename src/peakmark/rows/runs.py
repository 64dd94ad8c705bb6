"""Read the records of a campaign into the frame ``runs``: one line for each measured value, in SI units.

A planned value that is missing has a line too, with the reason and without a value. ``read_runs`` lists
the steps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas as pd

from peakmark.catalogue import (
    KERNELS,
    MATRIX,
    NUMA,
    ON_ONE_NODE,
    SHAPES,
    UNITS,
    count_of_nodes,
    metrics,
)
from peakmark.cell import Cell
from peakmark.rows import schema
from peakmark.rows.placements import READINGS, SAME_CORE, add_placements
from peakmark.storage import activity
from peakmark.storage.activity import Noise
from peakmark.storage.record_types import NetworkUsed, RecordContext
from peakmark.storage.results import Results, StoredRecord
from peakmark.tools import common
from peakmark.tools.base import Measurement
from peakmark.tools.tables import subsystem_tables

ECHO = "LAT-ICMP"
"""Workload of ping, which tables show in the rows of TCP and UDP latencies."""
WAITED = 0.03
"""Share of the time for which a computing thread may wait for its CPU (docs/method.md)."""
CLOCK_ERROR = 0.015
"""Largest relative difference, as a share, between correct readings of a clock: during the work, and before or after it."""
ROW = ["point", "instrument"]
"""Columns that identify a row."""
SUMMED = ("throughput", "iops", "metadata")
"""Metrics whose values can be added."""
JOB = [
    *("first_node", "instrument", "workload", "variant", "block_bytes", "concurrency", "metric"),
    *("repetition", "job_id"),
]
"""Columns in which the values of the nodes of one job are equal."""
COPIED = [
    *(*READINGS, "cpu_share", "probe_before", "probe_after", "store", "isa", "huge_pages"),
    *("flush_seconds", "work", "device_bytes", "filesystem"),
    *("loss", "lost", "overrun", "sent", "round_trips", "residual"),
    *("p50", "p99", "p999", "histogram", "joules", "watts", "printed_in", "printed_sd"),
]
"""Columns with a recorded fact of the same name."""

Line = dict[str, Any]
"""Columns of one line of ``runs``, by name."""
Known = Mapping[str, Any]
"""Details of one value that are known, by name."""
OF_CONTEXT = ("clock_hz_before", "clock_hz_after", *READINGS)
"""Details that peakmark measures for a reference: the record's context has them, not the value."""


def read_runs(results: Results) -> pd.DataFrame:
    """Return the frame ``runs``: all values of a campaign, and the planned values that are missing.

    ``rows.build_rows`` fills the columns ``above_limit`` and ``kept`` later.
    """
    lines = chain(lines_with_value(results), lines_without_value(results))
    return (
        frame_of(lines)
        # Words such as ``cores`` and automatic areas: before the points, whose names contain both.
        .pipe(replace_words_by_threads)
        .pipe(replace_chosen_areas)
        # Nodes that used a shared disk at one moment have the row of their sum.
        .pipe(add_sums_of_nodes)
        .pipe(add_point)
        # A gap is a missing cell; a shape is a workload that measures a matrix or a curve.
        .pipe(copy_gaps_to_rows_of_shapes)
        # An echo is a value of ping, which the tables of TCP and UDP latencies show.
        .pipe(copy_echoes_to_points)
        # The placement of a virtual machine's CPUs, and what others took from a run in it.
        .pipe(add_placements, results.facts)
        # The clock of each run, during its work or before and after it.
        .pipe(add_clock)
    )


def frame_of(lines: Iterator[Line]) -> pd.DataFrame:
    """Return lines as a frame, made from ``schema.PART`` lines at a time: dicts take ten times a frame's memory."""
    parts = []
    while part := list(islice(lines, schema.PART)):
        parts.append(schema.typed("runs", pd.DataFrame(part)))
    return pd.concat(parts or [schema.typed("runs", pd.DataFrame())], ignore_index=True)


# -- lines


def lines_with_value(results: Results) -> Iterator[Line]:
    """Yield a line for each value of each execution, disturbed executions included."""
    for record in results.records:
        # Attempt 0 is the execution that counts. The others were disturbed (``left_out``).
        for attempt, execution in enumerate(record.attempts):
            for index, measurement in enumerate(execution.measurements):
                line = line_of(results, record.cell, measurement, execution.context)
                warnings = [*record.data.warnings, *measurement.details.get("notes", ())]
                line |= {
                    "cell": record.cell.id,
                    "record": record.path,
                    "attempt": attempt,
                    "measurement": index,
                    "status": "ok",
                    "value": measurement.value,
                    "disturbed": " ".join(execution.left_out),
                    "program_warnings": json.dumps(warnings, ensure_ascii=False),
                }
                yield line


def lines_without_value(results: Results) -> Iterator[Line]:
    """Yield a line for each planned value of peakmark's kernel that is missing.

    Workloads that need instructions, NUMA nodes or matrix units of a GPU that the machine lacks
    have no line. The same holds for variants between GPUs, and between CPUs of one node.
    """
    impossible = set()
    for refused in results.refused:
        lacks_unit = refused.cell.workload in (*UNITS, *NUMA, *MATRIX)
        if lacks_unit or refused.cell.variant in ("peer", *ON_ONE_NODE):
            impossible.add(refused.cell.row)
    for cell, status, record in cells_without_values(results):
        is_kernel = cell.instrument in KERNELS.values()
        if not is_kernel or cell.row in impossible:
            continue
        for metric, unit in metrics(cell.subsystem, cell.workload).items():
            # 0: no node has said yet how many threads the word means.
            threads = 0 if cell.word else cell.concurrency
            no_value = Measurement(
                cell.workload, cell.variant, cell.block, threads, metric, math.nan, unit
            )
            line = identity(cell, no_value)
            if not line["table"]:
                continue  # no table shows this metric
            line |= {"cell": cell.id, "attempt": 0, "status": status}
            line |= {"resolution": 0.0, "held_up_cores": 0}
            if record:
                line["record"] = record.path
                line["reason"] = record.data.reason
                line["host"] = record.data.context.host
                line["wrong_core"] = record.data.context.wrong_core
            yield line


def cells_without_values(results: Results) -> Iterator[tuple[Cell, str, StoredRecord | None]]:
    """Yield (cell, status, record) for each cell without values and for each failed attempt.

    A missing cell has no record. A cell with a failed attempt may have values from a later attempt.
    """
    for cell in results.missing:
        yield cell, "missing", None
    for record in results.refused:
        yield record.cell, "unavailable", record
    for record in results.attempts:
        yield record.cell, "failed", record


def line_of(results: Results, cell: Cell, measurement: Measurement, context: RecordContext) -> Line:
    """Return the columns of one value that its record determines.

    Args:
        results: plan and host facts of the campaign.
        cell: cell of the value.
        measurement: the value, as in the record.
        context: when, where and how the value was measured.
    """
    # Details of a kernel replace what the context says.
    known = {name: getattr(context, name) for name in OF_CONTEXT}
    for name, value in measurement.details.items():
        if value is not None:
            known[name] = value
    copied = {name: known.get(name) for name in COPIED}
    return {
        **identity(cell, measurement),
        **execution(cell.instrument, context, known),
        "clock_work_hz": known.get("clock_hz_loaded"),
        "clock_before_hz": known["clock_hz_before"],
        "clock_after_hz": known["clock_hz_after"],
        **places(context),
        **other_load(context.noise, ""),
        **other_load(context.server_noise, "server_"),
        **disturbances(results, cell, measurement.concurrency, known, context),
        **subsystem_columns(known),
        **network_columns(context.network),
        "io_limits": json_text(context.io_limits),
        "longest": known.get("max"),
        "points": json_text(known.get("points")),
        "order": json_text(known.get("order")),
        **copied,
    }


def identity(cell: Cell, measurement: Measurement) -> Line:
    """Return the columns that say what was measured: the point of a value, and the program.

    The columns ``measured_*`` keep the recorded values. Their counterparts without the prefix change
    later: ``replace_words_by_threads`` and ``replace_chosen_areas`` make them equal on all hosts.
    """
    workload, block = measurement.workload, measurement.block
    concurrency, metric = measurement.concurrency, measurement.metric
    return {
        "table": table_of(cell.subsystem, cell.instrument, workload, block, metric),
        "subsystem": cell.subsystem,
        "node": cell.place,
        "instrument": cell.instrument,
        "workload": workload,
        "variant": measurement.variant,
        "block_bytes": block,
        "concurrency": concurrency,
        "concurrency_word": cell.word,
        "is_automatic": cell.automatic,
        "measured_workload": workload,
        "measured_block_bytes": block,
        "measured_concurrency": concurrency,
        "repetition": cell.repetition,
        "first_node": cell.options.get("first") or "",  # of nodes measured at one moment
        "metric": metric,
        "unit": measurement.unit,
        "chosen_isa": cell.options.get("isa"),
    }


@cache
def table_of(subsystem: str, instrument: str, workload: str, block: int | None, metric: str) -> str:
    """Return the name of the table that shows a value; empty if no table does."""
    for table in subsystem_tables(subsystem):
        instruments = [program.instrument for program in table.series]
        if table.metric == metric and instrument in instruments and table.takes(workload, block):
            return table.name
    return ""


def held_up_cores(known: Known, cores: int, threads: int) -> int:
    """Return on how many cores another program held up the threads.

    It is 0 if the threads may have held each other up: they waited for their CPUs, or they share a core.
    They share one by request, or because the host of a virtual machine placed them there.
    """
    # A share or time that is not known counts as harmless: no waiting, and 1 s between two cores.
    lost_time = 1 - known.get("cpu_share", 1.0)
    times = [known[name] for name in READINGS if known.get(name)]
    if cores < threads or lost_time > WAITED or min(times, default=1.0) < SAME_CORE:
        return 0
    return int(known.get("held_up") or 0)


# -- columns of one line


def disturbances(
    results: Results, cell: Cell, threads: int, known: Known, context: RecordContext
) -> Line:
    """Return the columns on disturbances; ``add_placements`` adds the causes that it infers."""
    cpu = results.facts_for(cell.place, context.host).get("cpu") or {}
    spare = activity.spare_cpus(cell.subsystem, threads, cpu.get("threads"))
    # ``context.activity`` is the activity on the node, and on the server's node.
    causes = activity.find_disturbances(
        cell.subsystem, *context.activity, known, is_crowded=context.is_crowded, spare=spare
    )
    # Without a recorded placement, each thread is assumed to have its own core.
    cores = context.placed.cores if context.placed else threads
    return {
        "causes": " ".join(causes),
        "held_up_cores": held_up_cores(known, cores, threads),
    }


def execution(instrument: str, context: RecordContext, known: Known) -> Line:
    """Return the columns that say when, where and by which program a value was measured."""
    return {
        "host": context.host,
        "server_host": context.server_host,
        "started": context.started,
        "time": datetime.fromisoformat(context.started).timestamp(),
        "cell_seconds": context.seconds,
        "run_seconds": known.get("seconds"),
        "job_id": context.job_id,
        "tool_version": context.tool.version if context.tool else None,
        "resolution": known.get("resolution", 0.0),
        "estimated": bool(known.get("estimate")),
        "derived": bool(known.get("derived")),
        "too_small": instrument == "hpl" and common.is_too_small(known),
    }


def places(context: RecordContext) -> Line:
    """Return the columns on the cores of a run, and on those that its job has."""
    line: Line = {"job_cpus": len(context.cpus)}
    if placed := context.placed:
        line |= {
            "placed_threads": placed.threads,
            # Only the first two: core-to-core times are those of this pair.
            "first_cpus": json_text(placed.cpus[:2]),
            "placed_cores": placed.cores,
            "placed_sockets": placed.sockets,
            "placed_numa_nodes": json_text(placed.numa_nodes),
            "placed_cache_bytes": placed.last_level_bytes,
        }
    if allowed := context.allowed:
        line |= {
            "allowed_cores": allowed.cores,
            "node_cores": allowed.node_cores,
            "cpu_quota": allowed.cpu_quota,
        }
    return line


def other_load(load: Noise | None, prefix: str) -> Line:
    """Return the columns on other activity during a run, in the units of ``Activity``.

    If no activity was recorded (``load`` is None), or if the cell was too short to measure it (``load.during``
    is None), the only column is ``noise_known``. It is False in the first case, and True in the second.

    Args:
        load: activity on the node, or on the server's node.
        prefix: prefix of the columns: empty, or ``server_``.
    """
    if load is None or load.during is None:
        return {f"{prefix}noise_known": load is not None}
    activity = load.during
    # Fields of ``Activity`` whose columns have the same name.
    same_names = ("steal", "others", "busy", "users", "hot")
    return {
        f"{prefix}noise_known": True,
        f"{prefix}noise_seconds": activity.seconds,
        f"{prefix}throttled_seconds": activity.throttled_s,
        f"{prefix}counters": json_text(activity.moved),
        **{f"{prefix}{name}": getattr(activity, name) for name in same_names},
    }


def network_columns(network: NetworkUsed | None) -> Line:
    """Return the columns on the interface of a network cell."""
    if network is None:
        return {}
    return {
        "loopback": network.loopback,
        "interface": network.interface,
        "link": json_text(network.link),
        "shaping": network.shaping,
    }


def subsystem_columns(known: Known) -> Line:
    """Return the columns on the working set, a ladder's cache and direct access to the disk."""
    direct = known.get("direct")
    # likwid-bench's records have the second name.
    pool_bytes = known.get("working_set_bytes") or known.get("working_set")
    return {
        "working_set_bytes": pool_bytes,
        "cache_bytes": known.get("cache"),
        "direct": {True: "yes", False: "no"}.get(direct) if isinstance(direct, bool) else None,
    }


def json_text(value: Any) -> str:
    """Return a list or mapping as JSON; an empty text if it is empty or missing."""
    return json.dumps(value, ensure_ascii=False) if value else ""


# -- sums over nodes that used a shared disk at one moment
#
# Each node has a record. A table shows the sum of the nodes of each job, as a row of the first node.


def add_sums_of_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the sums of nodes that were measured at one moment, and a line for each sum that is missing.

    The lines of the single nodes lose their table, so that no row shows them.
    """
    is_part = runs["first_node"].ne("")
    if not is_part.any():
        return runs
    parts = runs[is_part & runs["metric"].isin(SUMMED)]
    shown = [runs[~is_part], sums_of_jobs(parts), gaps_of_groups(parts)]
    return pd.concat([*shown, runs[is_part].assign(table="")], ignore_index=True)


def sums_of_jobs(parts: pd.DataFrame) -> pd.DataFrame:
    """Return a line with the sum of the nodes for each job and metric.

    Its other columns are those of the first node. A job in which a node has no value has no line.

    Args:
        parts: lines of nodes that were measured with others.
    """
    valid = parts[parts["value"].notna()]
    nodes = valid["variant"].map(count_of_nodes)
    of_job = valid.groupby(JOB, dropna=False)
    is_complete = of_job["node"].transform("nunique").eq(nodes)
    sums = valid.assign(
        value=of_job["value"].transform("sum"),
        causes=of_job["causes"].transform(words_of),
    )
    return sums[is_complete & sums["node"].eq(sums["first_node"])]


def words_of(texts: pd.Series) -> str:
    """Return the words of all texts, each once."""
    return " ".join(dict.fromkeys(" ".join(texts).split()))


def gaps_of_groups(parts: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each sum over nodes that is missing, under the name of the first node.

    If several nodes of a sum lack their value, the sum has one line for each different reason.
    """
    gaps = parts[parts["value"].isna()]
    cells = []
    for line in schema.lines(gaps):
        # The ID that the cell would have on the first node.
        cells.append(line.cell.replace(f"/{line.node}/", f"/{line.first_node}/"))
    moved = gaps.assign(node=gaps["first_node"], cell=cells)
    return moved.drop_duplicates(["cell", "metric", "status", "reason"])


# -- points


def replace_words_by_threads(runs: pd.DataFrame) -> pd.DataFrame:
    """Set ``concurrency`` to the number of threads that a word such as ``cores`` meant.

    If the hosts of a node differ in this number, the largest number counts.
    """
    key = [runs["node"], runs["concurrency_word"]]
    threads = runs["placed_threads"].groupby(key).transform("max").astype("Int64")
    is_known = runs["concurrency_word"].ne("") & threads.notna()
    return runs.assign(concurrency=runs["concurrency"].mask(is_known, threads))


def replace_chosen_areas(runs: pd.DataFrame) -> pd.DataFrame:
    """Set ``block_bytes`` of LAT to the largest area that hosts chose for a node and concurrency.

    Areas from the configuration stay. Hosts with unequal caches choose unequal areas, and share a
    row all the same.
    """
    automatic = runs[runs["is_automatic"]]
    # The concurrency as the configuration has it: a word such as ``cores``, or else the number as text.
    threads = automatic["concurrency_word"].mask(
        automatic["concurrency_word"].eq(""), automatic["concurrency"].astype("str")
    )
    areas = automatic["block_bytes"].groupby([automatic["node"], threads]).transform("max")
    blocks = runs["block_bytes"].copy()
    # A group of which no node has chosen yet has no area.
    blocks[areas.index] = areas.astype("Int64").array
    return runs.assign(block_bytes=blocks)


def add_point(runs: pd.DataFrame) -> pd.DataFrame:
    """Add ``point``, the name that all repetitions and programs of a table's line have in common."""
    point = runs[schema.POINT[0]].astype("str")
    for name in schema.POINT[1:]:
        point = point.str.cat(runs[name].astype("string").fillna(""), sep="/")
    return runs.assign(point=point.astype("str"))


def copy_gaps_to_rows_of_shapes(runs: pd.DataFrame) -> pd.DataFrame:
    """Copy the line of each missing repetition of a matrix or curve to all rows of its cell.

    One cell of a matrix or curve fills several rows. The measured repetitions of the cell show
    which rows.
    """
    is_shape = runs["workload"].isin([*SHAPES]) & runs["table"].ne("")
    if not is_shape.any():
        return runs
    has_value = runs["value"].notna()
    columns = ["point", *schema.POINT]
    # The last part of a cell's ID is its repetition: without it, the IDs of all repetitions are equal.
    runs = runs.assign(row_of_cell=runs["cell"].str.rsplit("/", n=1).str[0])
    # The rows that repetitions with values filled.
    filled = runs.loc[is_shape & has_value, [*columns, "row_of_cell"]].drop_duplicates()
    is_gap = is_shape & ~has_value & runs["row_of_cell"].isin(filled["row_of_cell"])
    # Replace the point of each gap by the points of these rows.
    copies = runs[is_gap].drop(columns=columns).merge(filled, on="row_of_cell")
    every = pd.concat([runs[~is_gap], copies[list(runs)]], ignore_index=True)
    return every.drop(columns="row_of_cell")


def copy_echoes_to_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Copy ping's lines to each point of TCP and UDP latencies, because ping measures once for the node.

    A line that fits no point is kept without a table.
    """
    is_echo = runs["workload"].eq(ECHO) & runs["table"].ne("")
    if not is_echo.any():
        return runs
    others, echoes = runs[~is_echo], runs[is_echo]
    columns = ["point", *schema.POINT]
    is_shown = others["table"].eq("network_latency")
    points = others.loc[is_shown, columns].drop_duplicates()
    # A disturbed echo was repeated: only the repetition is shown.
    usable = echoes[echoes["disturbed"].eq("")]
    copies = points.merge(usable, on=["table", "node"], suffixes=("", "_of_echo"))
    unused = echoes[~echoes["record"].isin(copies["record"])].assign(table="")
    return pd.concat([others, copies[list(runs)], unused], ignore_index=True)


def add_clock(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the clock of each run: during the work, or else the higher of the clocks before and after.

    The higher one counts, because an interruption makes a clock look lower, and nothing makes it
    look higher.

    A clock during the work is misread if it is below both other clocks, although the rate did not
    fall as much: rate / clock (the work per cycle) is higher than in all runs of the row whose clocks
    agree, by more than half of the fall. Then the higher of the clocks before and after counts.
    """
    # A clock of 0 was not measured.
    ends = runs[["clock_before_hz", "clock_after_hz"]].replace(0, np.nan)
    work = runs["clock_work_hz"].replace(0, np.nan)
    fall = ends.min(axis=1) / work - 1
    is_below = fall > CLOCK_ERROR
    per_cycle = runs["value"] / work
    # The most work per cycle in a run of the row whose clocks agree.
    highest = per_cycle.mask(is_below).groupby([runs["point"], runs["instrument"]]).transform("max")
    is_misread = is_below & (per_cycle > (1 + fall / 2) * highest)
    idle = ends.max(axis=1)
    return runs.assign(clock_idle_hz=idle, clock_hz=work.mask(is_misread).fillna(idle))
