"""What a configuration may say, and any value of any key of it or of a site: taken or refused."""

import pytest
import snakemake.cli
import yaml
from tests.unit.campaign_data import DATA, cell_of
from tests.unit.cases import cases
from tests.unit.hostile import one_grid, refuses

from peakmark import plan, yamlfile
from peakmark.catalogue import SHAPES, WORKLOADS
from peakmark.cell import Cell
from peakmark.config import campaign as config
from peakmark.config.types import (
    Campaign,
    CpuGrid,
    DiskGrid,
    GpuGrid,
    MemoryGrid,
    MpiGrid,
    NetworkGrid,
    ReferenceGrid,
    Report,
)
from peakmark.machine import topology
from peakmark.resources import ROOT

CPU = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
PRESETS = sorted((ROOT / "config" / "presets").glob("*.yaml"))


def test_defaults_are_filled_in():
    completed = config.complete(CPU)
    assert completed.campaign == "node"
    assert completed.memory == []
    assert completed.report.title == ""


@pytest.mark.parametrize(
    ("path", "asked"),
    [("config/config.yaml", [1, "socket", "cores"]), ("config/presets/quick.yaml", [1, "cores"])],
)
def test_what_is_measured_without_a_word_loads_the_whole_node(path, asked):
    """But for latencies, and the presets that repeat a published report's own numbers."""
    completed = config.complete(config.read([ROOT / path]))
    grids = [
        grid
        for grid in [*completed.cpu, *completed.memory]
        if grid.workloads[0] not in ("LAT", *SHAPES)
    ]
    assert len(grids) > 3 and all(grid.concurrency == asked for grid in grids)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_presets_are_valid(preset):
    """The node chooses the pool, but where a report states one."""
    memory = config.complete(config.read([preset])).memory
    stated = {"1GiB"} if preset.stem == "four-subsystems-2018-prometheus" else set()
    assert {grid.pool for grid in memory} <= {"auto"} | stated


@pytest.mark.parametrize("word", topology.WORDS)
def test_parts_of_the_node_are_words_beside_numbers(word):
    grid = one_grid("memory", concurrency=[1, word], references={"pmbw": {"concurrency": [word]}})
    assert config.complete(grid).memory[0].concurrency == [1, word]
    cell = Cell("memory", "rambench", "RS", "pool", 1024, 1, "any", 0, {}, word)
    assert cell_of(cell.to_json()) == cell and cell.asked == word


@cases("configuration")
def test_a_wrong_value_is_one_sentence_with_key_value_and_what_is_allowed(change, words):
    refuses(lambda: plan.make({**CPU, **change}), *words)


def test_later_files_win_by_key(tmp_path):
    (tmp_path / "a.yaml").write_text("campaign: a\nreport: {title: A, author: B}\n")
    (tmp_path / "b.yaml").write_text("report: {title: C}\ncpu: [x]")
    read = config.read(
        [tmp_path / "a.yaml", tmp_path / "b.yaml"], ["scale=0.5", "report={author: D}"]
    )
    assert (read["campaign"], read["report"]) == ("a", {"title": "C", "author": "D"})
    assert (read["scale"], read["cpu"]) == (0.5, ["x"])


def test_files_win_over_the_values_of_a_module(tmp_path):
    (tmp_path / "a.yaml").write_text("seed: 2")
    read = config.read([tmp_path / "a.yaml"], values={"seed": 3, "cpu": [{"workloads": []}]})
    assert (read["seed"], read["cpu"], "disk" in read) == (2, [{"workloads": []}], False)


def test_a_file_with_a_grid_is_the_whole_campaign(tmp_path):
    """The other keys of config/config.yaml are defaults."""
    base = yamlfile.read(ROOT / "config" / "config.yaml")
    (tmp_path / "cpu.yaml").write_text("cpu: [{workloads: [DP], concurrency: [1, 2]}]\n")
    (tmp_path / "site.yaml").write_text("site: config/sites/example.yaml\ndisk: []\n")
    only = config.read([tmp_path / "cpu.yaml"])
    assert [key for key in WORKLOADS if only.get(key)] == ["cpu"]
    assert only["repetitions"] == base["repetitions"]
    made = plan.make({**only, "seconds": 0.1})
    assert len(made.cells) == 2 * base["repetitions"]
    without = config.read([tmp_path / "site.yaml"])
    assert [key for key in WORKLOADS if without.get(key)] == ["cpu", "memory", "network", "gpu"]
    by_word = config.read([], ["disk=[]"])
    assert [key for key in WORKLOADS if by_word.get(key)] == ["cpu", "memory", "network", "gpu"]


@pytest.mark.parametrize(
    "word",
    [
        "scale=0.1", "seed=7", "isa=scalar", "checked=True", "x_y=False", "title='a b'",
        "name=1e-3", "disk=[]", "site=",
    ],
)  # fmt: skip
def test_a_word_of_the_command_line_is_what_snakemake_takes_it_for(word):
    assert config.pairs([word]) == snakemake.cli.parse_config([word])


def test_numbers_within_a_word_are_numbers():
    read = config.pairs(["cpu=[{workloads: [DP], concurrency: [1, 2]}]", "tools={hpl: false}"])
    assert read == {"cpu": [{"workloads": ["DP"], "concurrency": [1, 2]}], "tools": {"hpl": False}}


@pytest.mark.parametrize("key", ["campaign", "nodes", "interface"])
@pytest.mark.parametrize(
    "word",
    ["$(id)", "../x", "-x", "a b", "a\nb", "a\n", "a;b", "a'b", "é", ".", "a b; rm -rf $(HOME)"],
)
def test_what_becomes_part_of_a_path_or_a_command_is_a_plain_name(key, word):
    refuses(lambda: config.complete({**CPU, key: word}), key, "allowed is")


@pytest.mark.parametrize("word", [False, "false", "none", "no", "off"])
def test_a_tool_that_is_not_to_be_used_is_no_program(word):
    grid = {"workloads": ["DP"], "concurrency": [1], "references": {"hpl": {}}}
    made = plan.make({"cpu": [grid], "tools": {"hpl": word}, "tools_on": "nodes"})
    assert {cell.instrument for cell in made.cells} == {"cpubench"}
    assert made.references[0].reason == "left out by tools.hpl"


EVERY_KEY = yaml.safe_load((DATA / "every-key.yaml").read_text())


def test_the_configuration_holds_every_key():
    assert EVERY_KEY.keys() == set(Campaign.__struct_fields__)
    assert EVERY_KEY["report"].keys() == set(Report.__struct_fields__)
    grids = [one for name in WORKLOADS for one in EVERY_KEY[name]]
    kinds = (CpuGrid, MemoryGrid, DiskGrid, NetworkGrid, MpiGrid, GpuGrid)
    keys = {key for one in grids for key in one}
    assert keys == {key for kind in kinds for key in kind.__struct_fields__}
    tools = {key for one in grids for tool in one.get("references", {}).values() for key in tool}
    assert tools == set(ReferenceGrid.__struct_fields__)
    assert plan.make(EVERY_KEY).cells


@pytest.mark.parametrize("nodes", ["all", "node33", ["node1", "node2"]])
def test_nodes_are_a_word_or_a_list_of_different_names(nodes):
    assert config.complete({**CPU, "nodes": nodes}).nodes == nodes
