"""Outputs of versions and machines that are not here, in the forms in which people published them."""

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest
from tests.unit.cases import cases
from tests.unit.tools import samples

from peakmark.errors import ParseError, Unavailable
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

NOTE = "Increasing socket buffer size to 2496\n"  # iperf 3.10.1 and older, esnet/iperf#1223
JSON_CASES = ("iperf3/tcp-x2", "iperf3/udp-x1", "fio/rr-psync-x2")


def pretty(text):
    return json.dumps(json.loads(text), indent=1)


@pytest.mark.parametrize("case", JSON_CASES)
@pytest.mark.parametrize("noisy", [
    lambda text: NOTE + text,
    lambda text: f"note: {{x}} of {{}}\n{NOTE}{text}",
    lambda text: text + "\niperf3: error - unable to close the control socket {3}\n",  # #1631
    lambda text: text + "\n" + text,  # #1716
    lambda text: pretty(text).replace("{\n", '{\n "of no interest": -nan,\n', 1),  # #613
    lambda text: text.replace("{", '{"of": [nan, inf, -inf, nan(0x8)], ', 1),
], ids=("before", "braces", "behind", "twice", "nan", "list"))  # fmt: skip
def test_notes_around_json_are_passed_over(case, noisy):
    text = samples.text_of(case)
    assert noisy(text) != text
    assert samples.values(samples.parse(case, noisy(text))) == samples.values(samples.parse(case))


def test_iperf3_without_the_receivers_rate_needs_the_losses():
    document = json.loads(samples.text_of("iperf3/udp-x1"))
    del document["end"]["sum_received"]
    document["end"]["sum"]["lost_packets"] = -3
    row = samples.only(samples.parse("iperf3/udp-x1", json.dumps(document)))
    assert (row.value, row.details["loss"]) == (document["end"]["sum"]["bits_per_second"], 0.0)
    document["end"]["sum"]["lost_packets"] = None
    with pytest.raises(ParseError, match="neither the rate of the receiver nor"):
        samples.parse("iperf3/udp-x1", json.dumps(document))


@pytest.mark.parametrize("printed", ["nan", "-nan", "NaN", "inf", "-inf", "Infinity", "-nan(ind)"])
@cases("tools")
def test_what_is_no_number_is_told(case, number, name, printed):
    text = samples.text_of(case)
    assert number in text
    bare = number.rpartition(":")[2].strip().partition(" ")[0]
    changed = text.replace(number, number.replace(bare, printed))
    with pytest.raises(ParseError, match=f"(?i){name} is .*(nan|inf).*, which is no number"):
        samples.parse(case, changed)


@pytest.mark.parametrize("residual", ["nan", "-nan", "inf", "             nan", "2.1e+305"])
def test_a_wrong_solution_of_hpl_is_told_whatever_its_residual(residual):
    """OpenMathLib/OpenBLAS#5408: DGEMV gave nan on RISC-V."""
    text = samples.text_of("hpl/failed")
    start, stop = (text.index(word) for word in ("*N)=", "......"))
    changed = f"{text[: start + 4]} {residual} {text[stop:]}"
    with pytest.raises(ParseError, match=rf"residual check FAILED \({residual.strip()[:3]}"):
        samples.parse("hpl/failed", changed)


ROW = "WR01C2R4        5568   192     1     1               9.10             1.2646e+01"
GPU_ROW = "WC0           299008  1024     2     4        52.88       3.370e+05 ( 4.213e+04)"


def test_the_row_of_nvidias_hpl_is_refused():
    text = samples.text_of("hpl/xhpl-x2")
    for row in (GPU_ROW, f"{ROW} 0.5"):
        with pytest.raises(ParseError, match=r"other columns than N NB P Q Time Gflops"):
            samples.parse("hpl/xhpl-x2", text.replace(ROW, row))


@cases("tools")
def test_every_ping_of_iputils_is_known(tmp_path, monkeypatch, printed, version, user, pause):
    monkeypatch.setattr("os.geteuid", lambda: user)
    tool = REGISTRY["ping"].find(samples.script(tmp_path / "ping", f"echo '{printed}'"))
    assert tool.version == version
    cell = samples.cell("ping", "LAT-ICMP", "", 1, 1, count=50)
    run = REGISTRY["ping"].prepare(cell, tool, samples.workspace(tmp_path))
    options = ("-n", "-q", "-c", "50", "-i", f"{pause:g}", "-s", "16", "{address}")
    assert run.argv == (tool.path, *options) and run.timeout_s > 50 * pause


def in_capitals(text):
    """The same output as IOZone 3.420 wrote it (seen of May 2019, and of 2014)."""
    text = text.replace("3.489", "3.420").replace("kBytes", "Kbytes").replace("kB", "KB")
    return text.replace("    write  rewrite", "   write rewrite")


@pytest.mark.parametrize("case", ["single-1m", "t2-1m", "single-ops-4k", "t2-ops-4k"])
def test_iozone_with_capital_units(case):
    name = f"iozone/{case}"
    old = samples.parse(name, in_capitals(samples.text_of(name)))
    assert samples.values(old) == samples.values(samples.parse(name))


@pytest.mark.parametrize("case", ["single-1m", "t2-ops-4k"])
def test_iozone_without_o_direct_is_refused(case):
    """Its makefile compiles linux-powerpc, linux-sparc and linux-s390x with DONT_HAVE_O_DIRECT."""
    text = samples.text_of(f"iozone/{case}").replace("\tO_DIRECT feature enabled\n", "")
    with pytest.raises(Unavailable, match=r"compiled without O_DIRECT.*use fio"):
        samples.parse(f"iozone/{case}", text)


@pytest.mark.parametrize(("version", "is_old"), [("2.15", True), ("2.1.11", True), ("3.1", False)])
def test_old_fio_is_refused(tmp_path, version, is_old):
    tool = REGISTRY["fio"].find(samples.script(tmp_path / "fio", f"echo fio-{version}"))
    cell = samples.cell("fio", "RS", "psync", 1 << 20, 1, size="16MiB")
    with pytest.raises(Unavailable, match="too old") if is_old else nullcontext():
        REGISTRY["fio"].prepare(cell, tool, samples.workspace(tmp_path))


def chase(access_bytes, threads=1):
    """A result of pmbw that walks 256 MiB once, 100 ns for each of 32 Mi loads of 8 B."""
    volume, loads = 256 << 20, 32 << 20
    seconds, count = loads * 100e-9 / threads, volume / access_bytes
    pairs = {
        "version": "0.6.3", "funcname": "PermRead64SimpleLoop", "nthreads": threads,
        "areasize": volume, "testvol": volume, "testaccess": int(count), "time": seconds,
        "bandwidth": volume / seconds, "rate": seconds / count,
    }  # fmt: skip
    text = "\t".join(
        ["RESULT", *(f"{name}={value!r}".replace("'", "") for name, value in pairs.items())]
    )
    argv = ("taskset", "-c", "0", "pmbw", "-f", "PermRead64SimpleLoop")
    cell = samples.cell("pmbw", "LAT", "", volume // threads, threads)
    return REGISTRY["pmbw"].parse(cell, Completed(argv, 0, "", "", {"pmbw.txt": f"{text}\n"}))


@pytest.mark.parametrize("access_bytes", [8, 4])  # x86-64, AArch64 (bingmann/pmbw, funcs_arm64.h)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_load_of_pmbw_takes_as_long_on_arm(access_bytes, threads):
    assert samples.only(chase(access_bytes, threads)).value == pytest.approx(100e-9)


def test_another_count_of_pmbws_accesses_is_refused():
    with pytest.raises(ParseError, match="has 16 B by testvol / testaccess"):
        chase(16)


@cases("tools")
def test_a_narrow_kernel_of_likwid_is_told(test, options, words):
    cell, done = samples.load("likwid-bench/dp-x2")
    routine = "peakflops_avx_fma"
    argv = tuple(test if word == routine else word for word in done.argv)
    changed = replace(done, argv=argv, stdout=done.stdout.replace(routine, test))
    of = replace(cell, options={**cell.options, **options})
    warnings = REGISTRY["likwid-bench"].parse(of, changed).warnings
    assert [words in warning for warning in warnings] == ([True] if words else [])
