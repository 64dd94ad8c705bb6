"""Strict numbers, options, and asking a program for its version."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.tools import REGISTRY, common
from peakmark.tools.documents import Document


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_numbers_as_python_prints_them(value: float) -> None:
    assert common.number(repr(value), "x") == value


@pytest.mark.parametrize(
    "text",
    ["", "1,5", "1_000", "nan", "inf", "-1", "0", "٣", "1.5x", "0x10", "1e999", "1 000", "½"],
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ParseError, match="reading"):
        common.number(text, "reading")


@pytest.mark.parametrize("text", ["", "1.0", "-3", "0", "٣", "1e3"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ParseError, match="count"):
        common.whole(text, "count")


@pytest.mark.parametrize(
    ("slurm", "total", "error", "words"),
    [
        (
            {"cpus_on_node": 2},
            8 << 30,
            MeasurementError,
            "OUT_OF_MEMORY: .*1GiB.*1MiB.*memory_factor",
        ),
        ({"cpus_on_node": 2}, 1 << 30, Unavailable, "1GiB.*1MiB"),
        (None, 8 << 30, Unavailable, "1GiB.*1MiB"),
    ],
)
def test_only_what_a_job_was_not_granted_is_worth_another_try(
    slurm: object, total: int, error: type[Exception], words: str
) -> None:
    facts = {"limits": {"slurm": slurm, "memory_limited_by": "cgroup"}, "memory": {"total": total}}
    space = dataclasses.replace(samples.workspace(memory=1 << 20), facts=facts)
    common.need_memory("pmbw", 900 << 10, space)
    with pytest.raises(error, match=words):
        common.need_memory("pmbw", 1 << 30, space)


@given(st.floats(min_value=0, max_value=1e6))
def test_plain_has_no_exponent(value: float) -> None:
    text = common.plain(value)
    assert "e" not in text
    assert float(text) == pytest.approx(value, abs=1e-9)


def test_contradictions() -> None:
    common.agree(100.0, 100.05, 1e-3, "x")
    with pytest.raises(ParseError, match="contradicts itself"):
        common.agree(100.0, 101.0, 1e-3, "x")


def test_json_is_read_strictly() -> None:
    assert Document.read('{"a": {"b": 2}}', "x").values == {"a": {"b": 2}}
    for text in ('{"a": 1', '{"a": NaN}', '{"a": Infinity}', "[1]", "", '{"a": 1} {"a": 2}'):
        with pytest.raises(ParseError):
            Document.read(text, "x")
    for value in (0, -1, True, None, "1"):
        with pytest.raises(ParseError, match=r"a\.b"):
            Document({"a": {"b": value}}, "x").number("a.b")
    with pytest.raises(ParseError, match=r"a\.c"):
        Document({"a": {"b": 1}}, "x").at("a.c")


def test_sizes_may_be_numbers_or_text() -> None:
    def size(value: object) -> int | None:
        cell = samples.cell("disk", "fio", "RR", "psync", 1, 1, size=value)
        return common.option_size(cell, "size", None)

    assert (size("1MiB"), size(4096.0)) == (1 << 20, 4096)
    with pytest.raises(ConfigError, match="size True"):
        size(True)


def script(path: Path, text: str) -> str:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_a_missing_library_is_told(tmp_path: Path) -> None:
    words = "error while loading shared libraries: libx.so.1: cannot open shared object file"
    with pytest.raises(Unavailable, match=r"libx\.so\.1"):
        common.ask(script(tmp_path / "a", f"echo '{words}' >&2; exit 127\n"), "-v")


def test_the_tool_is_asked_in_the_c_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert common.ask(script(tmp_path / "a", 'echo "$LC_ALL"\n')).strip() == "C"


def test_a_tool_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "_VERSION_TIMEOUT_S", 0.2)
    with pytest.raises(Unavailable, match="did not answer"):
        common.ask(script(tmp_path / "a", "exec sleep 60\n"))


@pytest.mark.parametrize(
    ("cell", "option"),
    [
        (samples.cell("cpu", "cpubench", "DP", "", None, 2), "--cpus"),
        (samples.cell("memory", "rambench", "RS", "block", 1024, 2), "--cpus"),
        (samples.cell("cpu", "hpl", "DP", "", None, 2), "-c"),
        (samples.cell("memory", "likwid-bench", "RS", "block", 1024, 2), "-c"),
        (samples.cell("memory", "pmbw", "RS", "block", 1024, 2), "-c"),
    ],
    ids=lambda one: getattr(one, "instrument", one),
)
def test_programs_of_cpu_and_memory_run_on_the_first_cpus_in_their_order(
    cell: Cell, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of the placement, not that of the numbers: each of the first two is on a socket of
    its own here.
    """
    offered = "load - A loop\nload_avx - A loop\n  ScanRead64PtrUnrollLoop\n"
    monkeypatch.setattr(common, "ask", lambda *_: offered)
    space = samples.workspace(tmp_path, (0, 32, 1, 33), isa=["sse2", "avx"])
    argv = (
        REGISTRY[cell.instrument].prepare(cell, samples.tool(cell.instrument), space).command.argv
    )
    assert argv[argv.index(option) + 1] == "0,32"
