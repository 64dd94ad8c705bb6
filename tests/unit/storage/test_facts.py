"""The facts of a node: damaged ones count for nothing and are collected again; equal nodes."""

import copy
import platform
import shutil

import pytest
from tests.unit.campaign_data import VM
from tests.unit.hostile import change, stored

from peakmark import plan
from peakmark.comparability import differences, equipment_of
from peakmark.errors import RecordError
from peakmark.machine.facts import cached
from peakmark.storage import planfile, records
from peakmark.storage.results import Results
from peakmark.workflow import startup

GRID = {"workloads": ["SP"], "concurrency": [1]}
DAMAGES = [
    lambda path: change(path, memory={"channels": 99}),
    lambda path: path.write_text(path.read_text()[:500]),
    lambda path: path.write_bytes(b"\xff\xfe\x00"),
    lambda path: path.write_text(path.read_text().replace('"channels": ', '"a": NaN, "b": ')),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=["edited", "cut", "no text", "NaN"])
def test_damaged_facts_give_no_limit_and_are_collected_again(damage, known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = plan.make({"campaign": "c", "cpu": [GRID], "repetitions": 2})
    folder, host = made.directory, platform.node()
    shutil.copytree(known, folder / "machine")
    path = folder / "machine" / f"{host}.json"
    for cell in made.cells:
        stored(folder, cell, context={"host": host})
    planfile.write(folder / "plan.json", made.to_json())
    assert set(Results.read(folder).facts) == set(records.survey_facts(folder)[0]) == {host}
    assert not any(map(startup.is_unfit, startup.survey(Results.read(folder)).values()))
    damage(path)
    with pytest.raises(RecordError, match="machine facts") as caught:
        records.read_facts(path)
    assert damage is not DAMAGES[0] or "checksum does not fit" in str(caught.value)
    results = Results.read(folder)
    assert (
        not results.facts and not records.survey_facts(folder)[0]
    )  # no limit is computed from them
    assert any(str(path) in reason for reason in results.left_out)
    assert len(results.records) == len(made.cells)  # what was measured still counts
    found = startup.survey(results)
    (again,) = (cell for cell in made.cells if startup.is_unfit(found[cell.id]))
    startup.set_aside(made, found)  # whoever measures that one cell again collects the facts
    assert not path.exists() and not made.results.record_path(again).exists()
    assert (folder / "set-aside" / "machine" / f"{host}.0.json").exists(), "nothing is lost"
    assert cached(folder / "machine")["host"] == records.read_facts(path)["host"] == host


def changed(part, name, value):
    other = copy.deepcopy(VM)
    other[part][name] = value
    return other


@pytest.mark.parametrize(("part", "name", "value", "title"), [
    ("cpu", "model_name", "Another CPU", "CPU"),
    ("cpu", "threads", 64, "CPU"),
    ("cpu", "family", 99, "CPU"),
    ("memory", "total", 4 * VM["memory"]["total"], "memory"),
    ("os", "kernel", "6.1.0-49-amd64", "kernel"),
])  # fmt: skip
def test_a_class_is_cpu_memory_and_kernel(part, name, value, title):
    one, other = equipment_of(VM), equipment_of(changed(part, name, value))
    assert one == equipment_of(copy.deepcopy(VM)) != other
    (differ,) = differences({"a": one, "b": other, "c": one})
    assert differ.startswith(title) and "a and c" in differ and "on b" in differ
    assert differences({"a": one, "c": one}) == []
    (differ,) = differences({f"node{number}": one for number in range(40)} | {"odd": other})
    assert "40 nodes" in differ and "odd" in differ
    # What is not known counts as equal.
    unknown = equipment_of(changed(part, name, None))
    assert (
        name in ("threads", "family")
        or differences({"a": one, "b": unknown, "c": equipment_of({})}) == []
    )


@pytest.mark.parametrize("installed", [2, 4, 8, 16, 96, 192, 256, 384, 512, 768, 1024, 1536, 2048])
def test_some_hundred_mebibytes_make_no_class(installed):
    """Nodes that report 98 and 96 % of the modules they hold; firmware and kernel keep the rest."""
    whole = installed << 30
    totals = [whole, int(0.98 * whole), int(0.96 * whole) - (100 << 20)]
    classes = {str(total): equipment_of(changed("memory", "total", total)) for total in totals}
    assert differences(classes) == []
    assert {known.memory for known in classes.values() if known} == {f"{installed} GiB"}
