"""How long a person waits for a campaign, and for the report after its last job."""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.lines import Line
from benchmarks.workflow.ways import NODES, Ways


def to_the_report(
    checkout: TimedCheckout, turns: int, cells: int = 200, seconds: float = 0.2
) -> list[Line]:
    """A campaign of short cells from its start to its report, beside as many tests of ReFrame."""
    walls: dict[str, list[float]] = {"cell": [], "node": [], "ReFrame": []}
    after: list[float] = []
    with Ways.running(checkout) as ways:
        for turn in range(turns):
            walls["ReFrame"].append(ways.reframe.measure(ways.cluster, ways.kernel, seconds, cells))
            for fan_out in ("cell", "node"):
                name = f"{fan_out}-{turn}"
                spent = ways.spent(partial(ways.own, name, fan_out, cells, seconds))
                walls[fan_out].append(spent.wall_s)
                if fan_out == "cell":
                    after.append(spent.after_s - _report(checkout, name))
    what = f"{cells} cells of {seconds} s on {NODES} nodes, start to report"
    return [
        *(
            Line(f"{what}, fan_out: {name}", "s", walls[name], 1.2, "ReFrame", walls["ReFrame"])
            for name in ("cell", "node")
        ),
        Line("end of the last job to the report, beside making the report", "s", after, 5.0),
    ]


def _report(checkout: TimedCheckout, name: str) -> float:
    """Seconds that tables and report take by themselves."""
    folder = f"results/{name}"
    commands = ("tables", "report")
    return sum(
        checkout.run(sys.executable, "-m", "peakmark", word, folder).wall for word in commands
    )
