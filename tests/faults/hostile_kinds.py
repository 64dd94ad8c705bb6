"""Kinds of hostile input for ``fuzz_cli``: each changes a campaign or writes a file, and names the
command that reads it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.unit import campaign_data as make
from tests.unit.hostile import places

from peakmark.bundle import bundle
from peakmark.cell import Cell
from peakmark.resources import ROOT
from peakmark.storage import decisions, planfile, records
from peakmark.storage.results import Results

CAMPAIGN = Path("results/c")
PRECIOUS = Path("precious")
"""Files of others: nothing in it may change, whatever a campaign says."""
OTHERS = ("thesis.pdf", "notes.txt", "report.pdf", "tables/cpu.csv", "0.json", "c.zip")
OTHERS += ("measurements.csv",)
CRITERION = {"least": 6, "most": 9, "until": 0.02, "within_s": None}
GIB = 1 << 30
QUICK_PRESET = ROOT / "config" / "presets" / "quick.yaml"


PLAN = ["plan", "--configfile", str(QUICK_PRESET), "--config", "tools_on=nodes"]


@dataclass(frozen=True)
class Input:
    """The words of a command, and which standard streams it is started without."""

    words: list[str]
    closed: tuple[int, ...] = ()


Kind = Callable[[Path, random.Random], Input]

READERS = (
    ["status"], ["status", "--failed"], ["summary"], ["tables"], ["report"], ["report", "--partial"],
    ["html"], ["bundle"], ["bundle", "--partial"], ["bundle", "--anonymise"], ["report", "--anonymise"],
    ["html", "--partial", "--anonymise"],
)  # fmt: skip
QUICK = (["status"], ["tables"], ["summary"], ["tables"], ["tables"], ["status", "--failed"])
"""Those that take little time, which most inputs are for."""
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**63, 1e30, -1e30, 1e21, 1e-15, 1e-99, 0.5, "", " ", "x", "never", "1e400", "nan", "\0", "a\0b", "\033[2Jx", "a\nb", "../../precious",
    "/etc/passwd", "../../../../../../etc", "-rf", "--help", "$(id)", "{x}", "é٣東", "x" * 5000, "x" * 300, [], [None], [1, [2]],
    {}, {"": None}, {"nope": 1}, {"a": {"nope": 1}}, [{}], [[[[]]]], "precious/thesis.pdf", "any", "2026-99-99T00:00:00",
)  # fmt: skip
EXTREMES: tuple[Any, ...] = (
    10**400, -(10**400), 1e300, -1e300, 1e308, 1e-300, 5e-324, float("nan"), float("inf"), "\ud800", "\udcff",
)  # fmt: skip
"""Which nothing that is read may hold, so that few inputs have one."""
YAML_VALUES = (
    '!!int ""', "!!bool x", "!!timestamp abc", '!!float ""', "!!null x", "!!binary x", "!!set {a}", "!!omap [a]",
    "!!pairs [a: 1]", "!!python/object/apply:os.system [id]", "!!str", "!local x", "!!int [1]", "!!map x", "!!seq {}", "!!merge x",
    "!!value =", "=", "<<", "{<<: 1}", "{<<: [1]}", "&a [*a]", "*nobody", ".nan", "-.inf", "1e400", "2026-99-99", "0x_", "0b_",
    "190:20:30.15", "9" * 5000, "9" * 400, "[" * 3000, "{a: " * 500, "|\n  text", '"\\ud800"', '"\\0"', "? [1]\n: 2", "- - -",
    "'", "%TAG ! x", "---", "...", "\t", "2001-12-14t21:59:43.10-99:99", "+.e+1", "._", "1_", "~", "[~]", "on", "é٣東",
)  # fmt: skip


def prepare(base: Path) -> None:
    """Write what each input is made from: a whole campaign with its bundle, files of others, and
    empty folders.
    """
    others = base / PRECIOUS
    (others / "tables").mkdir(parents=True)
    for name in OTHERS:
        (others / name).write_text(f"years of work: {name}\n")
    for name in ("home", "results"):
        (base / name).mkdir()
    facts = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
    _campaign(base / CAMPAIGN, facts)
    make.write(others / "other", [make.record(CELLS[0], [make.measurement(CELLS[0], "rate", 4e9)])])


CELLS = [
    *(make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(6)),
    *(make.cell("rambench", "RWS", subsystem="memory", variant="pool", block=1024, repetition=number) for number in range(2)),
    make.cell("rambench", "LAT", subsystem="memory", block=16 << 10),
    make.cell("diskbench", "RR", subsystem="disk", variant="psync", block=4096),
    make.cell("netbench", "TCP", subsystem="network", block=1024),
    make.cell("hpl", "DP", subsystem="cpu"),
]  # fmt: skip
METRICS = {"cpubench": "rate", "hpl": "rate", "diskbench": "iops", "netbench": "throughput"}


def _campaign(folder: Path, facts: dict[str, Any]) -> None:
    """Some rows of each subsystem, one that is repeated as often as needed, a failed attempt, raw
    output and own texts.
    """
    written = []
    for number, cell in enumerate(CELLS):
        metric = "latency" if cell.workload == "LAT" else METRICS.get(cell.instrument, "throughput")
        value = {"latency": 1e-7, "iops": 2e4}.get(metric, 1e10) * (1 + number / 100)
        written.append(make.record(cell, [make.measurement(cell, metric, value)]) | {"raw": {}})
    report = {"title": "T", "author": "A", "text": {"design": "design.md"}}
    config = {"report": report, "site_facts": {"name": "s", "cpu": {}}}
    make.write(folder, written, config=config, facts=facts)
    plan = json.loads((folder / "plan.json").read_text())
    row = CELLS[0].row
    for place, cell in enumerate(CELLS):
        plan["cells"][place] |= {"id": cell.id, "job": f"any.{place // 6}"}
    planfile.write(folder / "plan.json", plan | {"adaptive": {row: CRITERION}, "cluster": None})
    criterion = next(iter(Results.read(folder).criteria.values()))
    decided = decisions.Decision(criterion, 6, 6, 0.01, "narrow")
    decisions.write(folder / decisions.FOLDER / "0.json", {row: decided})
    failed = make.record(CELLS[0], status="failed", reason="it broke")
    failed["raw"] = {"0.stderr": hashlib.sha256(b"broke\n").hexdigest()}
    attempt = folder / "attempts" / CELLS[0].id / "0.json"
    attempt.parent.mkdir(parents=True)
    attempt.write_text(records.text_of(failed))
    (attempt.parent / "0.stderr").write_bytes(b"broke\n")
    copy_of = folder / "inputs" / "text" / "0"
    copy_of.mkdir(parents=True)
    (copy_of / "design.md").write_text("# Design\n\nAs it is.\n")
    (folder / "inputs" / "inputs.json").write_text(
        '{"text": {"design.md": "inputs/text/0/design.md"}}\n'
    )


def any_value(chance: random.Random) -> Any:
    """A value that few expect."""
    return copy.deepcopy(chance.choice(EXTREMES if chance.random() < 0.1 else VALUES))


def changed(value: Any, chance: random.Random, times: int = 1) -> Any:
    """A copy in which some values are replaced, removed, named otherwise, or stand twice."""
    copied = copy.deepcopy(value)
    for _ in range(times):
        known = list(places(copied))
        if not known:
            return any_value(chance)
        path = chance.choice(known)
        inner = copied
        for step in path[:-1]:
            inner = inner[step]
        last, way = path[-1], chance.random()
        if way < 0.1:
            del inner[last]
        elif way < 0.2 and isinstance(inner, dict):
            name = chance.choice([word for word in VALUES if isinstance(word, str)])
            inner[name] = inner.pop(last)
        elif way < 0.25 and isinstance(inner, list):
            inner.append(copy.deepcopy(inner[last]))
        else:
            inner[last] = any_value(chance)
    return copied


DAMAGED = (
    b"", b"\0" * 100, b"[" * 100_000, b"null", b"[]", b"{}", b"5", b"\xff\xfe", b'{"a": 1e400}',
    b'"\\ud800"', b"NaN",
)  # fmt: skip


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes of which some are lost, changed or doubled, or that are something else altogether."""
    way, place = chance.random(), chance.randrange(len(data) + 1)
    if way < 0.3:
        return data[:place]
    if way < 0.6:
        return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    if way < 0.8:
        return data[:place] + data[max(0, place - 40) :]
    return chance.choice(DAMAGED)


def put_json(path: Path, value: Any) -> None:
    """Write JSON as the standard library does, NaN and half characters included."""
    path.write_text(json.dumps(value), encoding="utf-8")


def put_sealed(path: Path, value: Any) -> None:
    """Write it with a checksum that fits, where it can have one."""
    try:
        path.write_text(records.text_of(value), encoding="utf-8")
    except (ValueError, TypeError, AttributeError):
        put_json(path, value)


def read(path: Path) -> Any:
    value = json.loads(path.read_text())
    if isinstance(value, dict):
        value.pop(records.CHECKSUM, None)
    return value


def reader(chance: random.Random, campaign: Path = CAMPAIGN) -> Input:
    """A command that reads the campaign."""
    first, *more = chance.choice(QUICK if chance.random() < 0.75 else READERS)
    return Input([first, str(campaign), *more])


def config_file(place: Path, chance: random.Random) -> Input:
    preset = chance.choice(sorted((ROOT / "config" / "presets").glob("*.yaml")))
    path = place / "own.yaml"
    _yaml(path, preset, chance)
    return Input(["plan", "--configfile", str(path), "--config", "scale=0.01", "tools_on=nodes"])


def site_file(place: Path, chance: random.Random) -> Input:
    path = place / "site.yaml"
    _yaml(path, chance.choice(sorted((ROOT / "config" / "sites").glob("*.yaml"))), chance)
    if chance.random() < 0.2:
        return Input(["doctor", "--slurm", "--site", str(path), "--wait", "0"])
    return Input([*PLAN, f"site={path}"])


def layout_file(place: Path, chance: random.Random) -> Input:
    path = place / "layout.yaml"
    _yaml(path, chance.choice(sorted((ROOT / "reports" / "layouts").glob("*.yaml"))), chance)
    plan = read(place / CAMPAIGN / "plan.json")
    plan["config"]["report"]["tables"] = str(path)
    put_json(place / CAMPAIGN / "plan.json", plan)
    return reader(chance)


def _yaml(path: Path, source: Path, chance: random.Random) -> None:
    text = source.read_text()
    way = chance.random()
    if way < 0.4:
        lines = text.splitlines()
        keys = [at for at, line in enumerate(lines) if ":" in line and not line.startswith("#")]
        number = chance.choice(keys)
        lines[number] = f"{lines[number].partition(':')[0]}: {chance.choice(YAML_VALUES)}"
        text = "\n".join(lines)
    elif way < 0.8:
        value = changed(yaml.safe_load(text), chance, chance.choice((1, 1, 3)))
        as_yaml = chance.random() < 0.5
        text = yaml.safe_dump(value, allow_unicode=True) if as_yaml else json.dumps(value)
    else:
        path.write_bytes(damaged(text.encode(), chance))
        return
    path.write_text(text, encoding="utf-8", errors="surrogatepass")


def plan_file(place: Path, chance: random.Random) -> Input:
    path = place / CAMPAIGN / "plan.json"
    way = chance.random()
    if way < 0.15:
        path.write_bytes(damaged(path.read_bytes(), chance))
    elif way < 0.3:
        outside = ("../../precious", "../../../precious", "/tmp/x", "..")
        name = chance.choice((*outside, "a/b", "", "x" * 300, "a\nb"))
        put_json(path, read(path) | {"campaign": name})
    else:
        put_json(path, changed(read(path), chance, chance.choice((1, 2, 5))))
    return reader(chance)


def cell_of_plan(place: Path, chance: random.Random) -> Input:
    """A real cell of a plan that was changed, alone or in its job."""
    options = {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "auto"}
    cell = Cell("cpu", "cpubench", "SP", "", None, 1, "any", 0, options)
    path = place / "results" / "m" / "plan.json"
    config = {"tools": {}, "modules": {}, "interface": None, "scratch": None}
    plan: dict[str, Any] = {"schema": 1, "campaign": "m", "config": config, "cluster": None}
    plan |= {"references": [], "adaptive": {}}
    plan["cells"] = [{"id": cell.id, "job": "any.0", **cell.to_json()}]
    planfile.write(path, plan)
    words = chance.choice((["--cell", cell.id], ["--job", "any.0"]))
    way = chance.random()
    if way < 0.2:
        path.write_bytes(damaged(path.read_bytes(), chance))
    elif way < 0.3:
        others = ("/etc/passwd", "precious/thesis.pdf", "/dev/zero", "results", "nowhere")
        path = Path(chance.choice(others))
    elif way < 0.5:
        names = ("../../../precious/thesis.pdf", "/tmp/x", "a/b", ".", "..", "\n")
        plan["cells"][0]["job"] = name = chance.choice(names)
        planfile.write(path, plan)
        words = ["--job", name]
    else:
        cells = changed(plan["cells"], chance)
        path.write_text(planfile.text(changed(plan, chance) | {"cells": cells}))
    kernels = str(ROOT / "build" / "kernels")
    return Input(["measure", "--plan", str(path), *words, "--kernels", kernels])


def facts(place: Path, chance: random.Random) -> Input:
    path = place / CAMPAIGN / "machine" / "node1.json"
    if chance.random() < 0.1:
        path.write_bytes(damaged(path.read_bytes(), chance))
    else:
        put_sealed(path, changed(read(path), chance, chance.choice((1, 2, 8))))
    return reader(chance)


def inputs(place: Path, chance: random.Random) -> Input:
    folder = place / CAMPAIGN / "inputs"
    path = folder / "inputs.json"
    way = chance.random()
    if way < 0.2:
        path.write_bytes(damaged(path.read_bytes(), chance))
    elif way < 0.4:
        file = folder / "text" / "0" / "design.md"
        file.unlink()
        behind = (str(file), "../../../../../precious/thesis.pdf", "/dev/zero", "nowhere")
        file.symlink_to(chance.choice(behind))
    else:
        put_json(path, changed(read(path), chance))
    return reader(chance)


def record_file(place: Path, chance: random.Random) -> Input:
    folder = place / CAMPAIGN
    paths = (*folder.rglob("cells/**/*.json"), *folder.rglob("attempts/**/*.json"))
    path = chance.choice(sorted(paths))
    way = chance.random()
    if way < 0.15:
        path.write_bytes(damaged(path.read_bytes(), chance))
        return reader(chance)
    value = read(path)
    if way < 0.45:
        part = chance.choice([value["context"], *value["measurements"]])
        part[chance.choice(sorted(part))] = any_value(chance)
    elif way < 0.6 and value["measurements"]:
        names = ("clock_hz_loaded", "store", "p99", "isa", "per_thread", "warnings", "lost")
        value["measurements"][0]["details"] = {name: chance.choice(VALUES) for name in names}
    elif way < 0.7:
        outside = "../../../../../../precious/thesis.pdf"
        name = chance.choice((outside, "/etc/passwd", "..", "", "a\0b"))
        content = (place / PRECIOUS / "thesis.pdf").read_bytes()
        value["raw"] = {name: hashlib.sha256(content).hexdigest()}
    else:
        value = changed(value, chance, chance.choice((1, 2)))
    put_sealed(path, value)
    return reader(chance)


def decision_file(place: Path, chance: random.Random) -> Input:
    path = place / CAMPAIGN / "repetitions" / "0.json"
    if chance.random() < 0.2:
        path.write_bytes(damaged(path.read_bytes(), chance))
    else:
        put_json(path, changed(read(path), chance, chance.choice((1, 2))))
    if chance.random() < 0.5:
        return reader(chance)
    number = chance.choice(("0", "1", "2", "-1", "99999999999999999999"))
    targets = (f"{CAMPAIGN}/repetitions/{number}.json", "/dev/full", "x.txt")
    target = chance.choice((*targets, "precious/notes.txt", "precious/0.json"))
    words = ["decide", "--plan", f"{CAMPAIGN}/plan.json", "--round", number, "--output", target]
    return Input(words)


def published(place: Path, chance: random.Random) -> Input:
    source = chance.choice(sorted((ROOT / "reports" / "published").glob("*.csv")))
    lines = source.read_text().splitlines()[: chance.choice((2, 20))]
    path = place / "own.csv"
    if chance.random() < 0.25:
        path.write_bytes(damaged("\n".join(lines).encode(), chance))
    else:
        number = chance.randrange(len(lines))
        fields = lines[number].split(",")
        words = ("-1", "0", "1e308", "1e-320", "nan", "inf", "1e999", "9" * 500)
        words += ("XX", "", "\0", '"', "\033[2J", "1KiB", "٣", "../x")
        fields[chance.randrange(len(fields))] = chance.choice(words)
        lines[number] = ",".join(fields)
        path.write_text("\n".join(lines))
    if chance.random() < 0.3:
        plan = read(place / CAMPAIGN / "plan.json")
        plan["config"]["report"]["published"] = [str(path)]
        put_json(place / CAMPAIGN / "plan.json", plan)
        return reader(chance)
    one, other = chance.choice(((CAMPAIGN, path), (path, CAMPAIGN), (path, path)))
    return Input(["compare", str(one), str(other)])


def bundled(place: Path, chance: random.Random) -> Input:
    """A bundle that was damaged, or changed and sealed again."""
    path = place / "c.zip"
    way = chance.random()
    if way < 0.3:
        path.write_bytes(damaged(path.read_bytes(), chance))
        return Input(["report", str(path)])
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    read_by_report = ("cells/", "plan", "machine/", "inputs/", "repetitions/")
    name = chance.choice(sorted(name for name in content if name.startswith(read_by_report)))
    if way < 0.5:
        names = ("../../precious/x", "/tmp/x", "plan.json/x", "a//b", "./x", "\\x")
        new = chance.choice((*names, "a\033[2Jb", "cells", "x" * 300))
        content[new] = content.pop(name)
    elif name.endswith(".json"):
        put_sealed(place / "part", changed(json.loads(content[name]), chance))
        content[name] = (place / "part").read_bytes()
    else:
        texts = (b"#panic()\n", b"$" * 99, b"# " + b"x" * 9999, b"![a](b)\n", b"<x>", b"\xff")
        content[name] = chance.choice(texts)
    left_out = ("SHA256SUMS", "ro-crate-metadata.json")
    sealed = {name: data for name, data in content.items() if name not in left_out}
    content["SHA256SUMS"] = bundle.checksums(sealed).encode(errors="surrogatepass")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return Input(["report", str(path), "--partial"])


OPTIONS = (
    "--watch", "--failed", "--partial", "--anonymise", "--html", "-o", "--output", "--license", "--confidence", "--tolerance",
    "--changed", "--fail-on", "--config", "--configfile", "--write", "--cells", "--scratch", "--site", "--slurm", "--wait", "--dry-run",
    "--round", "--plan", "--cell", "--job", "--kernels", "--version", "--help", "--nonsense", "-C", "--",
)  # fmt: skip
WORDS = (
    "", "inf", "1e300", "nan", "-1", "0", "1e-9", "x", "/etc/passwd", "/proc", "/dev/null", "/dev/full", "results/c", "results",
    "precious", "precious/thesis.pdf", "precious/other", "precious/other/plan.json", "results/c/plan.json", "c.zip", "scale=nan",
    "scale=1e400", "report={title: '\033[2J'}", "cpu=[{", "seed=-1", "\udcff", "x" * 5000, "CC-BY-4.0", "\n", "99999999999999999999",
    "cpu/cpubench/DP_none_x1/any/0", "../../precious", "four-subsystems-2018-hyperion", "config/presets/quick.yaml", "worse",
)  # fmt: skip
COMMANDS = (
    "plan", "status", "tables", "report", "compare", "bundle", "decide", "measure", "doctor",
    "machine", "summary", "html",
)  # fmt: skip


def command_line(_: Path, chance: random.Random) -> Input:
    lists = [OPTIONS if chance.random() < 0.45 else WORDS for _ in range(chance.randrange(6))]
    words = [chance.choice(every) for every in lists]
    # What is whole ends by itself; an unfinished campaign is watched until somebody ends it.
    if "--watch" in words:
        return Input(["status", str(CAMPAIGN), "--watch", chance.choice(WORDS)])
    return Input([chance.choice(COMMANDS), *words])


def written(_: Path, chance: random.Random) -> Input:
    """Outputs that are somebody else's."""
    target = chance.choice((*OTHERS, "other/plan.json", "tables"))
    path = chance.choice((f"{PRECIOUS}/{target}", f"results/../{PRECIOUS}/{target}"))
    command = chance.choice(("report", "html", "bundle", "plan", "decide"))
    if command == "plan":
        return Input([*PLAN, "--write", path])
    if command == "decide":
        plan = f"{CAMPAIGN}/plan.json"
        return Input(["decide", "--plan", plan, "--round", "0", "--output", path])
    anonymise = chance.choice(([], ["--anonymise"]))
    return Input([command, str(CAMPAIGN), "-o", path, *anonymise])


def linked(place: Path, chance: random.Random) -> Input:
    """Names of the campaign that are links to somebody else's files."""
    folder, others = place / CAMPAIGN, place / PRECIOUS
    names = ("tables", "figures", "tables/measurements.csv", "tables/cpu.csv", "tables/checksums.txt", "figures/overview.svg", "analysis.json",
             "report.pdf", "report.html", "report-anonymous.pdf", "written.sha256", "plan.json", "repetitions/0.json", "machine",
             "attempts", "../c.zip", "config.json")  # fmt: skip
    name = chance.choice(names)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    behind = others / ("tables" if "." not in name else "measurements.csv")
    if chance.random() < 0.2 and behind.is_file():
        path.hardlink_to(behind)
    else:
        path.symlink_to(os.path.relpath(behind, path.parent))
    first, *more = chance.choice(READERS)
    return Input([first, str(CAMPAIGN), *more])


def closed(_: Path, chance: random.Random) -> Input:
    reading = (["status", str(CAMPAIGN)], ["tables", str(CAMPAIGN)])
    words = chance.choice((*reading, ["plan"], ["doctor"], ["--help"]))
    return Input(words, chance.choice(((1,), (2,), (0,), (0, 1), (1, 2), (0, 1, 2))))


def sizes(place: Path, chance: random.Random) -> Input:
    """Files of gigabytes that take no room on the disk."""
    name, words = chance.choice((
        ("big.csv", ["compare", str(CAMPAIGN), "big.csv"]),
        ("big.yaml", ["plan", "--configfile", "big.yaml"]),
        ("big.zip", ["report", "big.zip"]),
        (f"{CAMPAIGN}/plan.json", ["status", str(CAMPAIGN)]),
        (f"{CAMPAIGN}/plan.json", ["measure", "--plan", f"{CAMPAIGN}/plan.json", "--cell", CELLS[0].id]),
        (f"{CAMPAIGN}/machine/node1.json", ["tables", str(CAMPAIGN)]),
        (f"{CAMPAIGN}/repetitions/0.json", ["status", str(CAMPAIGN)]),
        (f"{CAMPAIGN}/inputs/inputs.json", ["report", str(CAMPAIGN)]),
        (f"{CAMPAIGN}/inputs/text/0/design.md", ["report", str(CAMPAIGN)]),
        (f"{CAMPAIGN}/cells/{CELLS[0].id}.json", ["tables", str(CAMPAIGN)]),
        (f"{CAMPAIGN}/attempts/{CELLS[0].id}/0.stderr", ["bundle", str(CAMPAIGN)]),
    ))  # fmt: skip
    with (place / name).open("ab") as file:
        file.truncate(chance.choice((1, 3)) * GIB)
    return Input(words)


def scratch(_: Path, chance: random.Random) -> Input:
    words = ("/etc/passwd", "/proc", "/sys", "/dev/null", "/dev/shm", "precious/thesis.pdf")
    words += ("nowhere", "", "\n", "x" * 300)
    return Input([chance.choice(("doctor", "machine")), "--scratch", chance.choice(words)])


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        config_file, site_file, layout_file, plan_file, cell_of_plan, facts, inputs, record_file, decision_file, published,
        bundled, command_line, written, linked, closed, sizes, scratch,
    )
}  # fmt: skip
