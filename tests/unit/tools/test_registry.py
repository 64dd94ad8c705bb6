"""The registry, what holds for every instrument, and how programs are found and asked."""

import pytest
from tests.unit.tools import samples
from tests.unit.tools.test_outputs import FIRST, GOOD

from peakmark.errors import MeasurementError, Unavailable
from peakmark.tools import REGISTRY, base
from peakmark.tools.programs import perftest
from peakmark.tools.tables import BY_NAME

ASKED = {"pmbw", "likwid-bench"}
"""They are asked for their routines before they are started."""


@pytest.mark.parametrize("case", GOOD)
def test_estimates_and_commands(case, tmp_path, monkeypatch):
    monkeypatch.setattr(perftest, "PORTS", samples.ports(tmp_path / "infiniband"))
    cell, _ = samples.load(case)
    instrument = REGISTRY[cell.instrument]
    cost = instrument.estimate(cell)
    assert cost.seconds > 0 and cost.memory_bytes > 0
    assert (cost.disk_bytes > 0) == (cell.subsystem == "disk")
    if instrument.name in ASKED:
        return
    tool = samples.tool(instrument.executables[0])
    invocation = instrument.prepare(cell, tool, samples.workspace(tmp_path))
    for command in filter(None, (invocation, invocation.server)):
        assert command.env["LC_ALL"] == "C"
        assert command.timeout_s >= max(60, 5 * cost.seconds)
        assert all(isinstance(word, str) and word for word in command.argv)
        assert ("{address}" in command.argv) <= instrument.two_nodes
    with_server = instrument.two_nodes and instrument.name != "ping"
    assert (invocation.server is not None) == with_server


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_wrong_cells_and_programs_that_are_not_the_tool(name, tmp_path):
    good, _ = samples.load(FIRST[name])
    for workload, variant in (("NOSUCH", good.variant), (good.workload, "no-variant")):
        with pytest.raises(Unavailable) as caught:
            samples.command(samples.cell(name, workload, variant, good.block, good.concurrency))
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    silent = samples.script(tmp_path / "silent", "exit 0")
    (tmp_path / "plain").write_text("not a program")
    paths = [str(tmp_path / "plain"), str(tmp_path / "missing")]
    # A node may lack the MPI library; other kernels can be compiled again.
    has_kernel = not REGISTRY[name].reference and name != "mpibench"
    for path in (*paths, *([silent] if name != "hpl" else [])):
        with pytest.raises(MeasurementError if has_kernel else Unavailable) as failed:
            REGISTRY[name].find(path)
        assert path in str(failed.value)


def test_a_reference_has_a_column_in_every_table_that_one_of_its_workloads_fills():
    for name in ("mpi_latency", "mpi_throughput", "mpi_message_rate"):
        assert "osu" in [program.instrument for program in BY_NAME[name].references], name


def test_a_program_that_gives_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_VERSION_TIMEOUT_S", 0.2)
    lost = "echo 'while loading shared libraries: libx.so.1: cannot open' >&2; exit 127"
    for text, words in ((lost, "libx"), ("kill -SEGV $$", "SIGSEGV")):
        with pytest.raises(Unavailable, match=words):
            base.ask(samples.script(tmp_path / "a", text), "-v")
    # The node may be busy.
    with pytest.raises(MeasurementError, match="did not answer"):
        base.ask(samples.script(tmp_path / "a", "exec sleep 60"), "-v")


def test_the_tool_is_asked_in_the_c_locale(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert base.ask(samples.script(tmp_path / "a", 'echo "$LC_ALL"')).strip() == "C"


def test_ping_without_rights_is_not_here(tmp_path):
    """As in a minimal Debian 13, where an ordinary user's ping tells its version and then fails."""
    refused = "ping: socktype: SOCK_RAW\nping: socket: Operation not permitted"
    text = f'[ "$1" = -V ] && echo "ping from iputils 20240905" || echo "{refused}" >&2'
    with pytest.raises(Unavailable) as reason:
        REGISTRY["ping"].find(samples.script(tmp_path / "ping", text))
    assert "may not open its socket" in str(reason.value)


def test_hpl_without_a_library(tmp_path, monkeypatch):
    program = tmp_path / "hpcc"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    monkeypatch.setattr(base, "ask", lambda *_: "\tlibmpi.so.40 => not found\n")
    with pytest.raises(Unavailable, match=r"libmpi\.so\.40 is not found"):
        REGISTRY["hpl"].find(str(program))
