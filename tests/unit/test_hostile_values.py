"""Values that nobody measured and files that nobody wrote: each is refused in a sentence, in time,
wherever it stands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, LIMIT_S, SECONDS, Said, copied, refused, stored
from tests.unit.limits.test_limits import VM, machine

from peakmark import files, yamlfile
from peakmark.bundle import bundle
from peakmark.errors import ConfigError
from peakmark.plan import plan
from peakmark.storage import decisions, facts, planfile, records
from peakmark.storage.results import Results
from peakmark.workflow import doctor, startup


@pytest.mark.parametrize(
    "value",
    [
        '!!int ""', "!!bool x", "!!timestamp abc", '!!float ""', "!!int [1]", "!!set {a}",
        "!!binary x", "!mine x", "!!map x",
    ],
)  # fmt: skip
def test_a_tag_of_yaml_makes_nothing_of_a_value(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        yamlfile.parse(f"campaign: {value}", "own.yaml")
    refused(str(caught.value), "own.yaml", "line 1")


def test_a_text_may_be_called_one() -> None:
    assert yamlfile.parse("a: !!str 5\nb: !!int 5", "own.yaml") == {"a": "5", "b": 5}


WRONG_FACTS: dict[str, Any] = {
    "a section that is a number": {"cpu": 5},
    "a clock that is a text": {"cpu": {"clock_hz": {"nominal": "fast"}}},
    "caches that are numbers": {"cpu": {"caches": [1]}},
    "a cache without a size": {"cpu": {"caches": [{"level": 1, "type": "data"}]}},
    "memory that is a list": {"memory": [1]},
    "a program without a version": {"tools": {"fio": {}}},
    "a size that is a text": {"storage": {"size": "large"}},
    "members that are a number": {"network": {"members": 5}},
    "libraries that are numbers": {"libraries": {"a": 1}},
    "a number without end": {"memory": {"total": 10**400}},
}


@pytest.mark.parametrize("kind", WRONG_FACTS)
def test_machine_facts_of_another_type_count_for_nothing(
    kind: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    known = {**VM}
    for name, part in WRONG_FACTS[kind].items():
        known[name] = {**known.get(name, {}), **part} if isinstance(part, dict) else part
    path = folder / "machine" / "node1.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(records.text_of(known))
    done = peakmark("tables", folder)
    assert done.returncode == 0
    assert str(path) in done.stderr and "collects them again" in done.stderr
    assert peakmark("summary", folder).returncode == 0
    assert facts.whole(folder) == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"text": {"a": "\\u0000"}}',
        '{"text": {"a": "\\ud800"}}',
        '{"text": {"a": "inputs/loop"}}',
        "[",
    ],
)
def test_a_list_of_inputs_that_names_nothing(
    text: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    (folder / "inputs").mkdir()
    (folder / "inputs" / "loop").symlink_to("loop")
    (folder / "inputs" / "inputs.json").write_text(text)
    plan_path = folder / "plan.json"
    changed = json.loads(plan_path.read_text())
    changed["config"]["report"] = {"text": {"design": "a"}}
    plan_path.write_text(json.dumps(changed))
    done = peakmark("html", folder)
    assert done.returncode in (1, 2)
    refused(done.stderr, "a" if "loop" in text else "inputs.json")


@pytest.mark.parametrize("words", ["inf", "1e300", "nan", "-1", "0", "x"])
def test_a_status_is_not_watched_at_every_pace(
    words: str, small: Path, peakmark: Callable[..., Said]
) -> None:
    with pytest.raises(SystemExit) as caught:
        peakmark("status", small, "--watch", words)
    assert caught.value.code == 2


@pytest.mark.parametrize(("closed", "code"), [((1,), 1), ((2,), 0), ((0, 1), 1), ((0, 1, 2), 1)])
def test_a_command_without_standard_streams(
    closed: tuple[int, ...], code: int, small: Path, tmp_path: Path
) -> None:
    """A file that is opened later must not take the place of one of them."""
    words = " ".join(f"{stream}>&-" for stream in closed)
    said = tmp_path / "said"
    line = f'exec "$0" -m peakmark status "$1" 2>"$2" {words}'
    argv = ["sh", "-c", line, sys.executable, str(small), str(said)]
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    assert done.returncode == code
    if 2 not in closed:
        refused(said.read_text(), "standard output")


ABSURD: dict[str, dict[str, Any]] = {
    "a value without end": {"measured": {"value": 10**400}},
    "a value that no computer has": {"measured": {"value": 1e308}},
    "a time that is none": {"context": {"started": "never"}},
    "seconds without end": {"context": {"seconds": 1e300}},
    "a clock that is a text": {"measured": {"details": {"clock_hz_loaded": "fast"}}},
    "a detail that is a list": {"measured": {"details": {"held_up": [1]}}},
    "half a character": {"context": {"scratch": "\ud800"}},
}


@pytest.mark.parametrize("kind", ABSURD)
def test_a_sealed_record_of_absurd_values_is_measured_again(
    kind: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    path = stored(folder, **ABSURD[kind])
    for command in ("tables", "summary"):
        assert peakmark(command, folder).returncode == 0
    assert str(path) in peakmark("tables", folder).stderr
    done = peakmark("report", folder)
    assert done.returncode == 1
    refused(done.stderr, "1 of 1", "do not count", str(path))
    assert peakmark("status", folder).stdout.count("damaged") >= 1


def test_a_row_far_above_its_limit_is_drawn(tmp_path: Path, peakmark: Callable[..., Said]) -> None:
    known = machine(cpu={"clock_hz": {"nominal": 2e9, "maximum": None, "observed": 2e9}})
    cells = [make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(3)]
    folder = make.write(tmp_path / "c", [], planned=cells, facts=known)
    for of, value in zip(cells, (2e10, 2e10, 1e21), strict=True):
        stored(folder, of, measured={"value": value})
    assert peakmark("tables", folder).returncode == 0
    assert (folder / "figures" / "overview.svg").stat().st_size < 1 << 20


HEADING = "source,hardware,table,workload,concurrency,block,instrument,metric,value,unit,run,note"
LINES = {
    "concurrency below one": "s,h,cpu,DP,-1,,x,rate,1,op/s,1,",
    "a workload that is none": "s,h,cpu,XX,1,,x,rate,1,op/s,1,",
    "a value without end": "s,h,cpu,DP,1,,x,rate,1e308,op/s,1,",
    "a run that is none": "s,h,cpu,DP,1,,x,rate,1,op/s,best,",
}


@pytest.mark.parametrize("kind", LINES)
def test_published_results_that_cannot_be(
    kind: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADING}\n{LINES[kind]}\n")
    done = peakmark("compare", small, path)
    assert done.returncode == 2
    refused(done.stderr, "own.csv", "line 2", "allowed")


@pytest.mark.parametrize(
    "name", ["own.csv", "plan.json", "config.yaml", "machine/node1.json", f"cells/{CELL.id}.json"]
)
def test_a_file_of_gigabytes_is_not_read(
    name: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.truncate(3 << 30)
    begin = os.times()
    words = {"own.csv": ["compare", folder, path], "config.yaml": ["plan", "--configfile", path]}
    done = peakmark(*words.get(name, ["tables", folder]))
    assert os.times().user - begin.user < SECONDS
    assert str(path) in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == {"own.csv": 2, "plan.json": 1, "config.yaml": 2}.get(name, 0)


def test_names_with_escapes_are_shown_as_such(
    tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../\033[2Jx", "")
    done = peakmark("report", path)
    assert done.returncode == 1
    assert "\033" not in done.stderr and "x1b" in done.stderr


def test_a_bundle_that_was_sealed_again_is_blamed_itself(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    path = folder / "plan.json"
    changed = json.loads(path.read_text())
    changed["config"]["report"] = {"text": {"design": "own.typ"}}
    path.write_text(json.dumps(changed))
    (folder / "inputs").mkdir()
    (folder / "inputs" / "own.typ").write_text("As it was.\n")
    (folder / "inputs" / "inputs.json").write_text('{"text": {"own.typ": "inputs/own.typ"}}')
    assert peakmark("bundle", folder, "-o", tmp_path / "b.zip").returncode == 0
    for name, text in (("inputs/text/0/own.typ", "#nothing()\n"), ("plan.json", "{}")):
        with zipfile.ZipFile(tmp_path / "b.zip") as archive:
            content = {entry: archive.read(entry) for entry in archive.namelist()}
        del content["SHA256SUMS"]
        content[name] = text.encode()
        inside = {entry: one for entry, one in content.items() if not entry.startswith("ro-crate")}
        sealed = bundle.checksums(inside)
        with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
            for entry, data in {**content, "SHA256SUMS": sealed.encode()}.items():
                archive.writestr(entry, data)
        done = peakmark("report", tmp_path / "c.zip")
        said = done.stderr.splitlines()[-1]
        assert done.returncode == 1
        assert Path(name).name in said
        assert "Typst could not" not in said and "peakmark-bundle" not in said


def test_damaged_decisions_are_set_aside_by_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wish = {"min": 6, "max": 9, "until": 0.02}
    grid = {"workloads": ["SP"], "concurrency": [1], "repetitions": wish}
    made = plan.make({"campaign": "c", "cpu": [grid], "tools_on": "nodes"}, None)
    planfile.write(made.directory / "plan.json", made.to_json())
    path = made.directory / decisions.FOLDER / "0.json"
    files.write_text(path, '{"schema": 1, "rows": {"a": {"nope": 1}}}')
    results = Results.read(made.directory)
    assert results.decisions == {}
    assert any(str(path) in sentence for sentence in results.left_out)
    startup.set_aside(made, startup.survey(results))
    assert not path.exists()
    aside = made.directory / "set-aside" / decisions.FOLDER
    assert [kept.name for kept in aside.iterdir()] == ["0.0.json"]


@pytest.mark.parametrize("scratch", ["/etc/passwd", "/proc", "/nowhere", "/dev/null"])
def test_doctor_takes_no_scratch_that_takes_no_file(scratch: str, tmp_path: Path) -> None:
    for place, mark in ((Path(scratch), "missing"), (tmp_path, None)):
        text, healthy = doctor.examine(place, Path("build/kernels"))
        (line,) = [line for line in text.splitlines() if "scratch" in line and str(place) in line]
        if mark:
            assert line.startswith(mark) and not healthy
        else:
            assert not line.startswith("missing")


def test_doctor_says_where_iozone_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text, _ = doctor.examine(tmp_path, tmp_path)
    (line,) = (line for line in text.splitlines() if "iozone3" in line)
    assert "non-free" in line
