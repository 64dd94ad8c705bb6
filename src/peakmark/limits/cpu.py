"""Limits of arithmetic: cores x clock x operations per cycle."""

from __future__ import annotations

from peakmark import data
from peakmark.catalogue import FUSED
from peakmark.formatting import plural, quantity
from peakmark.limits.base import Limit, Question
from peakmark.messages import words

RPEAK = "fused multiply-adds (HPL's Rpeak)"
"""Name of the operations that the limit of a workload in ``FUSED`` counts.

A core that uses its pipes for additions at the same time may exceed this limit.
"""


def limit(question: Question) -> Limit:
    """Return the highest number of operations per second that the cores of a row can do."""
    (cores, cores_source), clock, workload = question.cores, question.clock, question.workload
    if cores is None:
        return question.unknown("facts")
    if clock is None:
        return question.unknown("clock", key="cpu.nominal_hz")
    # Take the operations per cycle from the site file or, by default, from the microarchitecture's table.
    stated = question.site_of_host.cpu.operations_per_cycle.get(workload)
    line, origin = operations(question), clock.origin
    # ``how`` says how a core reaches its operations per cycle. The site file does not state it.
    if stated is not None:
        per_cycle, how, source = float(stated), "", question.site_source("cpu")
        # The origin ``measured`` stays: the clock was measured with the row.
        origin = origin if origin == "measured" else "site"
    elif line is not None:
        per_cycle, source = float(line["operations_per_cycle"]), line["source"]
        how = f"{question.design}, {line['isa'].upper()}: {line['how']}"
        # The limit of DP or FP32 counts fused multiply-adds alone, as Rpeak does. SSE2 has no such instruction.
        if workload in FUSED and line["isa"] != "sse2":
            how += f": limit of {RPEAK}"
    elif kinds := question.fact("cpu", "kinds"):
        # A CPU with several kinds of cores has no single number of operations per cycle.
        names = ", ".join(kind["name"] for kind in kinds)
        return question.unknown("kinds", key=f"cpu.operations_per_cycle.{workload}", kinds=names)
    else:
        processor = str(question.design or question.fact("cpu", "model_name") or "this CPU")
        key = f"cpu.operations_per_cycle.{workload}"
        return question.unknown("operations", key=key, workload=workload, processor=processor)
    value = cores * clock.hz * per_cycle
    formula = (
        f"{plural(cores, 'core')} x {quantity(clock.hz, 'Hz')} ({clock.name} clock)"
        f" x {per_cycle:.4g} operations per cycle and core = {quantity(value, 'op/s')}"
    )
    # Threads of one core share its pipes, so the limit is that of the cores, not of the threads.
    fewer = words("limit-of-cores", threads=question.concurrency, cores=cores)
    remarks = (fewer,) if question.concurrency > cores else ()
    return question.limit(
        value,
        formula,
        source,
        origin,
        remarks=remarks,
        clock=clock.name,
        detail=how,
        cores=cores_source,
    )


def operations(question: Question) -> dict[str, str] | None:
    """Return the line of operations.csv with the most operations per cycle on this machine, or None.

    If the machine's instruction sets are unknown, all instruction sets of its microarchitecture count.
    """
    isa = set(question.fact("cpu", "isa") or ())
    usable = set(isa)
    # The table's ``avx512`` stands for all extensions of AVX-512 that the kernels need.
    if question.fact("cpu", "isa_best") == "avx512":
        usable.add("avx512")
    else:  # cpubench's kernel for VNNI needs these extensions too
        usable.discard("avx512_vnni")
    # The kernels for AVX2 use fused multiply-adds.
    if "fma" not in isa:
        usable.discard("avx2")
    lines = [
        line
        for line in data.of_design("operations", question.design)
        if line["workload"] == question.workload and (not isa or line["isa"] in usable)
    ]
    # Of equal lines, take the one for the instructions that ran: its source is about them.
    ran_first = sorted(lines, key=lambda line: line["isa"] != question.isa)
    return max(ran_first, key=lambda line: float(line["operations_per_cycle"]), default=None)
