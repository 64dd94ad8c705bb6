"""`peakmark check`: slow, good or cannot tell, by real kernels and made intervals."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.check import made
from tests.programs import executable
from tests.unit import campaign_data

from peakmark import cli, comparability
from peakmark.check import command
from peakmark.check.command import CheckedRow, ClassRow, Try
from peakmark.machine.host import Host
from peakmark.resources import ROOT
from peakmark.rows import build, expectations
from peakmark.storage.results import Results

KERNELS = ROOT / "build" / "kernels"
CHECK = ROOT / "src" / "peakmark" / "check"
LEAST, MOST = 1.0, 1e14
"""A rate in op/s that every machine reaches, and one that none does."""
DP = made.dp(1)


@pytest.fixture
def golden_fleet(golden):
    """Four nodes of one class, judged."""
    return golden("cluster")


@pytest.fixture(autouse=True)
def short_tries(monkeypatch):
    monkeypatch.setattr(command, "MOST_TRY_S", command.LEAST_TRY_S)


@pytest.fixture
def quiet(monkeypatch):
    """Other tests run beside this one: let nothing count as a disturbance."""
    monkeypatch.setattr(command.activity, "find_disturbances", lambda *_, **__: {})


def checked(capsys, folder, *words):
    """Exit code of a check, and its only line."""
    code = cli.main(["check", str(folder), "--kernels", str(KERNELS), "--seconds", "20", *words])
    said = capsys.readouterr()
    (line,) = (said.out + said.err).splitlines()
    return code, line


@pytest.mark.parametrize("words", [(), ("--for", "prolog"), ("--for", "health"), ("--for", "nhc")])
def test_a_slow_node_is_named_with_row_value_expected_value_and_tries(
    words, quiet, tmp_path, capsys
):
    code, line = checked(capsys, made.write(tmp_path, {DP: MOST}), *words)
    assert code == 1 and line.startswith("slow: ") and " in cpu DP x1: " in line
    assert f"expected at least 90000 GOP/s (class in {tmp_path}; tries: " in line
    assert line.count("GOP/s") == 1 + 1 + command.TRIES


@pytest.mark.parametrize("words", [(), ("--for", "prolog"), ("--for", "health"), ("--for", "nhc")])
def test_a_node_that_reaches_its_class_is_good(words, tmp_path, capsys):
    code, line = checked(capsys, made.write(tmp_path, {DP: LEAST}), *words)
    assert code == 0 and line.startswith("good: ") and "cpu DP x1 at least " in line


@pytest.mark.parametrize(("promised", "code"), [(LEAST, 0), (MOST, 1), (None, 0)])
def test_a_promised_value_must_be_reached_too(promised, code, quiet, tmp_path, capsys):
    folder = made.write(tmp_path, {DP: LEAST})
    path = folder / "rows" / "check.json"
    classes = json.loads(path.read_text())
    classes[0]["rows"][0]["promised"] = promised
    path.write_text(json.dumps(classes))
    found, line = checked(capsys, folder)
    assert found == code
    assert ("100000 GOP/s as promised" in line) == bool(code), line


@pytest.mark.parametrize(("words", "code"), [((), 3), (("--for", "prolog"), 0)])
def test_a_busy_node_cannot_be_told(words, code, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command.activity, "find_disturbances", lambda *_, **__: {"other-load": 1.3})
    found, line = checked(capsys, made.write(tmp_path, {DP: MOST}), *words)
    assert found == code
    assert line.startswith("cannot tell: ") and "other programs used 1.3 CPUs" in line


def test_another_processor_is_another_class(tmp_path, capsys):
    folder = made.write(tmp_path, {DP: MOST}, cpu="Z80 with 1 CPUs")
    code, line = checked(capsys, folder)
    assert code == 3 and "no class" in line and "Z80 with 1 CPUs" in line


def test_other_memory_is_named_as_a_possible_reason(quiet, tmp_path, capsys):
    _, line = checked(capsys, made.write(tmp_path, {DP: MOST}, memory="7 GiB"))
    assert line.startswith("slow: ") and "that of its class 7 GiB" in line


def test_missing_kernels_cannot_be_told(tmp_path, capsys):
    code, line = checked(capsys, made.write(tmp_path, {DP: MOST}), "--kernels", str(tmp_path))
    assert code == 3 and "the kernel cpubench is not in" in line and "make kernels" in line


def test_fewer_cpus_than_the_row_needs_cannot_be_told(tmp_path, capsys):
    needs = made.dp(os.cpu_count() + 1)
    code, line = checked(capsys, made.write(tmp_path, {needs: MOST}))
    assert code == 3 and f"needs {os.cpu_count() + 1} CPUs" in line


@pytest.mark.parametrize(("words", "said"), [
    (("--rows", "HPL"), "it has cpu DP x1"),
    (("--seconds", "0.1"), "give 1 to 3600"),
    (("--seconds", "59", "--for", "health"), "give 1 to 55"),
])  # fmt: skip
def test_wrong_options_are_usage_errors(words, said, tmp_path, capsys):
    code, line = checked(capsys, made.write(tmp_path, {DP: LEAST}), *words)
    assert code == (0 if "--for" in words else 2) and said in line


@pytest.mark.parametrize(("words", "code"), [((), 4), (("--for", "health"), 0)])
@pytest.mark.parametrize("text", ["{", '[{"rows": []}]', '[{"equipment": {}, "rows": [{}]}]'])
def test_a_damaged_list_of_classes_is_an_error(text, words, code, tmp_path, capsys):
    made.write(tmp_path, {DP: LEAST})
    (tmp_path / "rows" / "check.json").write_text(text)
    found, line = checked(capsys, tmp_path, *words)
    assert found == code and "is damaged" in line and "peakmark tables" in line


def test_a_folder_without_rows_is_an_error(tmp_path, capsys):
    code, line = checked(capsys, tmp_path)
    assert code == 4 and "cannot be read" in line


def test_a_wrong_result_is_worse_than_slow(tmp_path, capsys):
    made.write(tmp_path / "campaign", {DP: LEAST})
    executable(tmp_path / "cpubench", "#!/bin/sh\necho '{\"wrong_cpus\": [5]}'; exit 1\n")
    code, line = checked(capsys, tmp_path / "campaign", "--kernels", str(tmp_path))
    assert code == 1 and line.startswith("wrong: the core of CPU 5 on ")


def test_a_kernel_that_hangs_keeps_the_time(tmp_path, capsys):
    made.write(tmp_path / "campaign", {DP: LEAST})
    executable(tmp_path / "cpubench", "#!/bin/sh\nexec sleep 60\n")
    code, line = checked(
        capsys, tmp_path / "campaign", "--kernels", str(tmp_path), "--seconds", "1"
    )
    assert code == 3 and "DP x1 in time" in line


def test_the_standard_library_alone_is_enough(tmp_path):
    """Neither an environment nor PATH, as in a prolog; nothing is written anywhere."""
    folder = made.write(tmp_path / "campaign", dict.fromkeys(made.headlines(1), LEAST))
    python = Path(sys.executable).resolve()
    argv = [python, "-IBS", "-X", "importtime", CHECK, folder, "--kernels", KERNELS]
    argv += ["--seconds", "8"]
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        argv, env={}, cwd="/", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("good: ") and done.stdout.count("\n") == 1
    for name in ("pandas", "numpy", "msgspec", "yaml", "snakemake"):
        assert f" {name}\n" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


# -- the rule


def row(**changed):
    known = made.expected(made.dp(2), 100.0) | {"highest": 101.0, "bound": 90.0}
    return ClassRow(**{**known, **changed})


@pytest.mark.parametrize(("lowest", "highest", "is_time", "bound"), [
    (99.0, 101.0, False, 90.0),
    (80.0, 100.0, False, 64.0),
    (99.0, 101.0, True, 111.1),
    (80.0, 100.0, True, 125.0),
])  # fmt: skip
def test_the_bound_is_as_far_beyond_the_interval_as_that_is_wide(lowest, highest, is_time, bound):
    assert expectations.bound(lowest, highest, is_time=is_time) == pytest.approx(bound)


NODE = command.NodeFacts("node1", command.Equipment(), is_virtual=False)
GUEST = NODE._replace(is_virtual=True)
COPY = {"is_cpu": False, "is_private": False, "name": "memory RWS pool x2"}


@pytest.mark.parametrize(("of", "tried", "node", "good", "why"), [
    (row(), [Try(50.0), Try(51.0), Try(95.0)], NODE, True, None),
    (row(), [Try(50.0)] * 3, NODE, False, ""),
    (row(), [Try(50.0), Try(50.0, "other programs used 1 CPUs"), Try(50.0)], NODE, False, "used 1"),
    # A quota of one CPU for two threads explains half the rate, whatever else happens.
    (row(), [Try(30.0, "other programs used 1 CPUs", 1.0)] * 3, NODE, False, ""),
    (row(), [Try(30.0, "", 1.0)], NODE, False, ""),
    # A quota of 1.9 CPUs keeps no good node below the bound.
    (row(), [Try(30.0, "other programs used 1 CPUs", 1.9)] * 3, NODE, False, "used 1"),
    (row(**COPY), [Try(30.0, "other programs used 1 CPUs", 1.0)] * 3, NODE, False, "used 1"),
    (row(**COPY), [Try(30.0)] * 3, NODE, False, ""),
    (row(**COPY), [Try(30.0)] * 3, GUEST, False, "other guests"),
    (row(), [Try(30.0)] * 3, GUEST, False, ""),
])  # fmt: skip
def test_a_row_is_slow_only_if_nothing_else_explains_it(of, tried, node, good, why):
    each = CheckedRow(of, tried)
    assert each.is_good == good
    if not good:
        found = each.uncertainty(node)
        assert why in found and bool(why) == bool(found)


@pytest.mark.parametrize(("seconds", "count"), [(20.0, 3), (2.0, 2), (1.0, 1)])
def test_rows_are_left_out_if_the_time_is_short(seconds, count):
    rows = [CheckedRow(row(overhead_s=each)) for each in (0.1, 0.1, 0.6)]
    planned, _ = command.plan(rows, seconds)
    assert planned == rows[:count]


@pytest.mark.parametrize(("seconds", "try_s"), [(60.0, 1.0), (7.0, 0.9), (1.0, 0.1)])
def test_a_try_takes_its_share_of_the_time(seconds, try_s, monkeypatch):
    monkeypatch.setattr(command, "MOST_TRY_S", 1.0)
    rows = [CheckedRow(row(overhead_s=0.1)) for _ in range(2)]
    assert command.plan(rows, seconds)[1] == pytest.approx(try_s)


def test_a_row_is_not_measured_without_time_for_it(tmp_path):
    each = CheckedRow(row(overhead_s=0.1))
    command._try(each, tmp_path, 0.1, deadline=0.0)
    assert not each.tries and "time was too short" in each.uncertainty(NODE)


# -- what it reads


def test_of_two_classes_with_this_processor_the_one_with_most_in_common_counts(tmp_path):
    node = command.read_node(Host())
    made.write(tmp_path, {DP: 100.0}, memory="1 GiB", kernel="0.1")
    path = tmp_path / "rows" / "check.json"
    (other,) = json.loads(path.read_text())
    equal = {"equipment": {**other["equipment"], "memory": node.equipment.memory}, "rows": []}
    path.write_text(json.dumps([other, equal]))
    assert command.read_class(tmp_path, node)[1] == []
    # Cells of any node are a class of their own, with the equipment of the named nodes.
    path.write_text(json.dumps([equal, other, equal | {"rows": other["rows"]}]))
    assert [each.name for each in command.read_class(tmp_path, node).rows] == ["cpu DP x1"]


def test_cells_of_any_node_have_the_equipment_that_all_hosts_share(tmp_path):
    facts = campaign_data.node_facts()
    other = {**facts, "os": {"kernel": "0.1"}}
    records = [
        *campaign_data.runs("cpubench", "DP", 4e10),
        *campaign_data.runs("cpubench", "SP", 8e10, host="node2"),
    ]
    campaign_data.write(tmp_path, records, machines={"node1": facts, "node2": other})
    (known,) = expectations.list_classes(build.load(tmp_path), Results.read(tmp_path))
    shared = comparability.equipment_of(facts)
    assert known["equipment"] == shared._replace(kernel="")._asdict()


@pytest.fixture
def listed(golden_fleet):
    """What the rows of four equal nodes are compared with, after a change of the frame of rows."""
    results = Results.read(golden_fleet)

    def do(change=lambda rows: rows):
        frames = build.load(golden_fleet)
        rows = change(frames.rows.copy())
        of_nodes, _of_any = expectations.list_classes(replace(frames, rows=rows), results)
        return of_nodes["rows"]

    return do


def test_the_rows_of_a_real_campaign_have_names_and_commands(listed):
    rows = [ClassRow(**known) for known in listed()]
    headlines = command.choose(rows, [])
    assert [each.name for each in headlines] == ["cpu DP x2"]
    assert headlines[0].argv[0] == "cpubench" and headlines[0].cpus == [0, 1]
    assert "--seconds" not in headlines[0].argv and "0.2" not in headlines[0].argv
    assert [each.name for each in command.choose(rows, ["LAT"])] == ["memory_latency LAT 1MiB x1"]


@pytest.mark.filterwarnings("error")
def test_a_campaign_without_rows_has_classes_without_rows(listed):
    assert listed(lambda rows: rows.iloc[:0]) == []


def test_slow_nodes_wrong_rows_and_other_programs_do_not_belong_to_the_class(listed):
    def change(rows):
        is_dp = rows["workload"].eq("DP") & rows["concurrency"].eq(1)
        for node, column, value in [
            ("node1", "is_slow", True), ("node2", "wrong_codes", "cached"), ("node3", "is_own", False),
        ]:  # fmt: skip
            chosen = is_dp & rows["node"].eq(node)
            rows.loc[chosen, column] = value
            rows.loc[chosen, "low"] = 1.0
        return rows

    (known,) = (each for each in listed(change) if each["name"] == "cpu DP x1")
    assert known["bound"] > 1e6


@pytest.mark.parametrize(("quota", "kept"), [(None, None), (2.0, None), (1.5, 1.5)])
def test_a_quota_counts_if_it_is_below_the_threads(quota, kept, monkeypatch):
    monkeypatch.setattr(command.job_limits, "collect", lambda _: {"cpu_quota": quota})
    assert command._quota(row()) == kept


@pytest.mark.parametrize(("limit", "usual", "words"), [
    (1.2e9, 3.7e9, "limited to 1.2 GHz (class: 3.7 GHz)"), (3.7e9, 3.7e9, ""), (None, 3.7e9, ""),
    (1.2e9, None, ""),
])  # fmt: skip
def test_a_clock_that_is_limited_more_than_that_of_the_class_is_a_disturbance(limit, usual, words):
    found = command._lowered_clock(limit, usual)
    assert words in found and bool(words) == bool(found)


def test_lost_cpu_time_is_a_disturbance_unless_a_quota_explains_it():
    printed = {"cpu_share": 0.5}
    assert "waited for a CPU 50.0 %" in command._disturbances(row(), printed, None, None)[0]
    assert command._disturbances(row(), printed, None, 1.0) == []


def test_a_defect_does_not_drain_a_node(monkeypatch, tmp_path, capsys):
    def fail(*_):
        raise KeyError("x")

    monkeypatch.setattr(command, "compare_node", fail)
    code, line = checked(capsys, tmp_path)
    assert code == 4 and "defect of peakmark" in line
