"""What the process that measures a cell takes of its node's processors, beside the kernel that it starts."""

from __future__ import annotations

import sys

from benchmarks.workflow.checkout import Checkout
from benchmarks.workflow.lines import Line

SECONDS = 0.01


def measure(checkout: Checkout, turns: int, each: int = 5) -> list[Line]:
    """Processor seconds of `peakmark measure` from its start to the record, without those of the kernel."""
    name = "starting"
    config = checkout.configure(name, seconds=SECONDS, repetitions=1, cpu=[{"workloads": ["DP"], "concurrency": [1]}])
    checkout.snakemake(config, "--quiet=all")
    cell = "cpu/cpubench/DP_none_x1/any/0"
    kernel = [
        "build/kernels/cpubench",
        "--workload",
        "DP",
        "--threads",
        "1",
        "--seconds",
        str(SECONDS),
        "--warmup",
        "0",
    ]
    own, bare = [], []
    for _ in range(turns * each):
        (checkout.directory / "results" / name / "cells" / f"{cell}.json").unlink()
        words = ["measure", "--plan", f"results/{name}/plan.json", "--cell", cell]
        whole = checkout.run(sys.executable, "-m", "peakmark", *words).cpu
        own.append(whole - checkout.run(*kernel).cpu)
        bare.append(checkout.run(sys.executable, "-c", "pass").cpu)
    return [
        Line("processor time of `peakmark measure` beside its kernel's", "s", own, 0.12),
        Line("the same beside a Python that does nothing", "s", own, None, "`python -c pass`", bare),
    ]
