"""What a cell costs on a cluster beside its measuring, beside bare jobs, ReFrame's tests and
Snakemake's own Slurm plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.lines import Line
from benchmarks.workflow.ways import NODES, Ways

SECONDS = 0.05
BATCH = 10
FAN_OUTS: dict[str, Any] = {"cell": "cell", "node": "node", f"batch: {BATCH}": {"batch": BATCH}}


def per_cell(checkout: TimedCheckout, turns: int, cells: int = 20) -> list[Line]:
    """Seconds of nodes per cell beside the measuring, every way in turn; what is done once for a
    node stands apart.

    Errors: PeakmarkError when no cluster can be started here, or a run fails.
    """
    node: dict[str, list[float]] = {}
    wall: dict[str, list[float]] = {}
    first: list[float] = []
    with Ways.running(checkout) as ways:
        reframe = ways.reframe.measure
        for turn in range(turns):
            runs: dict[str, tuple[float, Callable[[], object]]] = {
                "bare": (0.0, partial(ways.bare, cells)),
                "ReFrame": (SECONDS, partial(reframe, ways.cluster, ways.kernel, SECONDS, cells)),
                "rule": (SECONDS, partial(ways.rule, f"rule-{turn}", cells, SECONDS)),
            }
            for number, (name, fan_out) in enumerate(FAN_OUTS.items()):
                own = f"own-{number}-{turn}"
                # One cell on each node: the first collects the facts of its node, which the others
                # find there.
                one_each = ways.spent(partial(ways.own, own, fan_out, NODES, SECONDS))
                first.append(one_each.node_s / NODES - SECONDS)
                runs[name] = (SECONDS, partial(ways.own, own, fan_out, cells + NODES, SECONDS))
            for name, (measuring, run) in runs.items():
                spent = ways.spent(run)
                node.setdefault(name, []).append(spent.node_s / cells - measuring)
                wall.setdefault(name, []).append(spent.wall_s)
    what = "node time per cell beside the measuring"
    facts = "node time of the first cell on a node beside the measuring, with the node's facts"
    shares = {"cell": 1.2, "node": 1.0, f"batch: {BATCH}": None}

    def line(text: str, way: str, at_most: float | None, times: dict[str, list[float]]) -> Line:
        return Line(text, "s", times[way], at_most, "ReFrame", times["ReFrame"])

    whole = f"whole run of {cells} cells"
    return [
        Line(f"{what}: `sbatch` of `sleep 0`", "s", node["bare"]),
        line(f"{what}: a rule by the standard plugin", "rule", None, node),
        Line(facts, "s", first),
        *(line(f"{what}, fan_out: {name}", name, shares[name], node) for name in FAN_OUTS),
        *(line(f"{whole}, fan_out: {name}", name, None, wall) for name in FAN_OUTS),
    ]
