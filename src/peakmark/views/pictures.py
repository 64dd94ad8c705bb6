"""The figures of each table, with their rows, runs and captions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from peakmark.catalogue import count_of_nodes
from peakmark.config.layouts import Drawing, Layout
from peakmark.messages import captions, message
from peakmark.rows import schema
from peakmark.rows.labels import Labels, labels_of, table_of, with_medians
from peakmark.rows.schema import CampaignFrames, is_pair, may_be_one, shows_link
from peakmark.tools.tables import BY_NAME, Table
from peakmark.views.table import Line, is_many, rows_of

FLEET = "fleet"
"""Figure on page one of a campaign of several nodes: how much the nodes differ."""
ROOFLINE = "roofline"
"""Figure on page one of a campaign of a single node."""
GPU_ROOFLINE = "gpu_roofline"
RATES = ("cpu", "gpu")
"""Tables whose rows are the flat roofs of rooflines."""
ROOFS = ("DP", "FP32")
"""Workloads of the CPU that are roofs of its roofline."""
BANDWIDTHS = ("memory_throughput", "memory_ladder_throughput")
"""Tables with the slopes of the CPU's roofline."""
TRIAD = "TRIAD"
"""Workload of memory that also computes: its rows are points of the CPU's roofline."""
GPU_ROOFS = ("FP64", "FP32", "TC-FP64", "TC-FP16", "TC-FP8")
"""Workloads of the GPU that are flat roofs of its roofline."""
KIND_OF_METRIC = {
    "core_to_core": "matrix",
    "numa_latency": "matrix",
    "numa_throughput": "matrix",
    "ladder_latency": "ladder",
    "ladder_throughput": "ladder",
    "loaded_latency": "loaded",
}
"""Metric -> kind of the figure of a table whose runs are matrices or curves."""
LEAST_POSITIONS = 3
"""Fewest positions on the horizontal axis of a usual figure of panels: two points are no curve."""
VALUES = {"measured": "value", "efficiency": "efficiency", "deviation": "sd"}
"""Kind of value in a figure of a layout -> column in ``rows``."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of a table, with all that its drawing needs.

    Attributes:
        frames: the campaign, see ``layout_tables.for_print``.
        layout: layout of the campaign.
        usual: table of the rows.
        name: name of the figure's files, without ending.
        kind: how the figure is drawn, see ``figures.PLOTS``.
        rows: lines of ``frames.rows`` that the figure shows; a figure without rows is not drawn.
        drawing: the figure's entry in the layout; None for a usual figure.
        on_paper: whether the PDF has the figure; the HTML report has all figures.
    """

    frames: CampaignFrames
    layout: Layout | None
    usual: Table
    name: str
    kind: str
    rows: pd.DataFrame
    drawing: Drawing | None = None
    on_paper: bool = True

    @cached_property
    def table(self) -> Table:
        """Return the table with the printed unit and names of programs."""
        return table_of(self.layout, self.usual, self.rows)

    @cached_property
    def own(self) -> pd.DataFrame:
        """Return the rows of peakmark's kernel."""
        return self.rows[self.rows["is_own"]]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Return the runs of the rows, including those that do not count."""
        runs = self.frames.runs[self.frames.runs["value"].notna()]
        return runs.merge(self.rows[["point", "instrument"]], on=["point", "instrument"])

    @cached_property
    def marks(self) -> pd.DataFrame:
        """Return the runs to draw: runs that count (``kind`` is run), and disturbed runs (``kind`` is left out).

        Runs that do not count for another reason, such as a value above the limit, are not drawn.
        """
        runs = self.runs[self.runs["kept"] | self.runs["disturbed"].ne("")]
        kind = runs["kept"].map({True: "run", False: "left out"})
        return runs[["point", "instrument", "value", "share", "repetition"]].assign(kind=kind)

    @cached_property
    def own_runs(self) -> Mapping[str, Sequence[Line]]:
        """Return point -> the runs of peakmark's kernel that count, in their order."""
        instruments = self.own["instrument"].unique()
        is_shown = self.runs["kept"] & self.runs["instrument"].isin(instruments)
        found: dict[str, list[Line]] = defaultdict(list)
        for run in schema.lines(self.runs[is_shown]):
            found[run.point].append(run)
        return found

    def labels(self, row: Line) -> Labels:
        """Return the names for a row. A roofline also has rows of other tables than its own."""
        table = self.table
        if row.table != table.name:
            table = BY_NAME[row.table]
        return labels_of(self.layout, table)


def is_cached(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of memory rows that measure a cache."""
    return rows["variant"].eq("block")


def is_over_blocks(rows: pd.DataFrame) -> bool:
    """Return whether a figure of the rows is over block sizes; otherwise it is over concurrencies.

    Block sizes and concurrencies are counted for each workload, and the larger sum decides. If the
    sums are equal, block sizes win. With a single block size, concurrencies always win.
    """
    blocks = rows[["workload", "block_bytes"]].drop_duplicates()
    counts = rows[["workload", "concurrency"]].drop_duplicates()
    return blocks["block_bytes"].nunique(dropna=False) > 1 and len(blocks) >= len(counts)


def is_swept(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of workloads with enough block sizes, or numbers of threads, to draw a line."""
    of_workload = rows.groupby(["workload", "variant"])[["block_bytes", "concurrency"]]
    return of_workload.transform("nunique").ge(LEAST_POSITIONS).any(axis=1)


def pictures_of(frames: CampaignFrames, table: Table, layout: Layout | None) -> list[Picture]:
    """Return the figures of a table. Some may have no rows.

    If the layout defines figures of the table, they replace the usual lines and bars in the PDF.
    """
    rows = rows_of(frames, table)
    measured = rows[rows["n"].gt(0)]
    found = []
    for drawing in layout.drawings if layout else ():
        if drawing.table.name == table.name:
            shown = measured[fits(drawing, measured)]
            found.append(Picture(frames, layout, table, drawing.name, drawing.kind, shown, drawing))
    has_own = bool(found)
    for name, kind, shown in usual_figures(frames, table, measured):
        if has_own and kind == "panels":
            continue
        on_paper = not has_own and is_on_paper(table, kind, shown)
        found.append(Picture(frames, layout, table, name, kind, shown, on_paper=on_paper))
    return found


def is_on_paper(table: Table, kind: str, rows: pd.DataFrame) -> bool:
    """Return whether the PDF has a usual figure.

    Of a table's rows, the PDF has the lines over threads or blocks if there are enough points for
    lines, and if a row has no limit. Otherwise it has the strip, which can show all rows as shares
    of their limits. A strip of times is never printed, because it shows no more than their table.
    Figures of other kinds are always printed.
    """
    has_lines = bool(is_swept(rows).any()) and not has_limits(rows)
    if kind == "strip":
        return not has_lines and not table.lower_is_better
    return has_lines or kind != "panels"


def usual_figures(
    frames: CampaignFrames, table: Table, rows: pd.DataFrame
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield name, kind and rows of each figure of measured rows in a report without a layout.

    A figure is yielded without rows if there is nothing to show; it is then not drawn.
    """
    # The latency of a single pair of CPUs is no matrix.
    if table.metric == "core_to_core" and not holds_matrix(frames, rows):
        rows = rows.head(0)
    # A sum over nodes that were measured at one moment is the value of no node. Rows of single nodes have 0 here.
    if is_many(frames):
        rows = rows[rows["variant"].map(count_of_nodes).eq(0)]
    # Metrics of matrices or curves have one figure. Other tables have, for each of their parts, dots that show
    # how far many nodes are from their median, or for few nodes a strip of all rows and lines over threads or blocks.
    if table.metric in KIND_OF_METRIC and not is_many(frames):
        yield table.name, KIND_OF_METRIC[table.metric], rows
    else:
        for name, shown in parts_of(table, rows):
            # Strips and distances of nodes are drawn from rows of peakmark's kernel: references alone have none.
            drawn = shown if shown["is_own"].any() else shown.head(0)
            if is_many(frames):
                yield name, "nodes", compared_nodes(drawn)
            else:
                yield f"{name}_strip", "strip", drawn
                yield name, "panels", shown if is_swept(shown).any() else shown.head(0)
    if table.subsystem in ("network", "mpi"):
        yield f"{table.name}_links", "links", rows[shows_link(rows)]
    if table.name == "cpu":
        yield ROOFLINE, "roofline", roofs(frames)
    if table.name == "gpu_throughput":
        yield GPU_ROOFLINE, "roofline", gpu_roofs(frames)


def parts_of(table: Table, rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return name and rows of each part of a table that has its own figures.

    The parts of memory throughput are DRAM and caches. Any other table is one part.
    Rows of pairs of nodes are left out, because figures of links show them.
    """
    single = rows[~is_pair(rows)]
    if table.name != "memory_throughput":
        return [(table.name, single)]
    is_cache = is_cached(single)
    return [(f"{table.name}_pool", single[~is_cache]), (f"{table.name}_block", single[is_cache])]


def compared_nodes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the usable rows of peakmark's kernel on nodes that have others of their class at the same place.

    The columns are those of ``labels.with_medians``. Pairs of nodes are left out: figures of links show them.
    """
    usable = with_medians(rows[rows["is_own"] & ~is_pair(rows)])
    return usable[usable.groupby("group")["node"].transform("size").gt(1)]


def has_limits(rows: pd.DataFrame) -> bool:
    """Return whether the share of the limit is known in all rows of peakmark's kernel."""
    return bool(rows.loc[rows["is_own"], "efficiency"].notna().all())


def fits(drawing: Drawing, rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows that a layout's figure shows, by its workloads and variants.

    A figure that is not drawn in panels shows only points at which peakmark's kernel has the figure's
    value.
    """
    found = pd.Series(True, index=rows.index)
    if drawing.workloads:
        found &= rows["workload"].isin(drawing.workloads)
    if drawing.variants:
        found &= rows["variant"].isin(drawing.variants)
    if drawing.kind == "panels":
        return found
    has_value = rows["is_own"] & rows[VALUES[drawing.value]].notna()
    if drawing.value == "deviation":
        has_value &= rows["n"].gt(1)
    return found & rows["point"].isin(rows.loc[has_value, "point"])


def roofs(frames: CampaignFrames) -> pd.DataFrame:
    """Return the rows of the CPU's roofline; none for a campaign of several nodes or of printed numbers.

    All rows have the same number of threads: the largest with which both rates and memory were
    measured (one, if only the ladder measured the memory). Rates are the flat roofs. The fastest
    row of DRAM or of a cache level is its slope, and comes before the other rows of the level.
    These are rows of the triad, which are points below the roofs. Disturbed rows are no roofs.
    """
    rows = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    rows = rows[~schema.is_disturbed(rows, frames.warnings)]
    rates = rows[rows["table"].eq("cpu") & rows["workload"].isin(ROOFS)]
    memory = rows[rows["table"].isin(BANDWIDTHS) & rows["cache_level"].ne("")]
    counts = set(rates["concurrency"]) & set(memory["concurrency"])
    # Of programs of others, nobody knows whether they run at the roofs.
    if not counts or rows["node"].nunique() > 1 or frames.printed_in:
        return rows.head(0)
    most = max(counts)
    of_most = memory[memory["concurrency"].eq(most)]
    fastest_first = of_most.sort_values("value", ascending=False, kind="stable")
    # ``band`` tells where a host had placed the CPUs of a virtual machine. A point below a slope of another placement
    # would say nothing.
    of_slope = fastest_first.groupby("cache_level")["band"].transform("first")
    fastest_first = fastest_first[may_be_one(fastest_first["band"], of_slope)]
    is_slope = ~fastest_first.duplicated("cache_level")
    slopes = fastest_first[is_slope | fastest_first["workload"].eq(TRIAD)]
    return pd.concat([rates[rates["concurrency"].eq(most)], slopes])


def gpu_roofs(frames: CampaignFrames) -> pd.DataFrame:
    """Return the roofs of the GPU's roofline: sustained rates, and reads from the GPU's memory.

    It has each number of GPUs for which both were measured. It has no rows for a campaign of several nodes.
    """
    rows = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    is_rate = rows["workload"].isin(GPU_ROOFS) & rows["variant"].eq("sustained")
    # Reads without a block are those by the fastest kind of access.
    is_read = rows["workload"].eq("RS") & rows["block_bytes"].isna()
    rates = rows[rows["table"].eq("gpu") & is_rate]
    reads = rows[rows["table"].eq("gpu_throughput") & is_read]
    if rows["node"].nunique() > 1:
        return rows.head(0)
    counts = set(rates["concurrency"]) & set(reads["concurrency"])
    found = pd.concat([rates, reads])
    return found[found["concurrency"].isin(counts)]


def holds_matrix(frames: CampaignFrames, rows: pd.DataFrame) -> bool:
    """Return whether any run of core-to-core latencies has more than one number."""
    runs = frames.runs[frames.runs["point"].isin(rows["point"])]
    return any(len(json.loads(points or "[]")) > 1 for points in runs["points"])


def without_rows(drawing: Drawing) -> str:
    """Return a sentence on why a figure of the layout is missing."""
    reason = {
        "efficiency": "no row has a known limit",
        "deviation": "no row was measured more than once",
        "measured": "nothing was measured for it",
    }[drawing.value]
    return f"No figure “{drawing.title}”: {reason}"


def case_of(picture: Picture) -> str:
    """Return the key of the caption of a figure that no layout defines.

    The key is the figure's name if a caption has this key, otherwise the figure's kind. A figure of
    many nodes always has its kind as the key, because the caption under its name may be that of one
    node's figure.
    """
    if picture.kind != "nodes" and picture.name in captions():
        return picture.name
    return picture.kind


def caption(name: str, middle: str = "median") -> str:
    """Return the one-line caption of a figure.

    Args:
        name: name or kind of the figure, see ``case_of``.
        middle: what the figure shows of a row's runs, ``median`` or ``mean``.
    """
    return f"{message('caption', case=name, middle=middle).fact}."
