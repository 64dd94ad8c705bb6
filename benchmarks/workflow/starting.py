"""What the process that measures a cell takes of its node's processors itself."""

from __future__ import annotations

import sys

from benchmarks.workflow.checkout import TimedCheckout
from benchmarks.workflow.lines import Line

SECONDS = 0.01


def measure(checkout: TimedCheckout, turns: int, each: int = 5) -> list[Line]:
    """Processor seconds of `peakmark measure` until it has its cell, and to the record without
    those of the kernel.
    """
    name = "starting"
    config = checkout.configure(
        name, seconds=SECONDS, repetitions=1, cpu=[{"workloads": ["DP"], "concurrency": [1]}]
    )
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
    ]
    words = [
        sys.executable,
        "-m",
        "peakmark",
        "measure",
        "--plan",
        f"results/{name}/plan.json",
        "--cell",
    ]
    starts, wholes, bare = [], [], []
    for _ in range(turns * each):
        # All that it needs is loaded and the plan is read when it finds that there is no such cell.
        starts.append(checkout.run("sh", "-c", '! "$@" 2> said', "sh", *words, "no-such-cell").cpu)
        (checkout.directory / "results" / name / "cells" / f"{cell}.json").unlink()
        wholes.append(checkout.run(*words, cell).cpu - checkout.run(*kernel, "--warmup", "0").cpu)
        bare.append(checkout.run(sys.executable, "-c", "pass").cpu)
    said = (checkout.directory / "said").read_text()
    assert "no-such-cell" in said and "Traceback" not in said, said  # noqa: S101 - otherwise something else was timed
    return [
        Line("processor time of `peakmark measure` until it has its cell", "s", starts, 0.12),
        Line("the same to the record, without its kernel's", "s", wholes),
        Line("the same until it has its cell", "s", starts, None, "`python -c pass`", bare),
    ]
