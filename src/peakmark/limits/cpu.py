"""Limit of computing: cores x clock x operations per cycle, and the clock in cycles that caches are
counted in.
"""

from __future__ import annotations

from typing import NamedTuple

from peakmark import data
from peakmark.formatting import plural
from peakmark.limits.base import Limit, Origin, Question
from peakmark.messages import message
from peakmark.units import quantity


class Clock(NamedTuple):
    """A clock in Hz, its name (observed, nominal, maximum), and where it is from."""

    hz: float
    name: str
    origin: Origin

    def text(self, digits: int = 4) -> str:
        """``3.2 GHz (observed clock)``."""
        return f"{quantity(self.hz, 'Hz', digits)} ({self.name} clock)"


def limit(question: Question) -> Limit:
    """Operations per second that the cores of a row can do at most."""
    design = microarchitecture(question)
    cores, counted = core_count(question)
    if cores is None:
        return question.unknown("facts")
    clock = clock_of(question)
    if clock is None:
        return question.unknown("clock", key="cpu.nominal_hz")
    stated = (question.stated("cpu", "operations_per_cycle") or {}).get(question.workload)
    line, origin = operations(question, design), clock.origin
    if stated is not None:
        per_cycle, how, source = float(stated), "", question.site_source("cpu")
        origin = origin if origin == "measured" else "site"
    elif line is not None:
        per_cycle, source = float(line["operations_per_cycle"]), line["source"]
        how = f"{design}, {line['isa'].upper()}: {line['how']}"
    else:
        return _unknown(question, design)
    value = cores * clock.hz * per_cycle
    # As wide multiplications lower the clock, that of the work itself says so.
    loaded = clock.name == "observed" and question.clock_loaded
    which = "clock observed under the work" if loaded else f"{clock.name} clock"
    formula = (
        f"{plural(cores, 'core')} x {quantity(clock.hz, 'Hz')} ({which})"
        f" x {per_cycle:.4g} operations per cycle and core = {quantity(value, 'op/s')}"
    )
    fewer = message("limit-of-cores", threads=question.concurrency, cores=cores)
    remarks = (fewer,) if question.concurrency > cores else ()
    texts = {"clock": clock.name, "detail": how, "cores": counted}
    return question.limit(value, formula, source, origin, remarks=remarks, **texts)


def microarchitecture(question: Question) -> str | None:
    """The core's design: by the site file, else by CPUID."""
    name = question.stated("cpu", "microarchitecture") or question.fact("cpu", "microarchitecture")
    return None if name is None else str(name)


def core_count(question: Question) -> tuple[int | None, str]:
    """(cores a row keeps busy, where their number is from): no more than threads, no more than the
    job was given.
    """
    guest = "cores as a virtual machine shows them: what is behind one, its host knows"
    virtual = question.fact("cpu", "virtualised")
    counts = (
        (question.stated("cpu", "cores"), question.site_source("cpu")),
        (question.reached("cores"), guest if virtual else "cores its threads were placed on"),
        (
            question.fact("limits", "physical_cores_allowed"),
            guest if virtual else "physical cores the job was given",
        ),
    )
    for count, source in counts:
        if count is not None:
            return min(question.concurrency, int(count)), source
    return None, ""


def clock_of(question: Question) -> Clock | None:
    """The clock the site asks for (default observed), else the next that is known; None if none
    is.
    """
    clocks = clocks_of(question)
    wanted = question.stated("cpu", "clock") or "observed"
    for name in (wanted, *clocks):
        hz, origin = clocks[name]
        if hz is not None:
            return Clock(hz, name, origin)
    return None


def clocks_of(question: Question) -> dict[str, tuple[float | None, Origin]]:
    """The three clocks by name, each with its origin: observed beside the row, nominal, maximum."""
    read = question.fact("cpu", "clock_hz") or {}
    observed = read.get("observed") if question.clock_hz is None else question.clock_hz
    clocks: dict[str, tuple[float | None, Origin]] = {"observed": (observed, "measured")}
    for name in ("nominal", "maximum"):
        stated = question.stated("cpu", f"{name}_hz")
        clocks[name] = (read.get(name), "read") if stated is None else (stated, "site")
    return clocks


def operations(question: Question, design: str | None) -> dict[str, str] | None:
    """The best line of operations.csv for a workload on this machine, or None. Where a site file
    alone describes the machine, all its design can do counts.
    """
    isa = set(question.fact("cpu", "isa") or ())
    usable = set(isa)
    if question.fact("cpu", "isa_best") == "avx512":
        usable.add("avx512")
    else:
        usable.discard("avx512_vnni")
    if "fma" not in isa:
        usable.discard("avx2")
    lines = [
        line
        for line in data.of_design("operations", design)
        if line["workload"] == question.workload and (not isa or line["isa"] in usable)
    ]
    return max(lines, key=lambda line: float(line["operations_per_cycle"]), default=None)


def _unknown(question: Question, design: str | None) -> Limit:
    name, workload = design or question.fact("cpu", "model_name") or "this CPU", question.workload
    key = f"cpu.operations_per_cycle.{workload}"
    return question.unknown("operations", key=key, workload=workload, processor=str(name))
