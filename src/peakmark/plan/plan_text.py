"""What ``peakmark plan`` prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.config.types import Criterion
from peakmark.formatting import duration, plural
from peakmark.plan import durations
from peakmark.plan.cluster import ANY, Cluster, settings_of
from peakmark.plan.plan import Plan, Reference, two_nodes, uses_shared_resource
from peakmark.storage import decisions
from peakmark.units import format_size, gigabytes

JOB_S, CELL_S = 0.5, 0.4
"""What a job costs on its node, and each cell besides its measuring, without Slurm's own time."""


def describe(plan: Plan, every_cell: bool = False) -> str:
    """Cells, reference tools, disk space and expected time of a plan."""
    times = plan.durations
    cells = plural(len(plan.cells), "cell")
    lines = [f"campaign {plan.campaign}: {cells}, about {duration(times.total(plan.cells))}"]
    lines += [*_times(plan), *_adaptive(plan), *_repeated(plan), *_suspects(plan), ""]
    for subsystem in SUBSYSTEMS:
        group = [cell for cell in plan.cells if cell.subsystem == subsystem]
        if group:
            expected = duration(times.total(group))
            lines.append(f"{subsystem:<8} {plural(len(group), 'cell')}, {expected}")
            lines += [f"  {cell.id}" for cell in group] if every_cell else _points(plan, group)
    where = " (each node says whether it has them: peakmark doctor --slurm)" if plan.cluster else ""
    lines += ["", f"reference tools{where}" if plan.references else "no reference tools"]
    lines += [
        f"  {reference.instrument:<13} {_reference(plan, reference)}"
        for reference in plan.references
    ]
    disk, memory = durations.largest(plan.cells)
    scratch = plan.config["scratch"] or "$TMPDIR, else /tmp"
    lines += [
        "",
        f"scratch       {scratch}: {gigabytes(disk)} at most",
        f"memory        {gigabytes(memory)} at most",
        f"results       {plan.directory}",
    ]
    if plan.cluster is not None:
        lines += ["", *_cluster(plan, plan.cluster)]
    return "\n".join(lines)


def _reference(plan: Plan, reference: Reference) -> str:
    """Where the tool is, or what would fill its column; and which tool fills some of its rows."""
    if reference.path is None:
        fix = f"; apt-get install {reference.package}" if reference.package else ""
        return f"column stays empty: {reference.reason}{fix}"
    others = set()
    for cell in plan.cells:
        if cell.options.get("instead_of") == reference.instrument:
            others.add(cell.instrument)
    if not others or reference.largest is None:
        return reference.path
    largest = format_size(reference.largest)
    return (
        f"{reference.path} (records of at most {largest}; larger ones: {listing(sorted(others))})"
    )


def _times(plan: Plan) -> list[str]:
    """What is measured already, what is left, and the sources of the times."""
    times = plan.durations
    unmeasured = [cell for cell in plan.cells if not times.is_measured(cell)]
    measured = len(plan.cells) - len(unmeasured)
    lines = []
    if measured:
        lines.append(f"{measured} measured, about {duration(times.total(unmeasured))} left")
    estimates = sum(map(times.is_estimate, unmeasured))
    if estimates:
        lines.append(
            f"times of {plural(estimates, 'cell')} are estimated for a slow machine; the first "
            "measured cells correct them"
        )
    if times.link_bps is None and any(map(two_nodes, unmeasured)):
        lines.append(
            f"speed of the network unknown, {durations.ORDINARY_LINK / 1e9:g} Gb/s assumed: write "
            "network.speed_bps in the site file"
        )
    return lines


def _repeated(plan: Plan) -> list[str]:
    """What measuring disturbed cells again may cost at most."""
    times = plan.durations
    unmeasured = [cell for cell in plan.cells if not times.is_measured(cell)]
    again = times.repeated(unmeasured)
    if not again:
        return []
    return [
        f"disturbed repetitions are measured again, at most {duration(again)} more if all are "
        f"(repeat_disturbed: {times.repeats})"
    ]


def _suspects(plan: Plan) -> list[str]:
    """The most that the second measurement of slow nodes and links may cost."""
    if not plan.checks_suspects:
        return []
    cells = plan.judged_cells
    again = decisions.measured_again(cells, {cell.row: [] for cell in cells})
    most = duration(plan.durations.total(again))
    return [f"slow rows are measured again, at most {most} more if all are (repeat_suspects: true)"]


def _adaptive(plan: Plan) -> list[str]:
    """What is measured in any case, and the most that repetitions beyond it may cost."""
    if not plan.criteria:
        return []
    extra: dict[tuple[Criterion, str], list[Cell]] = defaultdict(list)
    for cell in plan.cells:
        criterion = plan.criteria.get(cell.row)
        if criterion is not None and cell.repetition >= criterion.least:
            extra[criterion, cell.node].append(cell)
    required = plan.required_cells()
    least = most = plan.durations.total(required)
    for (criterion, _), cells in extra.items():
        seconds = plan.durations.total(cells)
        most += seconds if criterion.within_s is None else min(seconds, criterion.within_s)
    return [
        f"at least {plural(len(required), 'cell')}, {duration(least)}; at most {duration(most)} "
        "where intervals do not become narrow enough"
    ]


def _points(plan: Plan, cells: Sequence[Cell]) -> list[str]:
    """Workloads, blocks, concurrency and repetitions of each instrument."""
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.instrument, cell.variant].append(cell)
    lines = []
    for (instrument, variant), group in sorted(groups.items()):
        name = f"{instrument} ({variant})" if variant else instrument
        by_id = sorted(group, key=lambda cell: cell.id)
        parts = [" ".join(dict.fromkeys(cell.workload for cell in by_id))]
        blocks = [format_size(size) for size in sorted({cell.block or 0 for cell in group}) if size]
        if any(cell.automatic for cell in group):
            blocks.append("auto")
        if blocks:
            parts.append(" ".join(blocks))
        concurrency = sorted({(bool(cell.word), cell.asked) for cell in group})
        parts.append("x" + " ".join(str(value) for _, value in concurrency))
        parts.append(_repetitions(plan, group))
        lines.append(f"  {name:<22} {'; '.join(parts)}")
    return lines


def _repetitions(plan: Plan, cells: Sequence[Cell]) -> str:
    """``1 repetition``, ``6 to 30 repetitions``."""
    counts = Counter((cell.workload, cell.block, cell.asked) for cell in cells)
    least = most = max(counts.values())
    for cell in cells:
        if cell.row in plan.criteria:
            least = min(least, plan.criteria[cell.row].least)
    return f"{least} to {most} repetitions" if least < most else plural(most, "repetition")


def _cluster(plan: Plan, cluster: Cluster) -> list[str]:
    """Nodes, node-hours and wall time, in which jobs that share nothing run at once."""
    settings = settings_of(plan.config)
    usable = 1 if plan.config["fan_out"] == "node" else max(1, cluster.count)
    jobs = len(plan.jobs) or len(plan.cells)
    overhead = CELL_S + JOB_S * jobs / max(1, len(plan.cells))
    one_at_a_time = node_seconds = 0.0
    per_node: dict[str, float] = defaultdict(float)
    free: dict[str, float] = defaultdict(float)
    known = {(cell.node, cell.peer): plan.shares(cell) for cell in plan.cells if cell.peer}
    for cell in plan.cells:
        seconds = plan.durations.expected(cell) + overhead
        if cell.peer:
            used = {cell.node, cell.peer, *known[cell.node, cell.peer]}
            free |= dict.fromkeys(used, max(free[name] for name in used) + seconds)
        if uses_shared_resource(cell, settings):
            one_at_a_time += seconds
        node_seconds += seconds * (2 if two_nodes(cell) else 1)
        per_node[cell.node] += seconds / (usable if cell.node == ANY else 1)
    together = max(free.values(), default=0.0)
    wall = duration(max([one_at_a_time + together, *per_node.values()]))
    cpus = f"{plural(cluster.cpus, 'CPU')} or more each"
    limit = f", jobs of at most {duration(cluster.limit * 60.0)}" if cluster.limit else ""
    nodes = f"{plural(cluster.count, 'node')} can be used now"
    most = "at most " if plan.criteria else ""
    lines = [
        f"partition     {cluster.partition}: {nodes}, {cpus}{limit}",
        f"nodes         {node_names(cluster)}",
        f"jobs          {most}{jobs}",
        f"node-hours    {most}{node_seconds / 3600:.2f}",
        f"wall time     {most}{wall} when the nodes are free, of it {duration(one_at_a_time)} one "
        "cell at a time",
    ]
    if known:
        shared = f", what {len(plan.behind)} uplinks let through" if plan.behind else ""
        lines.append(f"pairs         {len(known)}, in {duration(together)}{shared}")
    lines += [f"too small     {sentence}" for sentence in _too_small(plan, cluster)]
    if cluster.left_out:
        names = listing(f"{name} ({state})" for name, state in cluster.left_out.items())
        lines.append(f"left out      {names}; another campaign: name chooses anew")
    return lines


def _too_small(plan: Plan, cluster: Cluster) -> list[str]:
    """Classes of nodes that cannot give a row the CPUs or the memory that it needs."""
    lines = []
    for kind in cluster.kinds:
        nodes = [ANY] if kind.chosen else kind.nodes
        cells = [cell for cell in plan.cells if cell.node in nodes and not two_nodes(cell)]
        cpus, memory = durations.needs(cells, plan.config)
        if cpus > kind.cpus or memory > kind.memory:
            lines.append(
                f"{listing(kind.nodes)}: {_size(kind.cpus, kind.memory)}, rows need up to "
                f"{_size(cpus, memory)}; threads will share CPUs, and rows that do not fit into "
                "memory will end as not possible"
            )
    return lines


def node_names(cluster: Cluster) -> str:
    """The nodes of the campaign as a phrase."""
    chosen = cluster.chosen
    if chosen is None:
        return listing(cluster.nodes)
    size = _size(chosen.cpus, chosen.memory)
    text = f"any of {listing(chosen.nodes)}, equal nodes of {size}"
    excluded = cluster.excluded(1)
    return f"{text}; not used: {listing(excluded)}" if excluded else text


def _size(cpus: int, mib: int) -> str:
    return f"{plural(cpus, 'CPU')} and {gigabytes(mib << 20)}"


def listing(names: Iterable[str], most: int = 8) -> str:
    """The first few of many names."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
