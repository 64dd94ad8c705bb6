"""pmbw and likwid-bench: sizes, memory, routines, like for like with rambench."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.reasons import Unavailable
from peakmark.tools import REGISTRY, common
from peakmark.tools.programs import likwid_bench, pmbw

OFFERED = [
    "ScanWrite64PtrUnrollLoop", "ScanRead64PtrSimpleLoop", "ScanRead64IndexSimpleLoop",
    "ScanRead128PtrSimpleLoop", "ScanRead256PtrSimpleLoop", "ScanRead256PtrUnrollLoop",
    "PermRead64SimpleLoop", "PermRead64UnrollLoop",
]  # fmt: skip
LIKWID = frozenset(
    stem + suffix
    for stem in ("load", "store", "copy", "store_mem", "copy_mem", "peakflops", "peakflops_sp")
    for suffix in ("", "_sse", "_avx", "_avx512", "_avx_fma", "_avx512_fma")
    if not (suffix.endswith("fma") and not stem.startswith("peak"))
)
AVX2 = frozenset({"sse2", "avx", "avx2", "fma"})


def memory(
    instrument: str, workload: str, variant: str, block: int, n: int, **options: object
) -> Cell:
    return samples.cell("memory", instrument, workload, variant, block, n, **options)


@given(area=st.integers(1, 1 << 40), threads=st.integers(1, 512))
def test_pmbw_gets_a_power_of_two_that_holds_all_areas(area: int, threads: int) -> None:
    size = pmbw.memory_for(area, threads)
    assert size & (size - 1) == 0
    assert size >= area
    assert (
        size >= threads * (4 * 1024 + 16) * 1024
    )  # each thread's part lies at least so far from the next
    assert size >= threads * (-(-area // threads))
    assert size < 2 * max(
        area + threads * 512, threads * (4 * 1024 + 16) * 1024
    )  # and no more than needed


def test_pmbw_takes_the_widest_routines() -> None:
    assert pmbw.widest("ScanRead", OFFERED) == [
        "ScanRead256PtrSimpleLoop",
        "ScanRead256PtrUnrollLoop",
    ]
    assert pmbw.widest("ScanWrite", OFFERED) == ["ScanWrite64PtrUnrollLoop"]
    assert pmbw.widest("PermRead64SimpleLoop", OFFERED) == ["PermRead64SimpleLoop"]
    with pytest.raises(Unavailable, match="ScanWrite"):
        pmbw.widest("ScanWrite", ["ScanRead64PtrSimpleLoop"])


@pytest.mark.parametrize(
    ("workload", "variant", "flags", "test"),
    [
        ("DP", "", AVX2, "peakflops_avx_fma"),
        ("DP", "", AVX2 | {"avx512f"}, "peakflops_avx512_fma"),
        ("DP", "", {"sse2", "avx"}, "peakflops_avx"),
        ("DP", "", {"sse2"}, "peakflops_sse"),
        ("FP32", "", AVX2, "peakflops_sp_avx_fma"),
        ("FP32", "", frozenset(), "peakflops_sp"),
        ("RS", "block", AVX2, "load_avx"),
        ("RS", "pool", AVX2, "load_avx"),
        ("WS", "block", AVX2, "store_avx"),
        ("WS", "pool", AVX2 | {"avx512f"}, "store_mem_avx512"),
        ("RWS", "pool", AVX2, "copy_mem_avx"),
        ("RWS", "block", {"sse2"}, "copy_sse"),
    ],
)
def test_likwid_kernels(workload: str, variant: str, flags: frozenset[str], test: str) -> None:
    subsystem = "memory" if variant else "cpu"
    cell = samples.cell(
        subsystem, "likwid-bench", workload, variant, 1 << 20 if variant else None, 2
    )
    run = likwid_bench.plan(cell, LIKWID, frozenset(flags))
    assert run.test == test
    assert run.iterations >= 10


@pytest.mark.parametrize(
    ("workload", "variant", "store", "test"),
    [
        ("WS", "pool", "temporal", "store_avx"),
        ("RWS", "pool", "streaming", "copy_mem_avx"),
        ("RWS", "block", "streaming", "copy_mem_avx"),
        ("RS", "pool", "libc", "load_avx"),
    ],
)
def test_likwid_stores_as_the_row_does(workload: str, variant: str, store: str, test: str) -> None:
    cell = memory("likwid-bench", workload, variant, 1 << 20, 2, store=store)
    assert likwid_bench.plan(cell, LIKWID, AVX2).test == test


def test_a_reference_with_other_stores_stays_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        common, "ask", lambda *_: "\n".join([*OFFERED, "ScanWrite256PtrSimpleLoop"])
    )
    libc = memory("likwid-bench", "WS", "pool", 1 << 20, 1, store="libc")
    with pytest.raises(Unavailable, match="memcpy"):
        likwid_bench.plan(libc, LIKWID, AVX2)
    with pytest.raises(Unavailable, match="set store: temporal"):
        pmbw.needs(memory("pmbw", "WS", "pool", 1 << 20, 1))
    assert pmbw.needs(memory("pmbw", "WS", "pool", 1 << 20, 1, store="temporal")) == (pmbw.WRITE,)
    assert pmbw.needs(memory("pmbw", "WS", "block", 1 << 20, 1)) == (pmbw.WRITE,)
    assert pmbw.needs(memory("pmbw", "ALL", "pool", 1 << 20, 1)) == (pmbw.READ,)
    assert pmbw.needs(memory("pmbw", "ALL", "pool", 1 << 20, 1, store="temporal")) == (
        pmbw.READ,
        pmbw.WRITE,
    )


@pytest.mark.parametrize(
    ("workload", "told"), [("WS", True), ("RWR", True), ("RS", False), ("LAT", False)]
)
def test_rambench_is_told_the_stores_where_it_writes(workload: str, told: bool) -> None:
    cell = memory(
        "rambench", workload, "" if workload == "LAT" else "pool", 1 << 20, 1, store="temporal"
    )
    command = (
        REGISTRY["rambench"].prepare(cell, samples.tool("rambench"), samples.workspace()).command
    )
    assert ("--store" in command.argv) == told


def test_likwid_works_on_the_bytes_that_rambench_does() -> None:
    """A block is one buffer of each thread; a pool holds all buffers of all threads."""
    sizes = {
        ("RS", "block"): 3 << 20,
        ("WS", "block"): 3 << 20,
        ("RWS", "block"): 6 << 20,
        ("RS", "pool"): 1 << 28,
        ("RWS", "pool"): 1 << 28,
    }
    for (workload, variant), size in sizes.items():
        cell = memory("likwid-bench", workload, variant, 1 << 20, 3, pool="256MiB")
        assert likwid_bench.plan(cell, LIKWID, AVX2).size == size


def test_likwid_repeats_longer_for_more_seconds() -> None:
    short, long = (
        likwid_bench.plan(
            memory("likwid-bench", "RS", "block", 1 << 20, 1, seconds=s), LIKWID, AVX2
        ).iterations
        for s in (1, 4)
    )
    assert long == pytest.approx(4 * short, rel=0.01)


@pytest.mark.parametrize("pool, least", [("1MiB", 10), ("1GiB", 10), ("2GiB", 2), ("16GiB", 2)])
def test_likwid_walks_a_large_pool_no_oftener_than_it_takes_to_time_it(
    pool: str, least: int
) -> None:
    cell = memory("likwid-bench", "RS", "pool", 1 << 20, 1, pool=pool, seconds=1e-6)
    assert likwid_bench.plan(cell, LIKWID, AVX2).iterations == least


def test_a_short_likwid_run_is_marked() -> None:
    cell, completed = samples.load("likwid-bench/rs-block-x1")
    short = completed.stdout.replace("1.620864e+00", "1.620864e-02").replace(
        "37017.30", "3701730.00"
    )
    parsed = REGISTRY["likwid-bench"].parse(cell, dataclasses.replace(completed, stdout=short))
    assert any("0.016 s" in warning for warning in parsed.warnings)
