"""Plans on a cluster that nobody has, for tests of jobs and of what becomes of them."""

from peakmark import plan
from peakmark.plan import jobs
from peakmark.plan.cluster import Cluster, EqualNodes


def where(**changes):
    values = {"partition": "main", "asked": "any", "nodes": ("any",)}
    values |= {"cpus": 8, "memory": 4000, "limit": 60, "count": 3}
    kinds = [
        EqualNodes(**{"usable": len(kind["nodes"]), **kind}) for kind in changes.pop("kinds", [])
    ]
    return Cluster(**{**values, **changes, "kinds": kinds})


def made(tmp_path, monkeypatch, there = None, **config):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    empty = {"campaign": "c", "cpu": [], "memory": [], "disk": [], "network": []}
    return plan.make({**empty, "repetitions": 1, **config}, there or where())


CPU = {"workloads": ["DP"], "concurrency": [1, 128]}
DISK = {"workloads": ["WS"], "blocks": ["4KiB"], "concurrency": [1], "size": "1MiB"}
NETWORK = {"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1]}


def asked(one, **given):
    return {cell.subsystem: jobs.options([cell], one, given) for cell in one.cells}
