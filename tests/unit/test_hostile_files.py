"""What files and processes can do to a campaign: each kind ends in one sentence, counts for nothing, and waits for ever
nowhere. Full disks: tests/faults/test_full.py; damaged bytes: test_integrity.py.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark import cli, machine
from peakmark.cell import Cell
from peakmark.errors import MeasurementError, RecordError
from peakmark.measuring.measure import Request, measure
from peakmark.planning import plan
from peakmark.running import resume
from peakmark.storage import facts, integrity, records
from peakmark.storage.campaign import Campaign
from peakmark.storage.results import Results

KERNELS = Path(__file__).resolve().parents[2] / "build" / "kernels"
CELL = Cell("cpu", "cpubench", "SP", "", None, 1, "any", 0, {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "auto"})
LIMIT_S = 60


@dataclass
class Said:
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def peakmark(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Said]]:
    """The command line; what it waits for for ever ends the test."""

    def run(*words: object) -> Said:
        signal.alarm(LIMIT_S)
        try:
            code = cli.main([str(word) for word in words])
        finally:
            signal.alarm(0)
        return Said(code, *capsys.readouterr())

    def late(*_: object) -> None:
        raise AssertionError(f"it did not end within {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    yield run
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The facts of this machine, which take a moment to collect."""
    folder = tmp_path_factory.mktemp("facts") / "machine"
    machine.cached(folder)
    return folder


def program(path: Path, content: str | bytes) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o755)


def of_another_machine(content: bytes) -> bytes:
    """An ELF file of a machine that nobody has: e_machine of <elf.h> is at offset 18."""
    return content[:18] + b"\x29\x01" + content[20:]


REAL = str(KERNELS / "cpubench")
BROKEN_KERNELS: dict[str, Callable[[bytes], str | bytes]] = {
    "empty": lambda _: b"",
    "of ten bytes": lambda content: content[:10],
    "cut off": lambda content: content[: len(content) // 2],
    "for another architecture": of_another_machine,
    "no program": lambda _: b"\x7fno program at all, but long enough",
    "silent": lambda _: "#!/bin/sh\nexit 0\n",
    "ended by a signal": lambda _: "#!/bin/sh\nkill -SEGV $$\n",
    "another program": lambda _: "#!/bin/sh\necho fio-3.33\n",
    "without its library": lambda _: "#!/bin/sh\necho 'libgone.so: cannot open' >&2; exit 127\n",
    "ended by a signal while it measures": lambda _: (
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\nkill -BUS $$\n'
    ),
    "silent while it measures": lambda _: f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\nexit 0\n',
    "of half an answer": lambda _: (
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\n{REAL} "$@" | head -c 100\n'
    ),
}


@pytest.mark.parametrize("kind", BROKEN_KERNELS)
def test_a_broken_kernel_is_a_failure_and_measures_when_it_is_mended(kind: str, known: Path, tmp_path: Path) -> None:
    kernels, campaign = tmp_path / "kernels", tmp_path / "results" / "c"
    kernels.mkdir()
    whole = (KERNELS / "cpubench").read_bytes()
    program(kernels / "cpubench", BROKEN_KERNELS[kind](whole))
    shutil.copytree(known, campaign / "machine")
    output = campaign / "cells" / f"{CELL.id}.json"
    with pytest.raises(MeasurementError) as failure:
        measure(Request(CELL, output, campaign, kernels))
    assert not output.exists()
    attempt = records.read(campaign / "attempts" / CELL.id / "0.json")
    assert attempt["status"] == "failed"
    assert str(attempt["reason"]) in str(failure.value) and "\n" not in str(failure.value)
    program(kernels / "cpubench", whole)
    assert measure(Request(CELL, output, campaign, kernels))["status"] == "ok"


def test_only_77_is_final(known: Path, tmp_path: Path) -> None:
    program(
        tmp_path / "cpubench", f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\necho no FMA >&2; exit 77\n'
    )
    output = tmp_path / "c" / "cells" / f"{CELL.id}.json"
    shutil.copytree(known, tmp_path / "c" / "machine")
    measure(Request(CELL, output, tmp_path / "c", tmp_path))
    assert (records.read(output)["status"], records.read(output)["reason"]) == ("unavailable", "no FMA")


def test_doctor_starts_every_kernel(
    tmp_path: Path, peakmark: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "build" / "kernels"
    built.mkdir(parents=True)
    for path in (KERNELS / name for name in ("rambench", "diskbench", "netbench")):
        (built / path.name).symlink_to(path)
    program(built / "cpubench", (KERNELS / "cpubench").read_bytes()[:5000])
    monkeypatch.chdir(tmp_path)
    done = peakmark("doctor")
    assert done.returncode == 1
    lines = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert lines["cpubench"].startswith("broken") and "make clean kernels" in lines["cpubench"]
    assert lines["rambench"].startswith("ok")


def stored(folder: Path, of: Cell = CELL, **changes: Any) -> Path:
    """A sealed record of ``of``, changed before it was sealed."""
    path = folder / "cells" / f"{of.id}.json"
    measured = make.measurement(of, "rate", 4e9) | changes.pop("measured", {})
    record = make.record(of, [measured], context=changes.pop("context", None)) | {"raw": {}} | changes
    records.write_file(path, records.text_of(record))
    return path


SEALED: dict[str, tuple[dict[str, Any], str]] = {
    "failed": ({"status": "failed", "reason": "no luck"}, "failed attempt"),
    "unit of another metric": ({"measured": {"unit": "B/s"}}, "SP as rate in B/s, which is rate in op/s"),
    "metric of another subsystem": ({"measured": {"metric": "iops", "unit": "1/s"}}, "which is rate in op/s"),
    **{
        words: (
            {"status": "unavailable", "reason": f"/b/cpubench {words}", "measurements": []},
            "a kernel that did not start",
        )
        for words in (
            "cannot be executed: Exec format error",
            "--version did not answer in 10 s",
            "does not look like cpubench: asked for its version it printed 'nothing'",
        )
    },
}


@pytest.mark.parametrize("kind", SEALED)
def test_a_sealed_record_that_is_no_answer_is_measured_again(kind: str, tmp_path: Path) -> None:
    changes, words = SEALED[kind]
    path = stored(tmp_path, **changes)
    finding = integrity.look(path, CELL)
    assert finding.state == integrity.DAMAGED
    assert words in finding.reason and str(path) in finding.reason
    assert integrity.set_aside(tmp_path, CELL) is not None


def test_a_record_of_another_node_is_not_that_nodes(tmp_path: Path) -> None:
    first, second = (Cell.from_json({**CELL.to_json(), "node": name}) for name in ("node1", "node2"))
    stored(tmp_path, second, context={"host": "node2.cluster.example"})
    good = stored(tmp_path, first, context={"host": "node1"})
    assert integrity.look(good, first).state == integrity.GOOD
    finding = integrity.look(stored(tmp_path, first, context={"host": "node2"}), first)
    assert finding.state == integrity.DAMAGED
    assert "measured on node2, another node" in finding.reason
    # Slurm may call a node otherwise than it calls itself.
    assert integrity.look(stored(tmp_path, first, context={"host": "ip-10-0-0-1"}), first).state == integrity.GOOD


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
@pytest.mark.parametrize("place", ["record", "raw output", "plan", "facts"])
def test_what_is_no_file_is_never_waited_for(
    kind: str, place: str, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = make.write(tmp_path / "c", [], planned=[CELL], facts={"host": "node1"})
    raw = {"0.raw/0.stdout": "0" * 64} if place == "raw output" else {}
    record = stored(folder, raw=raw)
    places = {
        "record": record,
        "raw output": record.parent / "0.raw" / "0.stdout",
        "plan": folder / "plan.json",
        "facts": folder / "machine" / "node1.json",
    }
    path = places[place]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
    done = peakmark("status", folder)
    said = done.stdout + done.stderr
    assert str(path) in said
    assert {"pipe": "a named pipe", "folder": "a folder", "device": "a device"}[kind] in said
    assert done.returncode == (1 if place == "plan" else 0)
    if place != "plan":
        assert peakmark("tables", folder).returncode == 0


def edited(path: Path) -> None:
    content = json.loads(path.read_text())
    content["memory"]["channels"] = 99
    path.write_text(json.dumps(content))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "edited": edited,
    "cut off": lambda path: path.write_text(path.read_text()[:500]),
    "no object": lambda path: path.write_text("[]"),
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "not a number": lambda path: path.write_text(path.read_text().replace('"channels": ', '"channels": NaN, "a": ')),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_facts_give_no_limit_and_are_collected_again(
    kind: str, known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = plan.make({"campaign": "c", "cpu": [{"workloads": ["SP"], "concurrency": [1]}], "repetitions": 2})
    folder = made.directory
    shutil.copytree(known, folder / "machine")
    host = platform.node()
    path = folder / "machine" / f"{host}.json"
    for cell in made.cells:
        stored(folder, cell, context={"host": host})
    records.write_file(folder / "plan.json", json.dumps(made.to_json()))
    assert set(Results.read(folder).facts) == {host}
    assert not any(map(resume.unfit, resume.survey(folder, made.cells).values()))
    DAMAGES[kind](path)
    with pytest.raises(RecordError, match="machine facts"):
        facts.read(path)
    results = Results.read(folder)
    assert not results.facts, "no limit is computed from them"
    assert any(str(path) in reason for reason in results.left_out)
    assert len(results.records) == len(made.cells), "what was measured still counts"
    found = resume.survey(folder, made.cells)
    again = [cell for cell in made.cells if resume.unfit(found[cell.id])]
    assert len(again) == 1, "one cell is measured again: whoever does so collects the facts"
    resume.begin(made, found)
    assert not path.exists() and not Campaign(folder, {}).record_path(again[0]).exists()
    assert (folder / "set-aside" / "machine" / f"{host}.0.json").exists(), "nothing is lost"
    assert machine.cached(folder / "machine")["host"] == host
    assert facts.read(path)["host"] == host


def test_cells_that_are_not_possible_are_said_with_their_reason(tmp_path: Path, peakmark: Callable[..., Said]) -> None:
    cells = [Cell.from_json({**CELL.to_json(), "repetition": number}) for number in range(5)]
    found = [make.record(one, status="unavailable", reason="no FMA here") | {"raw": {}} for one in cells[:4]]
    found.append(make.record(cells[4], status="unavailable", reason="too little memory") | {"raw": {}})
    folder = make.write(tmp_path / "c", found)
    for command in ("status", "summary"):
        done = peakmark(command, folder)
        assert done.returncode == 0
        assert "5 cells are not possible here" in done.stdout
        assert done.stdout.count("no FMA here") == done.stdout.count("too little memory") == 1
        assert "and 1 more" in done.stdout
        assert "report.html" not in done.stdout, "what is not there is not named"
    assert peakmark("status", folder).stdout.splitlines()[-1] == "complete"
