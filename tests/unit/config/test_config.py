from pathlib import Path
from typing import Any

import pytest
import snakemake.cli

from peakmark import yamlfile
from peakmark.catalogue import WORKLOADS
from peakmark.cell import Cell
from peakmark.config import campaign as config
from peakmark.config import overrides
from peakmark.errors import ConfigError
from peakmark.machine import topology
from peakmark.plan import plan
from peakmark.resources import ROOT

CPU = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
PRESETS = sorted((ROOT / "config" / "presets").glob("*.yaml"))


def of(subsystem: str, **keys: Any) -> dict[str, Any]:
    """The keys of one grid, which a right one of DP stands behind."""
    return {subsystem: [{"workloads": ["DP"], "concurrency": [1], **keys}]}


def test_defaults_are_filled_in() -> None:
    completed = config.complete(CPU)
    assert completed["campaign"] == "node"
    assert completed["memory"] == []
    assert completed["report"]["decimal_mark"] == "."


@pytest.mark.parametrize(
    ("path", "asked"),
    [("config/config.yaml", [1, "socket", "cores"]), ("config/presets/quick.yaml", [1, "cores"])],
)
def test_what_is_measured_without_a_word_loads_the_whole_node(
    path: str, asked: list[int | str]
) -> None:
    """But for latencies, and the presets that repeat a published report's own numbers."""
    completed = config.complete(overrides.read([ROOT / path]))
    grids = [
        grid
        for name in ("cpu", "memory")
        for grid in completed[name]
        if grid["workloads"] != ["LAT"]
    ]
    assert len(grids) > 3 and all(grid["concurrency"] == asked for grid in grids)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_the_node_chooses_the_pool_but_where_a_report_states_one(preset: Path) -> None:
    """The second report of 2018 walked 1 GB a hundred times."""
    pools = {
        grid.get("pool", "auto") for grid in config.complete(overrides.read([preset]))["memory"]
    }
    assert pools <= (
        {"1GiB", "auto"} if preset.stem == "four-subsystems-2018-prometheus" else {"auto"}
    )


@pytest.mark.parametrize("word", topology.WORDS)
def test_parts_of_the_node_are_words_beside_numbers(word: str) -> None:
    grid = {
        "workloads": ["RS"],
        "blocks": ["1KiB"],
        "concurrency": [1, word],
        "references": {"pmbw": {"concurrency": [word]}},
    }
    assert config.complete({"memory": [grid]})["memory"][0]["concurrency"] == [1, word]
    cell = Cell("memory", "rambench", "RS", "pool", 1024, 1, "any", 0, {}, word)
    assert Cell.from_json(cell.to_json()) == cell and cell.asked == word


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_presets_are_valid(preset: Path) -> None:
    config.complete(overrides.read([preset]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repetitions": 0}, ["repetitions", "0", "from 1 to 1000"]),
        ({"repetitions": "three"}, ["repetitions", '"three"', "whole number"]),
        ({"isa": "avx9"}, ["isa", "avx9", "avx2"]),
        ({"campain": "x"}, ["campain", "campaign"]),
        ({"campaign": "../x"}, ["campaign", "../x"]),
        ({"campaign": "a b; rm -rf $(HOME)"}, ["campaign"]),
        ({"cpu": [{"workloads": ["DP"]}]}, ["cpu[0]", "concurrency"]),
        (of("cpu", workloads=["XP"]), ["cpu[0].workloads", "XP", "DP"]),
        (of("cpu", concurrency=[0]), ["cpu[0].concurrency[0]", "0", "from 1 to 4096"]),
        (of("cpu", blocks=["1KiB"]), ["cpu[0]", "blocks"]),
        (of("cpu", total="lots"), ["cpu[0].total", "lots"]),
        (of("memory", workloads=["RWS"]), ["memory[0]", "blocks"]),
        (
            of("network", workloads=["TCP"], blocks=["1KiB"], concurrency=["cores"]),
            ["network[0].concurrency", "cores", "for cpu and memory", "number"],
        ),
        (of("memory", workloads=["RWS"], blocks=["1KB"]), ["memory[0].blocks", "1KB", "KiB"]),
        (
            of("memory", workloads=["RWS"], blocks=["1KiB"], variants=["cache"]),
            ["memory[0].variants", "cache", "block, pool and pool-temporal"],
        ),
        (
            of("disk", workloads=["RS"], blocks=["1MiB"], references={"dd": {}}),
            ["disk[0].references", "dd", "fio"],
        ),
        ({"tools": {"hpl": 3}}, ["tools.hpl", "3"]),
        ({"cpu": []}, ["measures nothing"]),
    ],
)
def test_a_wrong_value_is_one_sentence_with_key_value_and_what_is_allowed(
    change: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.complete({**CPU, **change})
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_later_files_win_by_key(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("campaign: a\nreport: {title: A, author: B}\n")
    (tmp_path / "b.yaml").write_text("report: {title: C}\ncpu: [x]")
    read = overrides.read(
        [tmp_path / "a.yaml", tmp_path / "b.yaml"], ["scale=0.5", "report={author: D}"]
    )
    assert (read["campaign"], read["report"]) == ("a", {"title": "C", "author": "D"})
    assert (read["scale"], read["cpu"]) == (0.5, ["x"])


def test_a_file_with_a_grid_is_the_whole_campaign(tmp_path: Path) -> None:
    """The grids of config/config.yaml belong to the campaign that it describes; its other keys are
    defaults.
    """
    base = yamlfile.read(ROOT / "config" / "config.yaml")
    (tmp_path / "cpu.yaml").write_text("cpu: [{workloads: [DP], concurrency: [1, 2]}]\n")
    (tmp_path / "site.yaml").write_text("site: config/sites/example.yaml\ndisk: []\n")
    only = overrides.read([tmp_path / "cpu.yaml"])
    assert [key for key in WORKLOADS if only.get(key)] == ["cpu"]
    assert only["repetitions"] == base["repetitions"]
    made = plan.make({**only, "seconds": 0.1})
    assert len(made.cells) == 2 * base["repetitions"]
    without = overrides.read([tmp_path / "site.yaml"])
    assert [key for key in WORKLOADS if without.get(key)] == ["cpu", "memory", "network"]
    by_word = overrides.read([], ["disk=[]"])
    assert [key for key in WORKLOADS if by_word.get(key)] == ["cpu", "memory", "network"]


@pytest.mark.parametrize(
    "word",
    [
        "scale=0.1",
        "seed=7",
        "isa=scalar",
        "checked=True",
        "x_y=False",
        "title='a b'",
        "name=1e-3",
        "disk=[]",
        "site=",
    ],
)
def test_a_word_of_the_command_line_is_what_snakemake_takes_it_for(word: str) -> None:
    assert overrides.pairs([word]) == snakemake.cli.parse_config([word])


def test_numbers_within_a_word_are_numbers() -> None:
    read = overrides.pairs(["cpu=[{workloads: [DP], concurrency: [1, 2]}]", "tools={hpl: false}"])
    assert read == {"cpu": [{"workloads": ["DP"], "concurrency": [1, 2]}], "tools": {"hpl": False}}


@pytest.mark.parametrize("key", ["campaign", "nodes", "interface"])
@pytest.mark.parametrize(
    "word", ["$(id)", "../x", "-x", "a b", "a\nb", "a\n", "a;b", "a'b", "é", "."]
)
def test_what_becomes_part_of_a_path_or_a_command_is_a_plain_name(key: str, word: str) -> None:
    with pytest.raises(ConfigError, match=r"allowed is"):
        config.complete({**CPU, key: word})


@pytest.mark.parametrize("word", [False, "false", "none", "no", "off"])
def test_a_tool_that_is_not_to_be_used_is_no_program(word: Any) -> None:
    grid = {"workloads": ["DP"], "concurrency": [1], "references": {"hpl": {}}}
    made = plan.make({"cpu": [grid], "tools": {"hpl": word}, "tools_on": "nodes"})
    assert {cell.instrument for cell in made.cells} == {"cpubench"}
    assert made.references[0].reason == "left out by tools.hpl"
