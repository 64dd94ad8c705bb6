"""Kinds of hostile input for ``fuzz_cli``: each changes a campaign or writes a file, and names the
command that reads it.
"""

import hashlib
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.unit import campaign_data as make
from tests.unit.hostile import any_value, changed

from peakmark.bundle import bundle
from peakmark.cell import Cell
from peakmark.resources import ROOT
from peakmark.storage import decisions, planfile, records
from peakmark.storage.results import Results

CAMPAIGN = Path("results/c")
PRECIOUS = Path("precious")
"""Files of others: nothing in it may change, whatever a campaign says."""
OTHERS = ("thesis.pdf", "notes.txt", "tables/cpu.csv", "0.json", "measurements.csv")
OUTSIDE = (
    "../../precious", "../../../precious/thesis.pdf", "/etc/passwd", "/tmp/x", "..", "", "a\0b",
)  # fmt: skip
"""Where a name in a file must not lead."""
CONFIGURATIONS = {"config": "config/presets", "site": "config/sites", "layout": "reports/layouts"}


@dataclass(frozen=True)
class Input:
    """The words of a command, and which standard streams it is started without."""

    words: list[str]
    closed: tuple[int, ...] = ()


Kind = Callable[[Path, random.Random], Input]

READERS = (
    "status", "status --failed", "summary", "tables", "report", "report --partial", "html",
    "bundle --partial", "bundle --anonymise",
)  # fmt: skip
QUICK = ("status", "tables", "summary", "status --failed")
"""Those that take little time, which most inputs are for."""
YAML_VALUES = (
    '!!int ""', "!!bool x", "!!timestamp abc", '!!float ""', "!!null x", "!!binary x", "!!set {a}", "!!omap [a]",
    "!!pairs [a: 1]", "!!python/object/apply:os.system [id]", "!!str", "!local x", "!!int [1]", "!!map x", "!!seq {}", "!!merge x",
    "!!value =", "=", "<<", "{<<: 1}", "{<<: [1]}", "&a [*a]", "*nobody", ".nan", "-.inf", "1e400", "2026-99-99", "0x_", "0b_",
    "190:20:30.15", "9" * 5000, "9" * 400, "[" * 3000, "{a: " * 500, "|\n  text", '"\\ud800"', '"\\0"', "? [1]\n: 2", "- - -",
    "'", "%TAG ! x", "---", "...", "\t", "2001-12-14t21:59:43.10-99:99", "+.e+1", "._", "1_", "~", "[~]", "on", "é٣東",
)  # fmt: skip
CELLS = [
    *(make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(6)),
    *(make.cell("rambench", "RWS", subsystem="memory", variant="pool", block=1024, repetition=number) for number in range(2)),
    make.cell("rambench", "LAT", subsystem="memory", block=16 << 10),
    make.cell("diskbench", "RR", subsystem="disk", variant="psync", block=4096),
    make.cell("netbench", "TCP", subsystem="network", block=1024),
    make.cell("hpl", "DP", subsystem="cpu"),
]  # fmt: skip
METRICS = {"DP": "rate", "LAT": "latency", "RR": "iops"}


def prepare(base: Path) -> None:
    """Write what each input is made from: a whole campaign, files of others, and empty folders."""
    for name in (*OTHERS, "../home/x", "../results/x"):
        path = base / PRECIOUS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"years of work: {name}\n")
    folder = base / CAMPAIGN
    written = []
    for number, cell in enumerate(CELLS):
        metric = METRICS.get(cell.workload, "throughput")
        value = {"latency": 1e-7, "iops": 2e4}.get(metric, 1e10) * (1 + number / 100)
        written.append(make.record(cell, [make.measurement(cell, metric, value)]) | {"raw": {}})
    report = {"title": "T", "author": "A", "text": {"design": "design.md"}}
    config = {"report": report, "site_facts": {"name": "s", "cpu": {}}}
    facts = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
    make.write(folder, written, config=config, facts=facts)
    plan = read(folder / "plan.json")
    for place, cell in enumerate(CELLS):
        plan["cells"][place] |= {"id": cell.id, "job": f"any.{place // 6}"}
    criterion = {"least": 6, "most": 9, "until": 0.02, "within_s": None}
    adaptive = {CELLS[0].row: criterion}
    planfile.write(folder / "plan.json", plan | {"adaptive": adaptive, "cluster": None})
    (of_row,) = Results.read(folder).criteria.values()
    decided = decisions.Decision(of_row, 6, 6, 0.01, "narrow")
    decisions.write(folder / decisions.FOLDER / "0.json", {CELLS[0].row: decided})
    failed = make.record(CELLS[0], status="failed", reason="it broke")
    failed["raw"] = {"0.stderr": hashlib.sha256(b"broke\n").hexdigest()}
    for name, text in (
        (f"attempts/{CELLS[0].id}/0.json", records.text_of(failed)),
        (f"attempts/{CELLS[0].id}/0.stderr", "broke\n"),
        ("inputs/text/0/design.md", "# Design\n\nAs it is.\n"),
        ("inputs/inputs.json", '{"text": {"design.md": "inputs/text/0/design.md"}}\n'),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes of which some are lost, changed or doubled, or that are something else altogether."""
    way, place = chance.random(), chance.randrange(len(data) + 1)
    if way < 0.3:
        return data[:place]
    if way < 0.6:
        return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    if way < 0.8:
        return data[:place] + data[max(0, place - 40) :]
    others = (b"", b"\0" * 100, b"[" * 100_000, b"null", b"[]", b"{}", b"5", b"\xff\xfe", b"NaN")
    return chance.choice((*others, b'{"a": 1e400}', b'"\\ud800"'))


def put(path: Path, value: Any) -> None:
    """Write JSON, NaN and half characters included; a file with a checksum gets one that fits."""
    text = json.dumps(value)
    with suppress(ValueError, TypeError, AttributeError):
        text = records.text_of(value) if records.CHECKSUM in path.read_text() else text
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> Any:
    value = json.loads(path.read_text())
    if isinstance(value, dict):
        value.pop(records.CHECKSUM, None)
    return value


def reader(chance: random.Random) -> Input:
    """A command that reads the campaign."""
    command = chance.choice(QUICK if chance.random() < 0.75 else READERS)
    first, *more = command.split()
    return Input([first, str(CAMPAIGN), *more])


def yaml_file(place: Path, chance: random.Random) -> Input:
    """A configuration, a site or a layout with something wrong in it."""
    kind = chance.choice(sorted(CONFIGURATIONS))
    text = chance.choice(sorted((ROOT / CONFIGURATIONS[kind]).glob("*.yaml"))).read_text()
    path, way = place / "own.yaml", chance.random()
    if way < 0.4:
        lines = text.splitlines()
        keys = [at for at, line in enumerate(lines) if ":" in line and not line.startswith("#")]
        number = chance.choice(keys)
        lines[number] = f"{lines[number].partition(':')[0]}: {chance.choice(YAML_VALUES)}"
        text = "\n".join(lines)
    elif way < 0.8:
        value = changed(yaml.safe_load(text), chance, chance.choice((1, 1, 3)))
        text = yaml.safe_dump(value) if chance.random() < 0.5 else json.dumps(value)
    content = text.encode(errors="surrogatepass")
    path.write_bytes(content if way < 0.8 else damaged(content, chance))
    if kind == "layout":
        plan = read(place / CAMPAIGN / "plan.json")
        plan["config"]["report"]["tables"] = str(path)
        put(place / CAMPAIGN / "plan.json", plan)
        return reader(chance)
    if kind == "config":
        return Input(
            ["plan", "--configfile", str(path), "--config", "scale=0.01", "tools_on=nodes"]
        )
    if chance.random() < 0.2:
        return Input(["doctor", "--slurm", "--site", str(path), "--wait", "0"])
    return Input(["plan", "--config", "tools_on=nodes", f"site={path}"])


def campaign_file(place: Path, chance: random.Random) -> Input:
    """A file of the campaign: its plan, facts, own texts, records, decisions."""
    folder = place / CAMPAIGN
    kinds = (
        "plan.json", "machine/*.json", "inputs/*.json", "repetitions/*.json", "attempts/**/*.json",
    )  # fmt: skip
    path = chance.choice(sorted(folder.glob(chance.choice((*kinds, *["cells/**/*.json"] * 3)))))
    value, way = read(path), chance.random()
    if way < 0.15:
        path.write_bytes(damaged(path.read_bytes(), chance))
        return reader(chance)
    if way < 0.3:
        key = "campaign" if "campaign" in value else "raw"
        name, digest = chance.choice(OUTSIDE), hashlib.sha256(b"x").hexdigest()
        value[key] = name if key == "campaign" else {name: digest}
    elif way < 0.55 and value.get("measurements"):
        part = chance.choice([value["context"], *value["measurements"]])
        part[chance.choice(sorted(part))] = any_value(chance)
    else:
        value = changed(value, chance, chance.choice((1, 2, 5)))
    put(path, value)
    if path.parent.name == "repetitions" and chance.random() < 0.5:
        plan = ["--plan", f"{CAMPAIGN}/plan.json", "--round", chance.choice(("0", "-1", "9" * 20))]
        return Input(["decide", *plan])
    return reader(chance)


def cell_of_plan(place: Path, chance: random.Random) -> Input:
    """A real cell of a plan that was changed, alone or in its job."""
    options = {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "auto"}
    cell = Cell("cpu", "cpubench", "SP", "", None, 1, "any", 0, options)
    path = place / "results" / "m" / "plan.json"
    config = {"tools": {}, "modules": {}, "interface": None, "scratch": None}
    plan: dict[str, Any] = {"schema": 1, "campaign": "m", "config": config, "cluster": None}
    plan["cells"] = [{"id": cell.id, "job": "any.0", **cell.to_json()}]
    words, way = chance.choice((["--cell", cell.id], ["--job", "any.0"])), chance.random()
    if way < 0.3:
        plan["cells"][0]["job"] = chance.choice((*OUTSIDE, "a/b", "\n"))
        words = ["--job", plan["cells"][0]["job"].replace("\0", "")]
    elif way < 0.8:
        plan = changed(plan, chance) | {"cells": changed(plan["cells"], chance)}
    files = planfile.text(plan).encode()
    path.parent.mkdir(parents=True)
    path.write_bytes(files if way < 0.8 else damaged(files, chance))
    kernels = str(ROOT / "build" / "kernels")
    return Input(["measure", "--plan", str(path), *words, "--kernels", kernels])


def published(place: Path, chance: random.Random) -> Input:
    source = chance.choice(sorted((ROOT / "reports" / "published").glob("*.csv")))
    lines = source.read_text().splitlines()[: chance.choice((2, 20))]
    path, number = place / "own.csv", chance.randrange(len(lines))
    fields = lines[number].split(",")
    words = ("-1", "0", "1e308", "1e-320", "nan", "inf", "1e999", "9" * 500)
    words += ("XX", "", "\0", '"', "\033[2J", "1KiB", "٣", "../x")
    fields[chance.randrange(len(fields))] = chance.choice(words)
    lines[number] = ",".join(fields)
    content = "\n".join(lines).encode()
    path.write_bytes(damaged(content, chance) if chance.random() < 0.25 else content)
    if chance.random() < 0.3:
        plan = read(place / CAMPAIGN / "plan.json")
        plan["config"]["report"]["published"] = [str(path)]
        put(place / CAMPAIGN / "plan.json", plan)
        return reader(chance)
    one, other = chance.choice(((CAMPAIGN, path), (path, CAMPAIGN), (path, path)))
    return Input(["compare", str(one), str(other)])


def bundled(place: Path, chance: random.Random) -> Input:
    """A bundle that was damaged, or changed and sealed again."""
    path, way = place / "c.zip", chance.random()
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
        part = place / "part"
        part.write_bytes(content[name])
        put(part, changed(read(part), chance))
        content[name] = part.read_bytes()
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
    "--failed", "--partial", "--anonymise", "--html", "-o", "--output", "--license", "--confidence", "--tolerance",
    "--changed", "--fail-on", "--config", "--configfile", "--write", "--cells", "--scratch", "--site", "--slurm", "--wait", "--dry-run",
    "--round", "--plan", "--cell", "--job", "--kernels", "--version", "--help", "--nonsense", "-C", "--",
)  # fmt: skip
WORDS = (
    "", "inf", "1e300", "nan", "-1", "0", "1e-9", "x", "/etc/passwd", "/proc", "/dev/null", "/dev/full", "results/c", "results",
    "precious", "precious/thesis.pdf", "precious/measurements.csv", "results/c/plan.json", "c.zip", "scale=nan",
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
    closed = chance.choice(((1,), (2,), (0, 1), (0, 1, 2))) if chance.random() < 0.1 else ()
    return Input([chance.choice(COMMANDS), *words], closed)


def linked(place: Path, chance: random.Random) -> Input:
    """Names of the campaign that are links to somebody else's files."""
    folder, others = place / CAMPAIGN, place / PRECIOUS
    names = ("tables", "figures", "tables/measurements.csv", "tables/cpu.csv", "tables/checksums.txt", "figures/overview.svg",
             "analysis.json", "report.pdf", "report.html", "written.sha256", "plan.json", "machine",
             "repetitions/0.json", "attempts", "../c.zip", "config.json", "inputs/text/0/design.md")  # fmt: skip
    name = chance.choice(names)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    behind = others / ("tables" if "." not in name else "measurements.csv")
    if chance.random() < 0.2 and behind.is_file():
        path.hardlink_to(behind)
    else:
        path.symlink_to(os.path.relpath(behind, path.parent))
    return reader(chance)


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        yaml_file, campaign_file, cell_of_plan, published, bundled, command_line, linked,
    )
}  # fmt: skip
