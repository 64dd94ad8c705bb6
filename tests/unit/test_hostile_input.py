"""What users write, wrongly: each is refused in one sentence that says where and what is allowed, before anything runs.

No traceback, no hang, nothing lost in silence. Records, bundles, signals and full disks: ``test_hostile_files.py``.
"""

from __future__ import annotations

import copy
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark import cli
from peakmark.catalogue.workloads import WORKLOADS
from peakmark.config import given, layouts, site
from peakmark.errors import ConfigError
from peakmark.planning import plan, plan_text
from peakmark.resources import ROOT, schema
from peakmark.running import preflight

SECONDS = 20.0
"""Of CPU: far above what reading any file takes, far below the minute and more that an anchor bomb took."""


def refused(said: str, *words: str) -> None:
    """One sentence for people."""
    assert said.strip() and "\n" not in said.strip()
    for word in words:
        assert word in said, said
    for ugly in ("Traceback", "Error(", "<class", "NoneType"):
        assert ugly not in said, said


def bomb(width: int = 10, depth: int = 9) -> str:
    lines = [f"a0: &a0 [{', '.join('x' * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join(lines)


FILES = {
    "a key twice": ("memory: [{}]\ncpu: []\nmemory: []\n", ["line 3", "'memory'", "line 1", "one list"]),
    "an inner key twice": ("report:\n  title: a\n  title: b\n", ["line 3", "'title'", "line 2"]),
    "a key twice in JSON": ('{"cpu": [], "cpu": []}', ["'cpu' twice"]),
    "anchors that multiply": (bomb(), ["line", "anchors and aliases", "200000"]),
    "merges that multiply": (
        "a0: &a0 {x: 1}\n" + "\n".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
        ["anchors and aliases"],
    ),
    "an anchor in itself": ("a: &a [*a]", ["line 1", "holds itself"]),
    "an open bracket": ("campaign: x\ncpu: [\n", ["line 3", "not valid YAML"]),
    "tabs": ("cpu:\n\t- x\n", ["line 2", "not valid YAML"]),
    "two documents": ("a: 1\n---\nb: 2\n", ["not valid YAML"]),
    "brackets without end": ("a: " + "[" * 5000, ["nested too deeply"]),
    "a list": ("- 1\n", ["must hold keys and values"]),
    "a word": ("x", ["must hold keys and values"]),
    "not a number": ("seconds: .nan\n", ["line 1", ".nan", "finite"]),
    "infinity": ("x:\n  y: -.INF\n", ["line 2", "-.INF", "finite"]),
    "infinity by size": ("x: 1.0e+999\n", ["1.0e+999", "finite"]),
    "not a number in JSON": ('{"seconds": NaN}', ["NaN", "finite"]),
    "a Python object": ("a: !!python/object/apply:os.system [id]", ["line 1", "not valid YAML"]),
    "a date that is none": ("a: 2026-99-99", ["not valid YAML"]),
    "Latin-1": ("title: Stra\xdfe\n".encode("latin-1"), ["UTF-8"]),
    "UTF-16": ("cpu: []\n".encode("utf-16"), ["UTF-8"]),
    "null bytes": (b"\0\0\0\0", ["not valid YAML"]),
    "half a megabyte": ("#" * (1 << 20), ["512 KiB"]),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("read", ["configuration", "site file", "layout", "command line"])
def test_a_broken_file(kind: str, read: str, tmp_path: Path) -> None:
    text, words = FILES[kind]
    path = tmp_path / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    start = time.process_time()
    with pytest.raises(ConfigError) as caught:
        if read == "configuration":
            given.read([path])
        elif read == "site file":
            site.load(path)
        elif read == "layout":
            layouts.load(str(path))
        else:
            given.check_command_line(["--profile", "local", "--configfile", str(path), "-n"])
    assert time.process_time() - start < SECONDS
    refused(str(caught.value), "own.yaml", *words)


def test_what_looks_strange_and_is_right(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes("\ufefftitle: Straße 东京\nx: &x {a: 1}\ny: {<<: *x, b: 2}\n".encode())
    (tmp_path / "b.json").write_text('{\n\t"seconds": 1e-07\n}')
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    read = given.read([tmp_path / "a.yaml", tmp_path / "b.json", tmp_path / "empty.yaml"])
    assert (read["title"], read["y"], read["seconds"]) == ("Straße 东京", {"a": 1, "b": 2}, 1e-7)


def not_files(folder: Path) -> dict[str, tuple[Path, str]]:
    pipe, inside = folder / "pipe", folder / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(inside))
    loop = folder / "loop"
    loop.symlink_to(loop)
    return {
        "nothing": (folder / "absent.yaml", "No such file"),
        "a folder": (folder, "a folder"),
        "a pipe": (pipe, "a pipe"),
        "a socket": (inside, "socket"),
        "a device": (Path("/dev/zero"), "device"),
        "a link to itself": (loop, "symbolic links"),
        "a long name": (folder / ("x" * 300), "too long"),
        "a null byte": (Path("a\0b"), "null"),
    }


@pytest.mark.parametrize(
    "kind",
    ["nothing", "a folder", "a pipe", "a socket", "a device", "a link to itself", "a long name", "a null byte"],
)
def test_what_is_no_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, words = not_files(tmp_path)[kind]
    for read in (lambda: given.read([path]), lambda: site.load(path)):
        with pytest.raises(ConfigError) as caught:
            read()
        refused(str(caught.value), "cannot be read", words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--config", "scale"], ["'scale'", "KEY=VALUE"]),
        (["plan", "--config", "=1"], ["'=1'", "KEY=VALUE"]),
        (["plan", "--config", "cpu=[{"], ["--config cpu", "not valid YAML"]),
        (["plan", "--config", "scale=nan"], ["scale", "nan", "finite"]),
        (["plan", "--config", "scale=1e999"], ["scale", "inf", "finite"]),
        (["plan", "--config", "scale=-1"], ["scale", "-1", "more than 0"]),
        (["plan", "--configfile", "absent.yaml"], ["absent.yaml", "No such file"]),
        (["plan", "--config", "give_up_after=never"], ["give_up_after", "never", "30 min"]),
        (["plan", "--config", "formula_set=mine"], ["formula_set", "mine", "site"]),
        (["plan", "--config", "seed=99999999999999999999999"], ["seed", "at most 1000000000000000"]),
        (["doctor", "--site", "mine.yaml"], ["--site", "give --slurm too"]),
    ],
)
def test_a_wrong_command_line(arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    refused(capsys.readouterr().err, *words)


WITH = ["--profile", "local"]
WITHOUT = ["-c1"]
READ_BY_SNAKEMAKE = {
    "nothing": WITHOUT,
    "a key twice": WITH,
    "an open bracket": WITHOUT,
    "anchors that multiply": WITHOUT,
    "an unknown key": WITH,
}


@pytest.mark.parametrize("kind", READ_BY_SNAKEMAKE)
def test_snakemake_says_it_in_the_same_sentence(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.yaml"
    if kind != "nothing":
        path.write_text(str({**FILES, "an unknown key": ["cpuu: []"]}[kind][0]))
    assert cli.main(["plan", "--configfile", str(path)]) == 2
    sentence = capsys.readouterr().err.removeprefix("peakmark: ").strip()
    argv = [sys.executable, "-m", "snakemake", *READ_BY_SNAKEMAKE[kind], "-n", "--configfile", str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert [line for line in done.stderr.splitlines()[1:] if line] == [f"Error: {sentence}"], (
        "first, the profile's name"
    )


GRID = {"repetitions": {"min": 6, "max": 7, "until": "2%", "within": "1 h"}, "seconds": 0.1, "warmup": 0.1}
EVERY_KEY: dict[str, Any] = {
    "campaign": "c", "seed": 1, "nodes": "any", "fan_out": "cell", "peers": "ring", "give_up_after": "1 h", "interface": "lo", "seconds": 0.1, "warmup": 0.1,
    "scale": 0.5, "repetitions": 2, "reference_repetitions": 1, "isa": "auto", "placement": "compact", "scratch": "/tmp",
    "site": None, "formula_set": None, "tools_on": "nodes", "tools": {"fio": "/bin/fio"},
    "modules": {"hpl": ["hpl/2.3"]},
    "cpu": [
        {**GRID, "workloads": ["DP"], "concurrency": [1, 2], "total": 1e9,
         "references": {"hpl": {"budget_s": 4, "nb": 64, "concurrency": [1], "repetitions": 1}}},
    ],
    "memory": [
        {**GRID, "workloads": ["RWS", "LAT"], "concurrency": [1], "blocks": ["64KiB"], "variants": ["block"],
         "pool": "1MiB", "store": "temporal", "isa": "scalar", "total": "1GiB", "references": {"pmbw": {"workloads": ["RWS"], "variants": ["block"]}}},
    ],
    "disk": [
        {**GRID, "workloads": ["RR", "WR"], "concurrency": [1], "blocks": ["4KiB", 8192], "variants": ["io_uring-qd4"],
         "size": "1MiB", "sync": "each", "fill": "new", "references": {"fio": {"seconds": 0.1, "size": "1MiB", "blocks": ["4KiB"]}}},
        {"workloads": ["RR"], "concurrency": [2], "blocks": ["4KiB"], "references": {"iozone": {"ops": True}}},
    ],
    "network": [
        {**GRID, "workloads": ["LAT-TCP"], "concurrency": [1], "blocks": ["1B"], "variants": [""],
         "references": {"ping": {"count": 5}, "qperf": {"seconds": 1}}},
    ],
    "report": {"title": "t", "author": "a", "course": "c", "logo": None, "date_language": "en", "decimal_mark": ".",
               "tables": "file-io-lab", "published": ["file-io-lab"], "summary": "mean",
               "authors": [{"name": "n", "affiliation": "i", "orcid": None}], "kernels": True, "text": {"introduction": None},
               "bibliography": None, "publisher": "p"},
}  # fmt: skip
EVERY_SITE_KEY: dict[str, Any] = {
    "schema": 1, "name": "s", "description": "d",
    "cpu": {"microarchitecture": "Zen 3", "clock": "nominal", "nominal_hz": 2e9, "maximum_hz": 3e9, "cores": 8,
            "operations_per_cycle": {"DP": 16}, "source": "s"},
    "memory": {"type": "DDR5", "channels": 8, "speed_mts": 3200, "bytes_per_transfer": 8, "bandwidth": 2e11,
               "latency": 9e-8, "source": "s"},
    "disk": {"model": "m", "throughput": {"RS": 3e9}, "iops": {"RR": 8e5}, "latency": {"RR": 8e-5}, "source": "s"},
    "network": {"speed_bps": 1e11, "mtu": 1500, "latency": {"TCP": 1e-5}, "source": "s"},
    "nodes": [{"match": "fat-[0-9]*", "memory": {"channels": 16}}],
    "slurm": {"partition": "p", "account": "a", "qos": "q", "constraint": "c", "runtime_factor": 2, "memory_factor": 2,
              "extra": "--nice=1", "scratch_shared": True},
    "formula_set": "r",
    "formulas": {"r": [{"subsystem": "cpu", "workloads": ["DP"], "metric": "rate", "formula": "a * concurrency",
                        "where": {"a": 1e9}, "unit": "op/s", "note": "n"}]},
}  # fmt: skip
WRONG: list[Any] = [
    None, True, -1, 0, 1.5, 10**20, 1e300, math.nan, -math.inf, "", "é\u202e\nb", "../x", "nan", "99999999TiB", "1000 h",
    [], [None], [-1], ["x", "x"], [10**20], {}, {"x": 1}, {"min": 6, "max": 1000, "until": 1e-300},
]  # fmt: skip


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(inner, (*path, key))


def with_value(values: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    copied = copy.deepcopy(values)
    inner = copied
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return copied


@pytest.fixture
def in_time() -> Iterator[None]:
    """A hang is a failure, however busy the machine is."""

    def told(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGVTALRM, told)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def name_of(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def test_the_configuration_holds_every_key() -> None:
    """A key that the schema gains is tried too."""
    config_schema = schema("config")
    assert EVERY_KEY.keys() == config_schema["properties"].keys()
    assert EVERY_KEY["report"].keys() == config_schema["properties"]["report"]["properties"].keys()
    grid = config_schema["$defs"]["grids"]["items"]["properties"]
    grids = [one for name in WORKLOADS for one in EVERY_KEY[name]]
    assert {key for one in grids for key in one} == set(grid)
    tools = {key for one in grids for tool in one["references"].values() for key in tool}
    assert tools == set(grid["references"]["additionalProperties"]["properties"])
    assert plan.make(EVERY_KEY).cells


@pytest.mark.parametrize("path", list(paths(EVERY_KEY)), ids=name_of)
def test_any_value_of_any_key_is_planned_or_refused(path: tuple[Any, ...], in_time: None) -> None:
    for new in WRONG:
        try:
            made = plan.make(with_value(EVERY_KEY, path, new))
        except ConfigError as error:
            refused(str(error))
        else:
            assert made.cells
            plan_text.describe(made)
            json.dumps(made.to_json(), allow_nan=False)


@pytest.mark.parametrize("path", list(paths(EVERY_SITE_KEY)), ids=name_of)
def test_any_value_of_any_site_key_is_read_or_refused(path: tuple[Any, ...], tmp_path: Path, in_time: None) -> None:
    file = tmp_path / "site.yaml"
    for new in WRONG:
        file.write_text(json.dumps(with_value(EVERY_SITE_KEY, path, new)))
        try:
            site.for_host(site.load(file), "fat-1")
        except ConfigError as error:
            refused(str(error))


def one(subsystem: str, **grid: Any) -> dict[str, Any]:
    """A configuration of one grid, which the keys given change."""
    blocks = {"memory": ["64KiB"], "disk": ["4KiB"], "network": ["1KiB"]}
    first = {"cpu": "DP", "memory": "RWS", "disk": "RR", "network": "TCP"}[subsystem]
    base: dict[str, Any] = {"workloads": [first], "concurrency": [1]}
    if subsystem in blocks:
        base["blocks"] = blocks[subsystem]
    return {subsystem: [{**base, **grid}], "tools_on": "nodes"}


IMPOSSIBLE = {
    "a datagram that is too large": (one("network", workloads=["UDP"], blocks=["64KiB"]), ["UDP", "65507", "65536"]),
    "a datagram without a number": (one("network", workloads=["UDP"], blocks=["1B"]), ["24 B"]),
    "a message that is too large": (one("network", blocks=["1GiB"]), ["64MiB", "1GiB"]),
    "too many streams": (one("network", concurrency=[2000]), ["1024 streams"]),
    "less than a message a stream": (one("network", concurrency=[8], total=100), ["total", "8 threads"]),
    "segments of TCP": (one("network", variants=["gso"]), ["gso", "UDP"]),
    "a depth beyond the kernel's": (one("disk", variants=["io_uring-qd9999"]), ["4096 requests"]),
    "a depth beyond the file": (one("disk", variants=["io_uring-qd64"], size="64KiB"), ["64 in flight", "size"]),
    "files smaller than a record": (one("disk", concurrency=[8], size="16KiB"), ["16KiB", "8 threads", "larger size"]),
    "a record that is too large": (one("disk", blocks=["2GiB"], size="8GiB"), ["1GiB", "2GiB"]),
    "a record that is too small": (one("disk", blocks=["16B"]), ["32 B"]),
    "a block of half a cache line": (one("memory", blocks=["1000B"]), ["multiple of 64 B", "1000 B"]),
    "less than a block a thread": (one("memory", concurrency=[4], total="64KiB"), ["65536", "4 threads"]),
    "size of the memory": (one("memory", size="1GiB"), ["memory[0].size", "disk"]),
    "flushes of the memory": (one("memory", sync="each"), ["memory[0].sync", "disk"]),
    "new files of the network": (one("network", fill="new"), ["network[0].fill", "disk"]),
    "instructions of the disk": (one("disk", isa="scalar"), ["disk[0].isa", "cpu and memory"]),
    "a pool of the disk": (one("disk", pool="1GiB"), ["disk[0].pool", "memory"]),
    "variants of the CPU": (one("cpu", variants=[""]), ["cpu[0].variants", "of no use"]),
    "fio under cpu": (one("cpu", references={"fio": {}}), ["cpu[0].references", "fio", "hpl, likwid-bench"]),
    "a tool without such rows": (one("memory", workloads=["RWR"], references={"pmbw": {}}), ["pmbw", "RS, WS, RWS"]),
    "a budget of fio": (one("disk", references={"fio": {"budget_s": 3}}), ["references.fio.budget_s", "hpl"]),
    "a key with a slip": (one("memory", conurrency=[1]), ["memory[0]", "conurrency", "did you mean concurrency?"]),
    "a workload with a slip": (one("cpu", workloads=["DPP"]), ["cpu[0].workloads", "DPP", "DP"]),
    "more cells than a year has seconds": (
        one("cpu", concurrency=list(range(1, 4097)), repetitions=1000),
        ["4096000 cells", "at most 1000000"],
    ),
    "a logo that is not there": ({**one("cpu"), "report": {"logo": "nowhere.png"}}, ["report.logo", "nowhere.png"]),
    "a logo that is none": ({**one("cpu"), "report": {"logo": "Makefile"}}, ["report.logo", ".svg"]),
    "a layout that is a folder": ({**one("cpu"), "report": {"tables": "docs"}}, ["report.tables", "docs", "file-io-lab"]),
    "a report that is a number": ({**one("cpu"), "report": 5}, ["report is 5", "a mapping"]),
    "grids that are a word": ({"cpu": "all"}, ['cpu is "all"', "a list"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_what_is_possible_nowhere_is_refused_when_it_is_planned(kind: str) -> None:
    values, words = IMPOSSIBLE[kind]
    with pytest.raises(ConfigError) as caught:
        plan.make(values)
    refused(str(caught.value), *words)


@pytest.mark.parametrize(
    ("values", "row", "words"),
    [
        (one("network", blocks=["2MiB"], references={"iperf3": {}}), "network/iperf3/TCP_2MiB_x1/any", "largest message"),
        (one("memory", concurrency=[5], references={"pmbw": {}}), "memory/pmbw/RWS-block_64KiB_x5/any", "fixed list"),
        (one("disk", blocks=["1000B"], references={"iozone": {}}), "disk/iozone/ALL-psync_1000B_x1/any", "whole KiB"),
        (one("cpu", references={"hpl": {"budget_s": 0.1}}), "cpu/hpl/DP_none_x1/any", "budget_s"),
    ],
)  # fmt: skip
def test_what_a_reference_cannot_do_is_said_in_the_plan(values: dict[str, Any], row: str, words: str) -> None:
    """The own kernel's row stays; the tool's column is empty there."""
    made = plan.make(values)
    assert words in made.impossible[row]
    assert row in "\n".join(preflight.check(made, made.cells))


HERE: dict[str, Any] = {"tools_on": "here"}
NOT_HERE = {
    "a pool above the memory": (
        {**one("memory", variants=["pool"], pool="100TiB"), **HERE},
        ["RWS-pool_64KiB_x1", "of memory", "smaller"],
    ),
    "blocks above the memory": ({**one("memory", blocks=["100TiB"]), **HERE}, ["of memory"]),
    "files above the disk": ({**one("disk", size="100TiB"), **HERE}, ["GB free", "size:"]),
    "an interface": ({**one("cpu"), **HERE, "interface": "nowhere0"}, ["interface", "nowhere0", "lo"]),
    "a scratch folder": ({**one("cpu"), **HERE, "scratch": "/nowhere"}, ["scratch", "/nowhere", "does not exist"]),
    "a scratch file": ({**one("cpu"), **HERE, "scratch": "/etc/passwd"}, ["/etc/passwd", "not a directory"]),
    "a tool's path": ({**one("cpu"), **HERE, "tools": {"fio": "/nowhere/fio"}}, ["tools.fio", "/nowhere/fio", "false"]),
}


@pytest.mark.parametrize("kind", NOT_HERE)
def test_what_this_machine_lacks_is_said_before_the_first_cell(kind: str) -> None:
    values, words = NOT_HERE[kind]
    made = plan.make(values)
    with pytest.raises(ConfigError) as caught:
        preflight.check(made, made.cells)
    refused(str(caught.value), *words)
    preflight.check(made, [])  # a campaign that is measured is reported wherever it is
    preflight.check(plan.make({**values, "tools_on": "nodes"}), made.cells)  # on a cluster the nodes have it, or not


def test_what_this_machine_has_is_measured() -> None:
    values = {**one("disk", size="1MiB"), **HERE, "scratch": "/tmp", "interface": "lo", "tools": {"fio": "/bin/sh"}}
    made = plan.make(values)
    assert not preflight.check(made, made.cells)


@pytest.mark.parametrize("name", ["config", "site", "layout"])
def test_every_pattern_is_told_in_words(name: str) -> None:
    """A regular expression is no message for people."""

    def patterns(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            if isinstance(part.get("pattern"), str):
                yield part
            part = list(part.values())
        for inner in part if isinstance(part, list) else ():
            yield from patterns(inner)

    found = list(patterns(schema(name)))
    assert found
    for part in found:
        assert part.get("allowed"), part["pattern"]


def test_a_message_shows_what_was_written(tmp_path: Path) -> None:
    for values, words in (
        ({"campaign": "Straße 東京"}, ['campaign is "Straße 東京"', "letters, digits"]),
        ({"nodes": {"sample": 0}}, ["at least 1"]),
        ({"cpu": [{"workloads": [], "concurrency": [1]}]}, ["cpu[0].workloads", "at least 1 entry"]),
    ):
        with pytest.raises(ConfigError) as caught:
            plan.make({**one("cpu"), **values})
        refused(str(caught.value), *words)
    made = plan.make({**one("cpu"), "repetitions": 1})
    assert plan_text.describe(made).startswith("campaign node: 1 cell, ")


WRONG_PLANS = {
    "a list": [],
    "a number": 5,
    "nothing": None,
    "empty": {},
    "cells that are a number": {"cells": 5},
    "a cell that is nothing": {"cells": [None]},
    "a cell without keys": {"cells": [{}]},
    "a name that is a number": {"campaign": 5},
    "a configuration that is a number": {"config": 5},
    "a report that is a number": {"config": {"report": 5}},
    "published results that are a number": {"config": {"report": {"published": 5}}},
    "a title that is a list": {"config": {"report": {"title": ["x"]}}},
    "references that are a number": {"references": 5},
    "a reference that is a word": {"references": ["hpl"]},
    "repetitions that are a list": {"adaptive": [1]},
}


@pytest.mark.parametrize("kind", WRONG_PLANS)
def test_a_plan_with_something_else_in_it(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])])
    path, wrong = folder / "plan.json", WRONG_PLANS[kind]
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong} if wrong and wrong != 5 else wrong))  # type: ignore[dict-item]
    for command in ("status", "summary", "tables", "figures", "report", "html", "bundle"):
        assert cli.main([command, str(folder)]) != 0, command
        refused(capsys.readouterr().err)


@pytest.mark.parametrize("name", ["tables", "figures"])
def test_a_file_where_a_folder_must_be(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 4e10)])])
    (folder / name).write_text("mine")
    assert cli.main([name, str(folder)]) != 0
    refused(capsys.readouterr().err, str(folder / name))
    assert (folder / name).read_text() == "mine"
