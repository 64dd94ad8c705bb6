"""A plan in words: what ``peakmark plan`` prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.config.types import Criterion
from peakmark.formatting import duration, listed, plural
from peakmark.plan import durations, grouping
from peakmark.plan import plan as planning
from peakmark.plan.cluster import ANY, Cluster, settings_of
from peakmark.units import format_size, gigabytes

JOB_S, CELL_S = 0.5, 0.4
"""What a job costs on its node, and each cell in it beside the measuring: Python, facts of the
machine, the record on disk. Slurm's own time between two jobs is not in it.
"""

GUESSED = (
    "times guessed for a slow machine; one measured cell of each kind makes them those of this one"
)
SOURCES = {
    durations.OWN: "as their row took",
    durations.KIND: "as cells of their kind took",
    durations.GUESS: "guessed",
}


def describe(plan: planning.Plan, every_cell: bool = False) -> str:
    """Cells, reference tools, disk space and expected time of a plan."""
    whole = plan.durations.total(plan.cells)
    lines = [
        f"campaign {plan.campaign}: {plural(len(plan.cells), 'cell')}, about {duration(whole)}"
    ]
    lines += [*_times(plan), *_adaptive(plan), ""]
    for subsystem in SUBSYSTEMS:
        lines += _subsystem(
            plan,
            subsystem,
            [cell for cell in plan.cells if cell.subsystem == subsystem],
            every_cell,
        )
    lines.append("")
    where = " (each node says whether it has them: peakmark doctor --slurm)" if plan.cluster else ""
    lines.append(f"reference tools{where}" if plan.references else "no reference tools")
    for reference in plan.references:
        if reference.path is not None:
            lines.append(f"  {reference.instrument:<13} {reference.path}{_filled(plan, reference)}")
        else:
            fix = f"; apt-get install {reference.package}" if reference.package else ""
            lines.append(
                f"  {reference.instrument:<13} column stays empty: {reference.reason}{fix}"
            )
    lines.append("")
    disk, memory = durations.largest(plan.cells)
    lines.append(
        f"scratch       {plan.config['scratch'] or '$TMPDIR, else /tmp'}: {gigabytes(disk)} at most"
    )
    lines.append(f"memory        {gigabytes(memory)} at most")
    lines.append(f"results       {plan.directory}")
    if plan.cluster is not None:
        lines += ["", *_cluster(plan, plan.cluster)]
    return "\n".join(lines)


def _filled(plan: planning.Plan, reference: planning.Reference) -> str:
    """What another tool does, as this one's build cannot."""
    other = sorted(
        {
            cell.instrument
            for cell in plan.cells
            if cell.options.get("instead_of") == reference.instrument
        }
    )
    if not other or reference.largest is None:
        return ""
    return (
        f" (records of at most {format_size(reference.largest)}; larger ones: {', '.join(other)})"
    )


def _times(plan: planning.Plan) -> list[str]:
    """What is measured already, what is left, and where the times are from."""
    left = [cell for cell in plan.cells if not plan.durations.is_measured(cell)]
    lines = []
    if len(left) < len(plan.cells):
        lines.append(
            f"{len(plan.cells) - len(left)} measured, about {duration(plan.durations.total(left))} left"
        )
    counts = plan.durations.sources(left)
    known = [
        f"{plural(counts[source], 'cell')} {source_text}"
        for source, source_text in SOURCES.items()
        if counts.get(source)
    ]
    if left:
        lines.append(
            GUESSED if set(counts) == {durations.GUESS} else f"times of {', '.join(known)}"
        )
    if plan.durations.link_bps is None and any(grouping.two_nodes(cell) for cell in left):
        lines.append(
            f"speed of the network unknown, {durations.ORDINARY_LINK / 1e9:g} Gb/s assumed: write network.speed_bps in the "
            "site file"
        )
    return lines


def _adaptive(plan: planning.Plan) -> list[str]:
    """What is measured in any case, and what the repetitions beyond it may cost at most."""
    if not plan.criteria:
        return []
    sure = plan.required_cells()
    least = plan.durations.total(sure)
    lines = [
        f"at least {plural(len(sure), 'cell')}, {duration(least)}; the rest as far as intervals are not narrow enough:"
    ]
    cells: dict[Criterion, list[Cell]] = defaultdict(list)
    for cell in plan.cells:
        criterion = plan.criteria.get(cell.row)
        if criterion is not None and cell.repetition >= criterion.least:
            cells[criterion].append(cell)
    at_most = least
    for criterion, more in cells.items():
        nodes = len({cell.node for cell in more})
        seconds = plan.durations.total(more)
        limit = seconds if criterion.within_s is None else min(seconds, criterion.within_s * nodes)
        at_most += limit
        lines.append(
            f"  {criterion.least} to {criterion.most} repetitions until the median's interval is within"
            f" ±{criterion.until * 100:g} %: {plural(len({cell.row for cell in more}), 'row')}, at most {duration(limit)} more"
            + (
                f" (within: {duration(criterion.within_s)})"
                if criterion.within_s is not None
                else ""
            )
        )
    lines.append(f"in all at most {duration(at_most)}")
    return lines


def _cluster(plan: planning.Plan, cluster: Cluster) -> list[str]:
    """Nodes, node-hours and wall time. The wall time counts jobs one after the other where they
    must, else per node.
    """
    settings = settings_of(plan.config)
    count = 1 if plan.config["fan_out"] == "node" else max(1, cluster.count)
    many = len(plan.jobs) or len(plan.cells)
    overhead = CELL_S + JOB_S * many / max(1, len(plan.cells))
    alone = node_seconds = 0.0
    per_node: dict[str, float] = defaultdict(float)
    for cell in plan.cells:
        busy = plan.durations.expected(cell) + overhead
        alone += busy if grouping.alone(cell, settings) else 0.0
        node_seconds += busy * (2 if grouping.two_nodes(cell) else 1)
        per_node[cell.node] += busy / (count if cell.node == ANY else 1)
    wall = max([alone, *per_node.values()])
    kinds = [cluster.chosen] if cluster.chosen else cluster.kinds
    sizes = [kind["cpus"] for kind in kinds] or [cluster.cpus]
    cpus = (f"{min(sizes)} to " if min(sizes) < max(sizes) else "") + plural(max(sizes), "CPU")
    limit = f", jobs of at most {duration(cluster.limit * 60.0)}" if cluster.limit else ""
    most = "at most " if plan.criteria else ""
    lines = [
        f"partition     {cluster.partition}: {plural(cluster.count, 'node')} can be used now, {cpus} each{limit}",
        f"nodes         {node_names(cluster)}",
        f"jobs          {most}{many}",
        f"node-hours    {most}{node_seconds / 3600:.2f}",
        f"wall time     {most}{duration(wall)} when the nodes are free, of it {duration(alone)} one cell at a time",
    ]
    lines += [f"too small     {sentence}" for sentence in _too_small(plan, cluster)]
    if cluster.left_out:
        names = shown(f"{name} ({state})" for name, state in cluster.left_out.items())
        lines.append(f"left out      {names}; another campaign: name chooses anew")
    return lines


def _too_small(plan: planning.Plan, cluster: Cluster) -> list[str]:
    """Nodes that cannot give a cell the CPUs or the memory that it asks for."""
    lines = []
    for kind in cluster.kinds:
        here = [cell for cell in plan.cells if cell.node in kind["nodes"]]
        threads = max((cell.concurrency for cell in here), default=0)
        memory = max((durations.cost(cell).memory_bytes for cell in here), default=0)
        short = []
        if threads > kind["cpus"]:
            short.append(f"{kind['cpus']} CPUs for up to {threads} threads, which will share them")
        if memory > kind["memory"] << 20:
            short.append(
                f"{format_size(kind['memory'] << 20)} of memory for up to {format_size(memory)}"
            )
        if short:
            lines.append(f"{shown(kind['nodes'])}: {listed(short)}")
    return [*lines, *_beyond_class(plan, cluster)]


def _beyond_class(plan: planning.Plan, cluster: Cluster) -> list[str]:
    """What the rows need and the chosen class of nodes does not have."""
    chosen = cluster.chosen
    one_node = [cell for cell in plan.cells if cell.node == ANY and not grouping.two_nodes(cell)]
    if chosen is None or not one_node:
        return []
    threads, _ = durations.needs(one_node, plan.config)
    needs = {cell.row: durations.needs([cell], plan.config)[1] for cell in one_node}
    hungry = [mib for mib in needs.values() if mib > chosen["memory"]]
    lines = []
    if threads > chosen["cpus"]:
        cpus = plural(chosen["cpus"], "CPU")
        lines.append(
            f"all nodes: at most {cpus} for up to {threads} threads, which will share them"
        )
    if hungry:
        lines.append(
            f"all nodes: {plural(len(hungry), 'row')} may need up to {gigabytes(max(hungry) << 20)} of memory, more than a"
            " node has: what does not fit there will end as not possible"
        )
    return lines


def node_names(cluster: Cluster) -> str:
    """The nodes of the campaign in words."""
    chosen = cluster.chosen
    if chosen is None:
        return shown(cluster.nodes)
    text = (
        f"any of {shown(chosen['nodes'])}, equal nodes of {_size(chosen['cpus'], chosen['memory'])}"
    )
    excluded = cluster.excluded(1)
    return f"{text}; not used: {shown(excluded)}" if excluded else text


def _size(cpus: int, mib: int) -> str:
    return f"{plural(cpus, 'CPU')} and {gigabytes(mib << 20)}"


def shown(names: Iterable[str], most: int = 8) -> str:
    """The first few of many names."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _subsystem(
    plan: planning.Plan, subsystem: str, cells: list[Cell], every_cell: bool
) -> list[str]:
    if not cells:
        return []
    lines = [
        f"{subsystem:<8} {plural(len(cells), 'cell')}, {duration(plan.durations.total(cells))}"
    ]
    if every_cell:
        return lines + [f"  {cell.id}" for cell in cells]
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.instrument, cell.variant].append(cell)
    for (instrument, variant), group in sorted(groups.items()):
        name = f"{instrument} ({variant})" if variant else instrument
        repetitions = Counter((cell.workload, cell.block, cell.asked) for cell in group)
        workloads = " ".join(
            dict.fromkeys(cell.workload for cell in sorted(group, key=lambda cell: cell.id))
        )
        blocks = " ".join(
            format_size(block) for block in sorted({cell.block for cell in group if cell.block})
        )
        if any(cell.automatic for cell in group):
            blocks += " auto"
        asked = sorted({(bool(cell.word), cell.asked) for cell in group})
        concurrency = " ".join(str(number) for _, number in asked)
        count = _count(plan, group, max(repetitions.values()))
        lines.append(
            f"  {name:<22} {workloads}{'; ' + blocks if blocks else ''}; x{concurrency}; {count}"
        )
    return lines


def _count(plan: planning.Plan, group: list[Cell], most: int) -> str:
    """``1 repetition``, ``6 to 30 repetitions``."""
    least = min(
        (plan.criteria[cell.row].least for cell in group if cell.row in plan.criteria), default=most
    )
    return f"{least} to {most} repetitions" if least < most else plural(most, "repetition")
