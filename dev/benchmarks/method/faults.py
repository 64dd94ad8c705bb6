"""Faults put in on purpose and taken out again. Was a fault found by ``peakmark compare``, and named
by the notes below the rows, as users see them?
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from benchmarks import results
from benchmarks.kernels import namespaces
from benchmarks.method.same import side
from benchmarks.method.sides import Bench, Surroundings
from peakmark.errors import PeakmarkError, Unavailable
from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.views import compare
from peakmark.views.compare import describe

READY_S = 30.0

Put = Callable[[Bench, Surroundings, float], AbstractContextManager[Surroundings]]
"""Given the bench, the plain surroundings and the median without the fault: the surroundings with
it, until the block is left.
"""


@dataclass(frozen=True)
class Fault:
    """One fault: the cells in which it must show, what a note on the row must say, how it is put in."""

    name: str
    grids: dict[str, Any]
    words: str
    put: Put


@dataclass(frozen=True)
class Outcome:
    """What became of one fault. ratio: with / without, of the row that differs most.

    found  the comparison calls a row different     named  a warning of a row says
           what it is
    alarm  the same words stood without the fault    note   the note, or why the fault could not be
           put in
    """

    fault: str
    row: str = ""
    ratio: float | None = None
    verdict: str = ""
    found: bool = False
    named: bool = False
    alarm: bool = False
    note: str = ""
    possible: bool = True


def judge(bench: Bench, fault: Fault, number: int, repetitions: int) -> Outcome:
    """Measure without and with the fault, and compare."""
    try:
        with ExitStack() as stack:
            plain = Surroundings()
            if "network" in fault.grids:
                plain = Surroundings(namespaces=stack.enter_context(namespaces.joined()))
            before, cells = bench.campaign(f"fault/{number}/without", fault.grids, repetitions)
            bench.measure([(before, cell) for cell in cells], plain)
            after, cells = bench.campaign(f"fault/{number}/with", fault.grids, repetitions)
            around = stack.enter_context(fault.put(bench, plain, _median(before)))
            bench.measure([(after, cell) for cell in cells], around)
    except PeakmarkError as error:
        return Outcome(fault.name, note=str(error), possible=not isinstance(error, Unavailable))
    compared, _, _ = compare.compare(side(before), side(after))
    largest_first = compared.sort_values("change", key=abs, ascending=False, kind="stable")
    most: Any = next(largest_first.itertuples())
    note = next((text for text in _warnings(after) if fault.words in text), "")
    return Outcome(
        fault.name,
        describe(most),
        math.exp(most.change),
        most.verdict,
        found=most.verdict in compare.CLAIMS,
        named=bool(note),
        alarm=any(fault.words in text for text in _warnings(before)),
        note=note,
    )


def _median(campaign: Path) -> float:
    """Of the own kernel's rates in the only table of rates that there is."""
    rows = build.judge(Results.read(campaign)).rows
    rates = rows[rows["instrument"].isin(["cpubench", "diskbench", "netbench"]) & rows["n"].gt(0)]
    return float(rates["median"].iloc[0])


def _warnings(campaign: Path) -> list[str]:
    """What the rows of a campaign are marked with, doubts and findings."""
    warnings = build.judge(Results.read(campaign)).warnings
    said = warnings[warnings["trust"].ne("ok")]
    return list(said["text"].str.cat(said["remedy"], sep="; "))


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table of faults."""
    rows = []
    for one in outcomes:
        if not one.possible or one.ratio is None:
            why = "FAILED" if one.possible else "not possible here"
            rows.append([one.fault, f"{why}: {one.note}", "", "", "", ""])
            continue
        named = ("yes" if one.named else "NO") + (" (also without it)" if one.alarm else "")
        found = "yes" if one.found else "NO"
        rows.append([one.fault, one.row, f"{one.ratio:.3f}", one.verdict, found, named])
    headings = ["fault", "row", "with / without", "verdict", "found", "named"]
    return results.markdown(headings, rows)


def missed(outcomes: Sequence[Outcome]) -> list[str]:
    """What the method did not find or name, in a sentence each."""
    wrong = []
    for one in outcomes:
        if one.possible and not (one.found and one.named):
            why = "found but not named" if one.found else "not found" if one.ratio else one.note
            wrong.append(f"{one.fault}: {why}")
    return wrong


@contextmanager
def _competing(bench: Bench, plain: Surroundings, _: float) -> Iterator[Surroundings]:
    """A program of somebody else on the CPU that the kernel is pinned to. It ends with this process
    at the latest.
    """
    cpu = bench.facts["limits"]["cpus_allowed"][0]
    loop = f"import os\nos.sched_setaffinity(0, [{cpu}])\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    with subprocess.Popen([sys.executable, "-c", loop]) as process:
        try:
            _wait(lambda: psutil.Process(process.pid).cpu_times().user > 0.01)
            yield plain
        finally:
            process.kill()


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


@contextmanager
def _cgroup(bench: Bench, plain: Surroundings, healthy: float) -> Iterator[Surroundings]:
    """Reading from the scratch disk limited to a twentieth of what it does: that is what is
    measured, whoever else has the disk or the CPU meanwhile. Errors: Unavailable.
    """
    here = Host()
    disks = bench.facts["storage"]["members"] or []
    device = here.read(f"/sys/block/{disks[0]}/dev") if len(disks) == 1 else None
    if os.geteuid() != 0 or device is None:
        raise Unavailable(
            "a control group that limits the disk needs root, and one disk behind the scratch directory"
        )
    rate = max(1_000_000, int(healthy / 20))
    for version, folder in reversed(job_limits.folders(here, "blkio")):
        group = Path(folder) / f"peakmark-{os.getpid()}"
        has_io = "io" in (here.read(f"{folder}/cgroup.subtree_control") or "").split()
        name, text = ("blkio.throttle.read_bps_device", f"{device} {rate}")
        if version == 2:
            name, text = ("io.max", f"{device} rbps={rate}")
            if not has_io:
                continue
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(text)
            yield replace(plain, cgroups=(group,))
        finally:
            # The worker has ended, but the kernel may need a moment to let go of it.
            _wait(lambda: _is_removed(group))  # noqa: B023 - called before the loop goes on
        return
    raise Unavailable(
        "no control group here can limit the disk: neither io (version 2) nor blkio (version 1)"
    )


def _is_removed(group: Path) -> bool:
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


@contextmanager
def _slow_tool(bench: Bench, plain: Surroundings, healthy: float) -> Iterator[Surroundings]:
    """fio held back by its own option, as by a wrapper somebody left on PATH."""
    real = shutil.which("fio")
    if real is None:
        raise Unavailable("fio not found; install the package fio")
    path = bench.work / "fio"
    rate = max(1_000_000, int(healthy / 5))
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *--name=*) exec {shlex.quote(real)} --rate={rate} "$@" ;; esac\nexec {shlex.quote(real)} "$@"\n'
    )
    path.chmod(0o755)
    yield replace(plain, tools={**plain.tools, "fio": str(path)})


@contextmanager
def _page_cache(bench: Bench, plain: Surroundings, _: float) -> Iterator[Surroundings]:
    """O_DIRECT taken and ignored, as by a file system that only pretends. Errors: Unavailable
    without a compiler, or where no block device is seen below the scratch directory (overlay,
    tmpfs): what a device moved is not known there.
    """
    device = bench.work.stat().st_dev
    if not Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").exists():
        raise Unavailable(
            f"no block device is seen below {bench.work}, so bytes that come from a cache cannot be told"
        )
    library = bench.work / "strip_direct.so"
    source = Path(__file__).with_name("strip_direct.c")
    namespaces.run("gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl")
    yield replace(plain, environment={**plain.environment, "LD_PRELOAD": str(library)})


def _shaped(*discipline: str) -> Put:
    @contextmanager
    def put(_: Bench, plain: Surroundings, __: float) -> Iterator[Surroundings]:
        names = plain.namespaces
        if names is None:
            raise Unavailable("no network namespaces: run as root, with iproute2")
        words = ("tc", "-n", names.client, "qdisc")
        where = ("dev", names.device, "root")
        namespaces.run(*words, "add", *where, *discipline)
        try:
            yield plain
        finally:
            namespaces.run(*words, "del", *where)

    return put


_CPU: dict[str, Any] = {"workloads": ["DP"], "concurrency": [1], "seconds": 0.2}
_READ = {**_CPU, "workloads": ["RS"], "blocks": ["1MiB"], "size": "16MiB"}
_TCP = {**_CPU, "workloads": ["TCP"], "blocks": ["32KiB"]}
_LATENCY = {**_CPU, "workloads": ["LAT-TCP"], "blocks": ["1B"]}

FAULTS = (
    Fault("CPU: a competing program on it", {"cpu": [_CPU]}, "other programs used", _competing),
    Fault("disk: limited by a control group", {"disk": [_READ]}, "a cgroup lets this job", _cgroup),
    Fault(
        "disk: one of two programs limited (fio --rate)",
        {"disk": [{**_READ, "references": {"fio": {"seconds": 0.3}}}]},
        "they do not measure the same",
        _slow_tool,
    ),
    Fault(
        "disk: page cache instead of O_DIRECT",
        {"disk": [_READ]},
        "came from or stayed in a cache",
        _page_cache,
    ),
    Fault(
        "link: 100 Mbit/s by tc tbf",
        {"network": [_TCP]},
        "slowed down on purpose (tbf",
        _shaped("tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms"),
    ),
    Fault(
        "link: 2 ms by tc netem",
        {"network": [_LATENCY]},
        "slowed down on purpose (netem",
        _shaped("netem", "delay", "2ms"),
    ),
)
