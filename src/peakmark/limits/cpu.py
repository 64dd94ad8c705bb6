"""Limit of computing: cores x clock x operations per cycle, and the clock in cycles that caches are
counted in.
"""

from __future__ import annotations

from peakmark import data
from peakmark.formatting import plural
from peakmark.limits.base import Kind, Limit, Question
from peakmark.messages import message
from peakmark.units import quantity

# Two fused units of the ISA's width: right for most designs, wrong for some. Only ever an estimate.
_ESTIMATE_DP = {"avx512": 32.0, "avx2": 16.0, "neon": 8.0, "sse2": 4.0}


def limit(question: Question) -> Limit:
    """Operations per second that the cores of a row can do at most."""
    design = microarchitecture(question)
    cores, cores_source = core_count(question)
    if cores is None:
        return question.unknown(
            "no machine facts: collect them with `peakmark machine` on the node"
        )
    clock, clock_name, kind = clock_of(question)
    if clock is None:
        return question.unknown("no clock is known", "cpu.nominal_hz")
    given = (question.given("cpu", "operations_per_cycle") or {}).get(question.workload)
    if given is not None:
        per_cycle, how, source = float(given), "", question.site_source("cpu")
        kind = kind if kind == "measured" else "site"
    else:
        line = operations(question, design)
        if line is None:
            return _unknown(question, design, cores * clock)
        per_cycle, source = float(line["operations_per_cycle"]), line["source"]
        how = f"{design}, {line['isa'].upper()}: {line['how']}"
    value = cores * clock * per_cycle
    # As wide multiplications lower the clock, that of the work itself says so.
    loaded = clock_name == "observed" and question.clock_loaded
    which = "clock observed under the work" if loaded else f"{clock_name} clock"
    formula = (
        f"{plural(cores, 'core')} x {quantity(clock, 'Hz')} ({which}) x {per_cycle:.4g} operations per cycle"
        f" and core = {quantity(value, 'op/s')}"
    )
    fewer = message("limit-of-cores", threads=question.concurrency, cores=cores)
    said = {
        "remarks": (fewer,) if question.concurrency > cores else (),
        "clock": clock_name,
        "detail": how,
        "cores": cores_source,
    }
    return question.limit(value, formula, source, kind, **said)


def microarchitecture(question: Question) -> str | None:
    """The core's design: by the site file, else by CPUID."""
    name = question.given("cpu", "microarchitecture") or question.fact("cpu", "microarchitecture")
    return None if name is None else str(name)


def core_count(question: Question) -> tuple[int | None, str]:
    """(cores a row keeps busy, where their number is from): no more than threads, no more than the
    job was given.
    """
    guest = "cores as a virtual machine shows them: what is behind one, its host knows"
    virtual = question.fact("cpu", "virtualised")
    for count, source in (
        (question.given("cpu", "cores"), question.site_source("cpu")),
        (question.placed.get("cores"), guest if virtual else "cores its threads were placed on"),
        (
            question.fact("limits", "physical_cores_allowed"),
            guest if virtual else "physical cores the job was given",
        ),
    ):
        if count is not None:
            return min(question.concurrency, int(count)), source
    return None, ""


def clock_of(question: Question) -> tuple[float | None, str, Kind]:
    """(clock in Hz, its name, kind): the one the site asks for (default observed), else the next
    that is known.
    """
    clocks = clocks_of(question)
    wanted = question.given("cpu", "clock") or "observed"
    for name in (
        wanted,
        *(other for other in ("observed", "nominal", "maximum") if other != wanted),
    ):
        value, kind = clocks[name]
        if value is not None:
            return value, name, kind
    return None, "", "unknown"


def clocks_of(question: Question) -> dict[str, tuple[float | None, Kind]]:
    """The three clocks by name, each with its kind: observed beside the row, nominal, maximum."""
    read = question.fact("cpu", "clock_hz") or {}
    observed = question.clock_hz if question.clock_hz is not None else read.get("observed")
    clocks: dict[str, tuple[float | None, Kind]] = {"observed": (observed, "measured")}
    for name in ("nominal", "maximum"):
        given = question.given("cpu", f"{name}_hz")
        clocks[name] = (given, "site") if given is not None else (read.get(name), "read")
    return clocks


def operations(question: Question, design: str | None) -> dict[str, str] | None:
    """The best line of operations.csv for a workload on this machine, or None."""
    isa = set(question.fact("cpu", "isa") or ())
    best = question.fact("cpu", "isa_best")
    if not isa:  # a site file alone describes the machine: take all its design can do
        usable = {line["isa"] for line in data.table("operations")}
    else:
        usable = isa | ({"avx512"} if best == "avx512" else set())
        usable -= set() if "fma" in isa else {"avx2"}
        usable -= set() if best == "avx512" else {"avx512_vnni"}
    lines = [
        line
        for line in data.table("operations")
        if design in line["microarchitecture"].split("|")
        and line["workload"] == question.workload
        and line["isa"] in usable
    ]
    return max(lines, key=lambda line: float(line["operations_per_cycle"]), default=None)


def _unknown(question: Question, design: str | None, cycles: float) -> Limit:
    name = design or question.fact("cpu", "model_name") or "this CPU"
    fact, key = (
        f"no operations per cycle for {question.workload} on {name}",
        f"cpu.operations_per_cycle.{question.workload}",
    )
    widest = _ESTIMATE_DP.get(str(question.fact("cpu", "isa_best")))
    lanes = {"DP": 1, "FP32": 2}.get(question.workload)
    if widest is None or lanes is None:
        return question.unknown(fact, key)
    estimate = cycles * widest * lanes
    guess = message("limit-guessed", isa=str(question.fact("cpu", "isa_best")), rate=estimate)
    return question.unknown(fact, key, "", guess)
