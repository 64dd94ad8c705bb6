"""What files and processes can do to a campaign: each kind ends in one sentence, counts for nothing, and waits for ever
nowhere. Full disks: tests/faults/test_full.py; damaged bytes: test_integrity.py.
"""

from __future__ import annotations

import datetime
import errno
import io
import json
import os
import platform
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests import mounts
from tests.unit import campaign_data as make

import snakemake_logger_plugin_peakmark as progress_bar
from peakmark import cli, files, machine
from peakmark.bundling import unbundle
from peakmark.cell import Cell
from peakmark.commands import status
from peakmark.errors import MeasurementError, RecordError
from peakmark.instruments import common
from peakmark.measuring import scratch
from peakmark.measuring.measure import Request, measure
from peakmark.planning import jobs, plan
from peakmark.running import failures, resume
from peakmark.storage import facts, integrity, records
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
    files.write_text(path, records.text_of(record))
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
    files.write_text(folder / "plan.json", json.dumps(made.to_json()))
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
    assert not path.exists() and not Results(folder, {}).record_path(again[0]).exists()
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


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole campaign whose folder has another name than its plan; tests must not change it."""
    folder = make.write(
        tmp_path_factory.mktemp("r") / "quick", [make.record(CELL, [make.measurement(CELL, "rate", 4e9)]) | {"raw": {}}]
    )
    return folder.rename(folder.with_name("before"))


def copied(small: Path, tmp_path: Path, name: str = "before") -> Path:
    return Path(shutil.copytree(small, tmp_path / "results" / name))


COMMANDS = {"report": "r.pdf", "html": "r.html", "bundle": "r.zip"}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_overwritten_but_what_this_campaign_wrote(
    command: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder, target = copied(small, tmp_path), tmp_path / COMMANDS[command]
    assert peakmark(command, folder, "-o", target).returncode == 0
    first = target.read_bytes()
    # What it wrote itself is replaced when the campaign has changed, and only for this campaign.
    plan_path = folder / "plan.json"
    changed = json.loads(plan_path.read_text())
    changed["config"]["report"] = {"title": "Another title"}
    plan_path.write_text(json.dumps(changed))
    other = copied(small, tmp_path, "other")
    shutil.copyfile(plan_path, other / "plan.json")
    refused = peakmark(command, other, "-o", target)
    assert refused.returncode == 1
    assert f"{target} is there already" in refused.stderr and target.read_bytes() == first
    assert peakmark(command, folder, "-o", target).returncode == 0
    assert target.read_bytes() != first


def test_links_are_followed_and_what_is_behind_them_is_safe_as_well(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder, target = copied(small, tmp_path), tmp_path / "r.pdf"
    # Somebody's thesis, by its name or through a link; a link to an own document stays a link.
    for name in ("thesis", "link"):
        thesis = tmp_path / "thesis"
        thesis.write_text("years of work")
        if name == "link":
            (tmp_path / name).symlink_to(thesis)
        assert peakmark("report", folder, "-o", tmp_path / name).returncode == 1
        assert thesis.read_text() == "years of work"
    (tmp_path / "own").symlink_to(target)
    target.write_bytes(b"")
    assert peakmark("report", folder, "-o", tmp_path / "own").returncode == 0
    assert (tmp_path / "own").is_symlink() and target.stat().st_size > 1000
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("command", COMMANDS)
def test_pipes_and_devices_are_written_through(
    command: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder, pipe, got = copied(small, tmp_path), tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    done = peakmark(command, folder, "-o", pipe)
    reader.join(LIMIT_S)
    assert done.returncode == 0 and done.stdout == ""
    assert len(got[0]) > 1000 and stat.S_ISFIFO(pipe.stat().st_mode)
    for device, code, words in (("/dev/null", 0, "/dev/null"), ("/dev/full", 1, "No space left on device")):
        done = peakmark(command, folder, "-o", device)
        assert done.returncode == code
        assert words in done.stderr
        assert stat.S_ISCHR(os.stat(device).st_mode), "the device is still one"
    done = peakmark(command, folder, "-o", tmp_path)
    assert done.returncode == 1 and "it is a folder" in done.stderr


def test_a_bundle_has_the_name_of_the_folder(small: Path, tmp_path: Path, peakmark: Callable[..., Said]) -> None:
    folder = copied(small, tmp_path)
    (tmp_path / "results" / "quick.zip").write_bytes(b"another campaign's")
    for _ in range(2):
        assert peakmark("bundle", folder).stdout.strip() == str(tmp_path / "results" / "before.zip")
    assert (tmp_path / "results" / "quick.zip").read_bytes() == b"another campaign's"


def read_only(folder: Path) -> None:
    """As an archive is mounted; a user without rights would see the same by the folder's mode."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)


@pytest.fixture
def own_mounts() -> None:
    """Mounts from here on are those of this process alone."""
    if reason := mounts.take():
        pytest.skip(reason)


def test_a_read_only_campaign_is_reported_elsewhere(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said], own_mounts: None
) -> None:
    folder = copied(small, tmp_path)
    read_only(folder)
    try:
        for command, name in COMMANDS.items():
            here = peakmark(command, folder) if command != "bundle" else peakmark("tables", folder)
            assert here.returncode == 1
            assert "Read-only file system" in here.stderr and here.stderr.count("\n") == 1
            there = peakmark(command, folder, "-o", tmp_path / name)
            assert there.returncode == 0, there.stderr
            assert (tmp_path / name).stat().st_size > 1000
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


ENDINGS: dict[str, tuple[Callable[[], BaseException], int, str]] = {
    "disk full": (
        lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/t/a"),
        1,
        "/t/a: No space left on device; make",
    ),
    "quota": (
        lambda: OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/t/a"),
        1,
        "/t/a: Disk quota exceeded; your quota",
    ),
    "broken disk": (
        lambda: OSError(errno.EIO, os.strerror(errno.EIO), "/t/a"),
        1,
        "/t/a: Input/output error; its disk",
    ),
    "two names": (lambda: OSError(errno.EXDEV, "Cross-device", "/a", None, "/b"), 1, "/a -> /b: Cross-device"),
    "no number": (lambda: OSError("it went wrong"), 1, "it went wrong"),
    "Ctrl-C": (KeyboardInterrupt, 130, "interrupted"),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_what_the_system_refuses_is_one_sentence(
    kind: str, peakmark: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    error, code, words = ENDINGS[kind]

    def fail(_: object) -> int:
        raise error()

    monkeypatch.setattr(status, "_status", fail)
    before = signal.getsignal(signal.SIGINT)
    done = peakmark("status", "c")
    signal.signal(signal.SIGINT, before)
    assert done.returncode == code
    assert done.stderr.startswith(f"peakmark: {words}") and done.stderr.count("\n") == 1


def test_a_full_standard_output_is_one_sentence(small: Path) -> None:
    argv = [sys.executable, "-m", "peakmark", "status", str(small)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("peakmark: standard output: No space left on device") and done.stderr.count("\n") == 1


# Puts away slowly, as after a large file, and says when it has begun to.
SLOW = """
import sys, time
from peakmark import cli
from peakmark.commands import status
def slow(_):
    try:
        print("measuring", flush=True)
        time.sleep(60)
    finally:
        print("putting away", flush=True)
        sys.stdin.readline()
        print("done", flush=True)
status._status = slow
raise SystemExit(cli.main(["status", "c"]))
"""


def test_a_second_interrupt_does_not_disturb_the_putting_away() -> None:
    argv = [sys.executable, "-c", SLOW]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        for expected in ("measuring", "putting away"):
            assert process.stdout.readline().strip() == expected
            process.send_signal(signal.SIGINT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.read() == "done\n"
        assert process.stderr.read() == "peakmark: interrupted\n"
        assert process.wait(LIMIT_S) == 130


@pytest.mark.parametrize("name", ["tables", "figures", "cells"])
def test_a_file_where_a_folder_belongs_is_one_sentence(
    name: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).write_text("a file")
    done = peakmark({"figures": "figures"}.get(name, "tables"), folder)
    if name == "cells":
        done = peakmark("report", folder)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and str(folder / name if name != "cells" else folder) in done.stderr


def zipped(path: Path, content: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, peakmark: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {"cells/a.json": bytes(unbundle.SMALL_BYTES + 1)})
    monkeypatch.setattr(unbundle, "_extract", lambda *_: pytest.fail("it was unpacked"))
    done = peakmark("report", bomb)
    assert done.returncode == 1
    assert "times its size" in done.stderr and "not unpacked" in done.stderr
    monkeypatch.setattr(files, "free", lambda _: 10)
    done = peakmark("report", zipped(tmp_path / "some.zip", {"cells/a.json": b"a" * 1000}))
    assert done.returncode == 1 and "make room" in done.stderr


def test_the_names_of_a_large_bundle_are_looked_at_once(tmp_path: Path) -> None:
    """Twice the entries take about twice the steps; comparing each with each would take four times."""

    def steps(count: int) -> int:
        bundle = zipped(tmp_path / f"{count}.zip", {f"cells/{number}.json": b"" for number in range(count)})
        taken = 0

        def trace(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal taken
            taken += event == "c_call"

        with zipfile.ZipFile(bundle) as archive:
            sys.setprofile(trace)
            try:
                unbundle._entries(bundle, archive)
            finally:
                sys.setprofile(None)
        return taken

    assert steps(2000) < 2.5 * steps(1000)


@pytest.fixture
def full_disk(tmp_path: Path, own_mounts: None) -> Iterator[Path]:
    """A results folder on a disk of its own on which nothing more has room."""
    folder = tmp_path / "results"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> None:
    with pytest.raises(OSError, match="No space left"), (folder / "neighbour").open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))


def test_a_full_disk_is_said_before_a_cell_is_measured_and_by_status(
    full_disk: Path, peakmark: Callable[..., Said]
) -> None:
    folder = make.write(full_disk / "c", [], planned=[CELL])
    fill(full_disk)
    output = folder / "cells" / f"{CELL.id}.json"
    with pytest.raises(MeasurementError, match=f"was not measured: No space left on device: the disk of {folder}"):
        measure(Request(CELL, output, folder, KERNELS))
    assert "No space left on device: the disk of" in peakmark("status", folder).stdout
    assert "1 cell is not measured; the next run goes on with it" in peakmark("status", folder, "--failed").stdout
    (full_disk / "neighbour").unlink()
    assert measure(Request(CELL, output, folder, KERNELS))["status"] == "ok"
    assert peakmark("status", folder).stdout.splitlines()[-1] == "complete"


def test_a_full_disk_is_said_once_of_all_jobs_that_end(
    full_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(full_disk.parent)
    monkeypatch.setattr(failures, "_SAID", set())
    grid = {"workloads": ["SP"], "concurrency": [1]}
    made = plan.make({"campaign": "c", "cpu": [grid], "repetitions": 3})
    fill(full_disk)
    for number, cell in enumerate(made.cells):
        details = {"Comment": jobs.comment(made, [cell]), "BatchHost": "n1"}
        now = datetime.datetime.now().astimezone()
        assert failures.keep(made, [cell], str(number), "TIMEOUT", details, now) is None
    assert capsys.readouterr().err.count("\n") == 1
    bar = progress_bar.LogHandler(
        SimpleNamespace(stdout=False, dryrun=False, printshellcmds=False, verbose=False), None
    )  # type: ignore[arg-type]
    bar.console = Console(file=io.StringIO(), width=300)
    for cell in made.cells:
        bar._failure({"rule_name": "measure", "output": [made.record_name(cell)], "log": []})
    assert bar.console.file.getvalue().count("No space left on device") == 1  # type: ignore[attr-defined]
    assert "failed" not in bar.console.file.getvalue()  # type: ignore[attr-defined]


def test_what_a_killed_run_left_goes_when_the_next_cell_begins(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guard ended with it, as where memory ran out."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr(scratch, "YOUNG_S", 0.0)
    mark = json.dumps({"host": socket.gethostname(), "process": 1, "purpose": "x"})
    left, foreign = tmp_path / "scratch" / "peakmark-abcdefgh", tmp_path / "scratch" / "peakmark-zzzzzzzz"
    for folder in (left, foreign):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "data").write_text("x")
    (left / scratch.MARK).write_text(mark)
    campaign = tmp_path / "c"
    shutil.copytree(known, campaign / "machine")
    measure(Request(CELL, campaign / "cells" / f"{CELL.id}.json", campaign, KERNELS))
    assert not left.exists()
    assert foreign.exists(), "nobody knows whose that is"


# As Open MPI says farewell: the reason first, then a page that tells what to ask whom.
FAREWELL = "\n".join(["line of no use"] * 3 + ["PMI could not be opened"] + ["-" * 40, "*** please tell"] * 9)


def test_the_telling_lines_are_shown_and_all_lines_are_kept(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(
        tmp_path / "cpubench",
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\ncat >&2 <<E\n{FAREWELL}\nE\nexit 3\n',
    )
    campaign = tmp_path / "c"
    shutil.copytree(known, campaign / "machine")
    request = Request(CELL, campaign / "cells" / f"{CELL.id}.json", campaign, tmp_path)
    with pytest.raises(MeasurementError, match="exit code 3: PMI could not be opened"):
        measure(request)
    attempt = campaign / "attempts" / CELL.id
    assert (attempt / "0.raw" / "0.stderr").read_text().strip() == FAREWELL
    hanging = f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\necho so far; exec sleep 600\n'
    program(tmp_path / "cpubench", hanging)
    monkeypatch.setattr(common, "timeout", lambda _: 0.5)
    with pytest.raises(MeasurementError, match="did not end within"):
        measure(request)
    assert (attempt / "1.raw" / "0.stdout").read_text().strip() == "so far"


@pytest.mark.parametrize("kind", ["a thesis", "a folder", "a device", "a pipe"])
def test_a_plan_is_written_over_nothing_but_a_plan(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peakmark: Callable[..., Said]
) -> None:
    """A device has no end, a pipe no beginning: neither is waited for, read, or put another file in the place of."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "there"
    match kind:
        case "a thesis":
            path.write_text("years of work")
        case "a folder":
            path.mkdir()
        case "a device":
            path.symlink_to("/dev/zero")
        case "a pipe":
            os.mkfifo(path)
    before = path.lstat()
    small = ["--config", "repetitions=1", "tools_on=nodes"]
    done = peakmark("plan", *small, "--write", path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{path} is there already and is no plan" in done.stderr
    assert (path.lstat().st_ino, path.lstat().st_mode, path.lstat().st_mtime) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime,
    )
    asked = peakmark("measure", "--plan", path, "--cell", "cpu/cpubench/DP_none_x1/any/0")
    assert (asked.returncode, asked.stderr.count("\n")) == (1, 1)
    assert str(path) in asked.stderr
    for _ in range(2):
        assert peakmark("plan", *small, "--write", tmp_path / "new.json").stdout.startswith(
            f"{tmp_path / 'new.json'}: "
        )


@pytest.mark.parametrize("line", ["", "hello", "[]", '{"server": null}'])
def test_a_far_end_that_nobody_asks_says_so(line: str) -> None:
    argv = [sys.executable, "-m", "peakmark", "serve"]
    done = subprocess.run(argv, input=line, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "serve is what measure calls" in json.loads(done.stdout)["failed"]
