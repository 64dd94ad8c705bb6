"""A made-up campaign of many nodes."""

from tests.unit import campaign_data as make

from peakmark.rows import build
from peakmark.storage.results import Results

SLOW = {"node10": {"memory": 0.88}, "node3": {"cpu": 0.9}}
"""Node -> subsystem -> share of the others' rate."""


def facts(**changes):
    """Facts of a node; nodes of equal facts are of one class."""
    cpu = {"model_name": "one", "threads": 2}
    return {"cpu": cpu, "memory": {"total": 2**35}, "os": {"kernel": "6.1"}} | changes


def campaign(folder, nodes, slow, n=6, **more):
    """The frames of a campaign, see ``write``."""
    return build.judge(Results.read(write(folder, nodes, slow, n, **more)))


def write(folder, nodes, slow, n=6, **more):
    """Four CPU rows and two memory rows on each node; the values of a node lie within one per cent
    of the others'.
    """
    records = []
    for number in range(1, nodes + 1):
        name = f"node{number}"
        by = slow.get(name, {})
        wobble = [1 + 0.002 * ((number * 7 + each * 3) % 5 - 2) for each in range(n)]
        for place, workload in enumerate(("QP", "HP", "SP", "DP")):
            values = [4e11 / 2**place * one * by.get("cpu", 1.0) for one in wobble]
            records += make.runs("cpubench", workload, *values, node=name, host=name)
        for workload in ("RS", "WS"):
            values = [1.5e10 * one * by.get("memory", 1.0) for one in wobble]
            records += make.runs("rambench", workload, *values, node=name, host=name)
    return make.write(folder, records, **more)
