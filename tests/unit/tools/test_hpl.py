"""HPL: size of the matrix, input files, environment, choice of the BLAS core type."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.tools import samples

from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import hplsize
from peakmark.tools.programs import hpl
from peakmark.tools.programs.hpl import Hpl, core_type

AVX512 = frozenset({"sse2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq"})
AVX2 = frozenset({"sse2", "avx", "avx2", "fma"})


@settings(deadline=None)
@given(
    budget=st.floats(2, 3600),
    rate=st.floats(1e9, 1e13),
    memory=st.integers(1 << 28, 1 << 42),
    nb=st.sampled_from([64, 192, 256, 384]),
    hpcc=st.booleans(),
)
def test_n_fits_time_and_memory_and_is_the_largest(
    budget: float, rate: float, memory: int, nb: int, hpcc: bool
) -> None:
    n = hplsize.choose_n(budget, rate, memory, nb, hpcc)
    if n is None:
        assert hplsize.wall_seconds(2 * nb, rate, hpcc) > budget
        return
    assert n % nb == 0
    assert 8 * n * n <= 0.8 * memory
    assert hplsize.wall_seconds(n, rate, hpcc) <= budget
    larger = n + nb
    assert 8 * larger * larger > 0.8 * memory or hplsize.wall_seconds(larger, rate, hpcc) > budget


@given(n=st.integers(100, 200_000), rate=st.floats(1e9, 1e13), hpcc=st.booleans())
def test_a_larger_matrix_never_takes_less_time(n: int, rate: float, hpcc: bool) -> None:
    assert hplsize.wall_seconds(n + 64, rate, hpcc) >= hplsize.wall_seconds(n, rate, hpcc)
    assert hplsize.wall_seconds(n, rate, True) > hplsize.wall_seconds(n, rate, False)


def test_the_rate_is_guessed_from_the_facts() -> None:
    slow = hplsize.guess_rate({"clock_hz": {"nominal": 2e9, "maximum": 4e9}}, AVX2, 2)
    assert slow == pytest.approx(2 * 2e9 * 16 * 0.65)
    assert hplsize.guess_rate({"clock_hz": {"nominal": 2e9}}, AVX512, 2) > slow
    assert hplsize.guess_rate(
        {"clock_hz": {"nominal": None, "maximum": 4e9}}, AVX2, 1
    ) == pytest.approx(slow)
    assert hplsize.guess_rate({}, frozenset(), 1) > 0


@pytest.mark.parametrize(("name", "file"), [("xhpl", "HPL.dat"), ("hpcc", "hpccinf.txt")])
def test_input_file(name: str, file: str, tmp_path: Path) -> None:
    cell = samples.cell("cpu", "hpl", "DP", "", None, 2, budget_s=10, nb=128)
    space = samples.workspace(tmp_path, (4, 6, 8))
    command = Hpl().prepare(cell, samples.tool(name), space).command
    lines = command.files[file].splitlines()
    n = int(lines[5].split()[0])
    assert n % 128 == 0
    assert n > 128
    assert lines[7].split()[0] == "128"
    assert [line.split()[0] for line in lines[10:12]] == ["1", "1"]  # one process
    assert len(lines) == 36  # what hpcc reads on is behind what HPL reads
    assert command.argv == ("taskset", "-c", "4,6", f"/usr/bin/{name}")
    assert command.outputs == (() if name == "xhpl" else ("hpccoutf.txt",))
    for library in ("OPENBLAS", "OMP", "MKL", "BLIS"):
        assert command.env[f"{library}_NUM_THREADS"] == "2"
    assert command.env["OPENBLAS_VERBOSE"] == "2"
    assert command.env["TMPDIR"] == str(tmp_path)  # what Open MPI leaves goes with the cell


def test_hpcc_gets_a_smaller_matrix_than_xhpl(tmp_path: Path) -> None:
    cell = samples.cell("cpu", "hpl", "DP", "", None, 2, budget_s=30)
    sizes = {}
    for name, file in (("xhpl", "HPL.dat"), ("hpcc", "hpccinf.txt")):
        command = Hpl().prepare(cell, samples.tool(name), samples.workspace(tmp_path)).command
        sizes[name] = int(command.files[file].splitlines()[5].split()[0])
    assert sizes["hpcc"] < sizes["xhpl"]


def test_little_memory_bounds_the_matrix(tmp_path: Path) -> None:
    cell = samples.cell("cpu", "hpl", "DP", "", None, 1, budget_s=3600, nb=64)
    space = samples.workspace(tmp_path, memory=64 << 20)
    command = Hpl().prepare(cell, samples.tool("xhpl"), space).command
    n = int(command.files["HPL.dat"].splitlines()[5].split()[0])
    assert n == int(math.sqrt(0.8 * (64 << 20) / 8)) // 64 * 64


def test_what_cannot_be_solved(tmp_path: Path) -> None:
    space = samples.workspace(tmp_path)
    for kind, options in ((Unavailable, {"budget_s": 0.1}), (ConfigError, {"nb": 7})):
        cell = samples.cell("cpu", "hpl", "DP", "", None, 1, **options)
        with pytest.raises(kind, match=next(iter(options))):
            Hpl().prepare(cell, samples.tool("xhpl"), space)


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "expected"),
    [
        ("AuthenticAMD", 26, 2, AVX512, "SkylakeX"),
        ("AuthenticAMD", 25, 17, AVX512, "SkylakeX"),
        ("AuthenticAMD", 25, 1, AVX2, None),
        ("GenuineIntel", 6, 85, AVX512, None),
        ("GenuineIntel", 6, 173, AVX512, "SkylakeX"),
        ("GenuineIntel", 6, 60, AVX2, None),
        ("ARM", 65, 3404, frozenset({"neon"}), None),
        (None, None, None, AVX512, None),
    ],
)
def test_core_type(
    vendor: str, family: int, model: int, flags: frozenset[str], expected: str | None
) -> None:
    assert core_type({"vendor": vendor, "family": family, "model": model}, flags) == expected


def test_the_requested_core_type_is_kept(tmp_path: Path) -> None:
    space = samples.workspace(
        tmp_path, vendor="AuthenticAMD", family=26, model=2, isa=sorted(AVX512)
    )
    cell, completed = samples.load("hpl/xhpl-x2")
    command = Hpl().prepare(cell, samples.tool("xhpl"), space).command
    assert command.argv[3:5] == ("env", "OPENBLAS_CORETYPE=SkylakeX")
    parsed = Hpl().parse(cell, dataclasses.replace(completed, argv=command.argv))
    assert parsed.library == {"blas": "OpenBLAS", "core_type": "Zen", "requested": "SkylakeX"}


def test_two_results_are_not_one() -> None:
    cell, completed = samples.load("hpl/xhpl-x2")
    line = next(line for line in completed.stdout.splitlines() if line.startswith("WR"))
    twice = completed.stdout.replace(line, f"{line}\n{line}")
    with pytest.raises(ParseError, match="exactly one test"):
        Hpl().parse(cell, dataclasses.replace(completed, stdout=twice))


def test_hpcc_without_its_file() -> None:
    cell, completed = samples.load("hpl/hpcc-x2")
    lost = dataclasses.replace(completed, files={}, stderr="hpcc: cannot write here\n")
    with pytest.raises(ParseError, match="cannot write here"):
        Hpl().parse(cell, lost)


def test_a_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "hpcc"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    monkeypatch.setattr(hpl.common, "ask", lambda *_: "\tlibmpi.so.40 => not found\n")
    with pytest.raises(Unavailable, match=r"libmpi\.so\.40 is not found"):
        Hpl().find(str(program))
