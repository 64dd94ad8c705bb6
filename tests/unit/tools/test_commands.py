"""What each program is started with, and which cells it cannot measure."""

import dataclasses
import math
import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cases import cases
from tests.unit.tools import samples
from tests.unit.tools.samples import cell, command

from peakmark.errors import ConfigError, MeasurementError, Unavailable
from peakmark.storage.record_types import RecordContext
from peakmark.tools import REGISTRY, base, common
from peakmark.tools.programs import hpl, likwid_bench, perftest, pmbw

MIB = 1 << 20

SCANS = """ScanWrite64PtrUnrollLoop ScanRead64PtrSimpleLoop ScanRead64IndexSimpleLoop
ScanRead128PtrSimpleLoop ScanRead256PtrSimpleLoop ScanRead256PtrUnrollLoop PermRead64SimpleLoop"""
TESTS = ("load", "load_avx", "load_avx512", "copy_avx", "copy_mem_avx")
OFFERED = "\n  ".join(SCANS.split()) + "\n" + "".join(f"{name} - text\n" for name in TESTS)
"""Routines, as pmbw and likwid-bench list theirs."""

AVX2 = frozenset({"sse2", "avx", "avx2", "fma"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


@pytest.fixture(autouse=True)
def offered(monkeypatch):
    monkeypatch.setattr(base, "ask", lambda *_: OFFERED)


def space(**more):
    return samples.workspace(cpus=(2, 3, 4), isa=["sse2", "avx"], **more)


@cases("tools")
def test_command(of, words):
    of = samples.listed(of)
    argv = [*command(of, space()).argv]
    argv = argv[argv.index(f"/usr/bin/{of.instrument}") :]
    assert " ".join(argv) == f"/usr/bin/{words}"


@cases("tools")
def test_option(of, has, lacks):
    cpus = (4, 2, 3) if lacks == "2,4" else (2, 3, 4)
    words = " ".join(
        command(samples.listed(of), samples.workspace(cpus=cpus, isa=["sse2", "avx"])).argv
    )
    assert has in words and f" {lacks}" not in words


@pytest.mark.parametrize(("name", "workload", "words"), [
    ("netbench", "UDP", "serve --address {address} --port {port}"),
    ("iperf3", "UDP", "--server --one-off --port {port} --bind {address}"),
    ("qperf", "ALL", "--listen_port {port}"),
])  # fmt: skip
def test_server(name, workload, words):
    of = cell(name, workload, "", 1024, 1)
    invocation = REGISTRY[name].prepare(of, samples.tool(name), space())
    assert " ".join(invocation.server.argv).startswith(f"/usr/bin/{name} {words}")
    assert invocation.server.timeout_s > invocation.timeout_s
    keys = {side.env.get("NETBENCH_KEY") for side in (invocation, invocation.server)}
    assert keys == ({"{key}"} if name == "netbench" else {None})
    # Since 3.14 iperf3 ends with 1 after an error; the sentence is in the JSON.
    assert (1 in invocation.ok_codes) == (name == "iperf3")


@pytest.mark.parametrize(("workload", "block", "options", "words"), [
    ("PINGPONG", 8, {}, "ib_send_lat -F -d mlx5_1 -i 1 -p {port} -s 8 -n 100000"),
    ("RATE", 64 << 10, {}, "ib_write_bw -F -d mlx5_1 -i 1 -p {port} -s 65536 -n 65536 -N -t 64"),
    ("RATE", 4 * MIB, {"count": 50}, "ib_write_bw -F -d mlx5_1 -i 1 -p {port} -s 4194304 -n 50 -N -t 64"),
])  # fmt: skip
def test_perftest_takes_the_fastest_active_port(
    workload, block, options, words, tmp_path, monkeypatch
):
    monkeypatch.setattr(perftest, "PORTS", samples.ports(tmp_path))
    client = command(cell("perftest", workload, "2-nodes", block, 1, **options))
    assert " ".join(client.server.argv) == f"/usr/bin/{words}"
    assert client.argv == (*client.server.argv, "{address}")
    assert client.server.timeout_s > client.timeout_s
    monkeypatch.setattr(perftest, "PORTS", tmp_path / "none")
    with pytest.raises(Unavailable, match="this node has no active InfiniBand or RoCE port"):
        command(cell("perftest", workload, "2-nodes", block, 1))


@cases("tools")
def test_a_cell_that_the_program_cannot_measure(of, words):
    with pytest.raises(Unavailable, match=words) as caught:
        command(samples.listed(of), space())
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@cases("tools")
def test_a_cell_of_a_wrong_configuration(of, words):
    with pytest.raises(ConfigError, match=words) as caught:
        command(samples.listed(of), space())
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(("slurm", "total", "error", "words"), [
    ({"cpus": 2}, 8 << 30, MeasurementError, "OUT_OF_MEMORY: .*1GiB.*1MiB.*memory_factor"),
    ({"cpus": 2}, 1 << 30, Unavailable, "1GiB.*1MiB"),
    (None, 8 << 30, Unavailable, "1GiB.*1MiB"),
])  # fmt: skip
def test_a_small_job_is_worth_another_try(slurm, total, error, words):
    facts = {"limits": {"slurm": slurm, "memory_limited_by": "cgroup"}, "memory": {"total": total}}
    small = samples.workspace(memory=1 << 20, facts=facts)
    common.need_memory("pmbw", 900 << 10, small)
    with pytest.raises(error, match=words):
        common.need_memory("pmbw", 1 << 30, small)


# -- disk


def test_writes_that_wait_and_iozone_s_sleeps_have_more_time():
    for name, workload in (("diskbench", "WS"), ("fio", "WS"), ("iozone", "ALL")):
        plain, longer = (
            REGISTRY[name].estimate(cell(name, workload, "psync", 4096, 1, size=MIB, total=MIB, **sync))
            for sync in ({}, {"sync": "each"})
        )  # fmt: skip
        assert longer.seconds > plain.seconds + 0.4
    cells = [cell("iozone", "ALL", "psync", MIB, n, size=64 * MIB) for n in (1, 2)]
    one, two = map(REGISTRY["iozone"].estimate, cells)
    assert one.seconds < 5
    assert two.fixed_s - one.fixed_s == 24  # six phases, 2 s before and after each
    assert one.disk_bytes == two.disk_bytes == 64 * MIB


BY_SECTORS = [("iozone", "ALL"), ("fio", "RR")]


@pytest.mark.parametrize(("name", "workload"), BY_SECTORS)
def test_a_record_that_no_sector_holds_is_refused(name, workload):
    facts = {"storage": {"logical_block_size": 4096, "scratch": "/scratch"}}
    for block, larger in ((1024, "4KiB"), (6 << 10, "8KiB")):
        with pytest.raises(Unavailable, match=f"/scratch .*4096 B.*{larger}"):
            command(cell(name, workload, "psync", block, 1), space(facts=facts))
    assert command(cell(name, workload, "psync", 4096, 1), space(facts=facts))


# -- memory


@given(area=st.integers(1, 1 << 40), threads=st.integers(1, 512))
def test_pmbw_gets_a_power_of_two_that_holds_all_areas(area, threads):
    size, apart = pmbw.memory_for(area, threads), threads * (4 * 1024 + 16) * 1024
    assert size & (size - 1) == 0
    # Each thread's part lies at least so far from the next; and no more than needed.
    assert max(area, apart, threads * (-(-area // threads))) <= size
    assert size < 2 * max(area + threads * 512, apart)


def test_pmbw_without_the_routines_of_a_cell(monkeypatch):
    monkeypatch.setattr(base, "ask", lambda *_: "ScanRead64PtrSimpleLoop")
    with pytest.raises(Unavailable, match="ScanWrite"):
        command(cell("pmbw", "WS", "pool", MIB, 1, store="temporal"), space())


WITH_FMA = ("peakflops", "peakflops_sp", "stream")
"""Kernels of likwid-bench that it also has with fused multiply-adds."""
LIKWID = frozenset(
    stem + suffix
    for stem in ("load", "store", "copy", "store_mem", "copy_mem", "stream_mem", *WITH_FMA)
    for suffix in ("", "_sse", "_avx", "_avx512", "_avx_fma", "_avx512_fma")
    if not (suffix.endswith("fma") and stem not in WITH_FMA)
)
SVE = [f"_sve{bits}" for bits in (128, 256, 512)]
ARM_PEAK = ("peakflops", "peakflops_fma", "peakflops_sp", "peakflops_sp_fma")
LIKWID_5_2 = frozenset([*ARM_PEAK, "load", "store", "copy"])
LIKWID_5_4 = LIKWID_5_2 | {
    *(f"peakflops{sp}_neon{fma}" for sp in ("", "_sp") for fma in ("", "_fma")),
    *(f"peakflops{sp}{sve}{fma}" for sp in ("", "_sp") for sve in SVE for fma in ("", "_fma")),
    *(f"{stem}{suffix}" for stem in ("load", "store") for suffix in ("_neon", *SVE)),
}
OF_LIKWID = {
    "x86": LIKWID,
    "likwid 5.2": LIKWID_5_2,
    "likwid 5.4": LIKWID_5_4,
    "POWER": frozenset(
        ["load", "load_vsx4", "copy_vsx4", "copy_vsx4_mem", "store_mem", "stream_triad_vsx4"]
    ),
    "peakflops alone": frozenset({"peakflops", "peakflops_neon"}),
}
"""Kernels that likwid-bench may offer."""


@cases("tools")
def test_kernel_of_likwid(workload, variant, options, offered, flags, test):
    of = cell("likwid-bench", workload, variant, MIB if variant else None, 2, **options)
    if test is None:
        with pytest.raises(Unavailable, match="no routine"):
            likwid_bench.plan(of, OF_LIKWID[offered], frozenset(flags.split()))
        return
    run = likwid_bench.plan(of, OF_LIKWID[offered], frozenset(flags.split()))
    assert run.test == test and run.iterations >= 10


def test_likwid_works_on_the_bytes_of_rambench_as_often_as_it_takes():
    """A block is one buffer of each thread; a pool holds all buffers of all threads."""

    def plan(workload, variant, threads=1, **options):
        of = cell("likwid-bench", workload, variant, MIB, threads, **options)
        return likwid_bench.plan(of, LIKWID, AVX2)

    sizes = {"RS-block": 3 << 20, "WS-block": 3 << 20, "RWS-block": 6 << 20, "TRIAD-block": 9 << 20}
    walked = dict.fromkeys(["RS-pool", "RWS-pool", "TRIAD-pool"], 1 << 28)
    for row, size in (sizes | walked).items():
        assert plan(*row.split("-"), 3, pool="256MiB").size == size
    pools = {"1MiB": 10, "1GiB": 10, "2GiB": 2, "16GiB": 2}
    for pool, iterations in pools.items():
        assert plan("RS", "pool", pool=pool, seconds=1e-6).iterations == iterations
    short, long = (plan("RS", "block", seconds=seconds).iterations for seconds in (1, 4))
    assert long == pytest.approx(4 * short, rel=0.01)


# -- HPL


def n_of(name, memory=8 << 30, **options):
    """The size of the matrix in the input file that HPL gets."""
    of = cell("hpl", "DP", "", None, 2, **{"budget_s": 30, **options})
    (text,) = command(of, samples.workspace(memory=memory), name).files.values()
    return int(text.splitlines()[5].split()[0])


@given(
    budget=st.floats(2, 3600), rate=st.floats(1e9, 1e13), memory=st.integers(1 << 28, 1 << 42),
    nb=st.sampled_from([64, 192, 256, 384]), hpcc=st.booleans(),
)  # fmt: skip
def test_n_is_the_largest(budget, rate, memory, nb, hpcc):
    n = hpl.choose_n(budget, rate, memory, nb, hpcc)
    if n is None:
        assert hpl.wall_seconds(2 * nb, rate, hpcc) > budget
        return
    assert n % nb == 0
    assert 8 * n * n <= memory
    assert hpl.wall_seconds(n, rate, hpcc) <= budget
    assert hpl.wall_seconds(n, rate, True) > hpl.wall_seconds(n, rate, False)
    larger = n + nb
    assert 8 * larger * larger > memory or hpl.wall_seconds(larger, rate, hpcc) > budget


@pytest.mark.parametrize(("processes", "rows", "columns"), [
    (1, 1, 1), (2, 1, 2), (4, 2, 2), (7, 1, 7), (8, 2, 4), (12, 3, 4), (48, 6, 8),
])  # fmt: skip
def test_the_grid_of_processes_is_nearly_square(processes, rows, columns):
    assert hpl.process_grid(processes) == (rows, columns)


def test_hpl_over_nodes_starts_a_process_on_each_socket():
    options = {"memory": 0.5, "nb": 64, "node_bytes": 1 << 30, "cpus": "0,1:2,3"}
    of = cell("hpl", "HPL", "4-nodes", None, 4, ranks="socket", **options)
    run = command(of, samples.workspace(memory=2 << 30), "xhpl")
    lines = run.files["HPL.dat"].splitlines()
    n, p, q = (int(lines[number].split()[0]) for number in (5, 10, 11))
    assert n == int(math.sqrt(0.5 * 4 * (1 << 30) / 8)) // 64 * 64 and (p, q) == (2, 4)
    assert run.ranks == 2 and "0,1:2,3" in run.argv
    assert {"OPENBLAS_NUM_THREADS=2", "OMP_NUM_THREADS=2"} <= set(run.argv)


@pytest.mark.parametrize(("name", "file"), [("xhpl", "HPL.dat"), ("hpcc", "hpccinf.txt")])
def test_input_file_and_environment_of_hpl(name, file, tmp_path):
    of = cell("hpl", "DP", "", None, 2, budget_s=10, nb=128)
    run = command(of, samples.workspace(tmp_path, (4, 6, 8)), name)
    lines = run.files[file].splitlines()
    n, nb, p, q = (int(lines[number].split()[0]) for number in (5, 7, 10, 11))
    assert n % 128 == 0 and n > 128
    assert (nb, p, q) == (128, 1, 1)  # one process
    assert len(lines) == 36  # what hpcc reads on is behind what HPL reads
    assert run.argv == ("taskset", "-c", "4,6", f"/usr/bin/{name}")
    assert run.outputs == ((file,) if name == "xhpl" else (file, "hpccoutf.txt"))
    for library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
        assert run.env[f"{library}_NUM_THREADS"] == "2"
    assert run.env["OPENBLAS_VERBOSE"] == "2"
    assert run.env["TMPDIR"] == str(tmp_path)  # what Open MPI leaves goes with the cell


def test_netbench_is_granted_its_messages():
    """Each stream's buffer holds a message of TCP, which may be 64 MiB."""
    sizes = [
        REGISTRY["netbench"].estimate(cell("netbench", "TCP", "", size, 8))
        for size in (1024, 64 * MIB)
    ]
    assert sizes[0].memory_bytes == 12 * MIB
    assert sizes[1].memory_bytes > 8 * 64 * MIB


def test_hpcc_and_little_memory_make_the_matrix_smaller():
    assert n_of("hpcc") < n_of("xhpl")
    little = n_of("xhpl", memory=64 << 20, budget_s=3600, nb=64)
    assert little == int(math.sqrt(0.8 * (64 << 20) / 8)) // 64 * 64
    # The rate is guessed from the facts.
    slow = hpl.guess_rate({"clock_hz": {"nominal": 2e9, "maximum": 4e9}}, AVX2, 2)
    assert slow == pytest.approx(2 * 2e9 * 16 * 0.65)
    assert hpl.guess_rate({"clock_hz": {"nominal": 2e9}}, AVX512, 2) > slow
    fast = hpl.guess_rate({"clock_hz": {"nominal": None, "maximum": 4e9}}, AVX2, 1)
    assert fast == pytest.approx(slow)
    assert hpl.guess_rate({}, frozenset(), 1) > 0


@pytest.mark.parametrize(("vendor", "family", "model", "flags", "expected"), [
    ("AuthenticAMD", 26, 2, AVX512, "SkylakeX"), ("AuthenticAMD", 25, 17, AVX512, "SkylakeX"),
    ("AuthenticAMD", 25, 1, AVX2, None), ("GenuineIntel", 6, 85, AVX512, None),
    ("GenuineIntel", 6, 173, AVX512, "SkylakeX"), ("GenuineIntel", 6, 60, AVX2, None),
    ("ARM", 65, 3404, frozenset({"neon"}), None), (None, None, None, AVX512, None),
])  # fmt: skip
def test_core_type(vendor, family, model, flags, expected):
    of, done = samples.load("hpl/xhpl-x2")
    cpu = {"vendor": vendor, "family": family, "model": model, "isa": sorted(flags)}
    argv = command(of, samples.workspace(**cpu), "xhpl").argv
    words = ("env", f"OPENBLAS_CORETYPE={expected}") if expected else ()
    assert argv[3:-1] == words
    parsed = REGISTRY["hpl"].parse(of, dataclasses.replace(done, argv=argv))
    assert parsed.library == {"blas": "OpenBLAS", "core_type": "Zen", "requested": expected}
    kept = typing.get_type_hints(RecordContext)["library"]
    assert msgspec.convert(dict(parsed.library), kept) == parsed.library
