"""Kernels that are cut off, of another machine, or say nothing: a failure, and measured when they
are mended.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.hostile import CELL, KERNELS, LIMIT_S, Said

from peakmark.reasons import MeasurementError
from peakmark.run.measure import Request, measure
from peakmark.storage import records
from peakmark.tools import base


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
    "silent while it measures": lambda _: (
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\nexit 0\n'
    ),
    "of half an answer": lambda _: (
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\n{REAL} "$@" | head -c 100\n'
    ),
}


@pytest.mark.parametrize("kind", BROKEN_KERNELS)
def test_a_broken_kernel_is_a_failure_and_measures_when_it_is_mended(
    kind: str, known: Path, tmp_path: Path
) -> None:
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
        tmp_path / "cpubench",
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\necho no FMA >&2; exit 77\n',
    )
    output = tmp_path / "c" / "cells" / f"{CELL.id}.json"
    shutil.copytree(known, tmp_path / "c" / "machine")
    measure(Request(CELL, output, tmp_path / "c", tmp_path))
    assert (records.read(output)["status"], records.read(output)["reason"]) == (
        "unavailable",
        "no FMA",
    )


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


# As Open MPI says farewell: the reason first, then a page that tells what to ask whom.
FAREWELL = "\n".join(
    ["line of no use"] * 3 + ["PMI could not be opened"] + ["-" * 40, "*** please tell"] * 9
)


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
    hanging = (
        f'#!/bin/sh\n[ "$1" = --version ] && exec {REAL} --version\necho so far; exec sleep 600\n'
    )
    program(tmp_path / "cpubench", hanging)
    monkeypatch.setattr(base, "timeout", lambda _: 0.5)
    with pytest.raises(MeasurementError, match="did not end within"):
        measure(request)
    assert (attempt / "1.raw" / "0.stdout").read_text().strip() == "so far"


@pytest.mark.parametrize("line", ["", "hello", "[]", '{"server": null}'])
def test_a_far_end_that_nobody_asks_says_so(line: str) -> None:
    argv = [sys.executable, "-m", "peakmark", "serve"]
    done = subprocess.run(
        argv, input=line, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "serve" in json.loads(done.stdout)["failed"]
