from pathlib import Path
from typing import Any

import pytest

from peakmark.errors import ConfigError
from peakmark.planning import config
from peakmark.resources import ROOT, schema

CPU = {"cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
PRESETS = sorted((ROOT / "config" / "presets").glob("*.yaml"))


def test_defaults_are_filled_in() -> None:
    completed = config.complete(CPU)
    assert completed["campaign"] == "node"
    assert completed["memory"] == []
    assert completed["report"]["decimal_mark"] == "."


def test_every_key_is_described() -> None:
    for name, part in schema("config")["properties"].items():
        assert part.get("description"), name


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_presets_are_valid(preset: Path) -> None:
    config.complete(config.read(ROOT / "config" / "config.yaml", preset))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repetitions": 0}, ["repetitions", "0", "at least 1"]),
        ({"repetitions": "three"}, ["repetitions", '"three"', "integer"]),
        ({"isa": "avx9"}, ["isa", "avx9", "avx2"]),
        ({"campain": "x"}, ["campain", "campaign"]),
        ({"campaign": "../x"}, ["campaign", "../x"]),
        ({"campaign": "a b; rm -rf $(HOME)"}, ["campaign"]),
        ({"cpu": [{"workloads": ["XP"], "concurrency": [1]}]}, ["cpu[0].workloads", "XP", "DP"]),
        ({"cpu": [{"workloads": ["DP"]}]}, ["cpu[0]", "concurrency"]),
        ({"cpu": [{"workloads": ["DP"], "concurrency": [0]}]}, ["cpu[0].concurrency[0]", "0", "at least 1"]),
        ({"cpu": [{"workloads": ["DP"], "concurrency": [1], "blocks": ["1KiB"]}]}, ["cpu[0]", "blocks"]),
        ({"cpu": [{"workloads": ["DP"], "concurrency": [1], "total": "lots"}]}, ["cpu[0].total", "lots"]),
        ({"memory": [{"workloads": ["RWS"], "concurrency": [1]}]}, ["memory[0]", "blocks"]),
        (
            {"memory": [{"workloads": ["RWS"], "concurrency": [1], "blocks": ["1KB"]}]},
            ["memory[0].blocks", "1KB", "KiB"],
        ),
        (
            {"memory": [{"workloads": ["RWS"], "concurrency": [1], "blocks": ["1KiB"], "variants": ["cache"]}]},
            ["memory[0].variants", "cache", "block and pool"],
        ),
        (
            {"disk": [{"workloads": ["RS"], "concurrency": [1], "blocks": ["1MiB"], "references": {"dd": {}}}]},
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


def test_broken_yaml_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("campaign: x\ncpu: [\n")
    with pytest.raises(ConfigError, match=r"own\.yaml, line \d"):
        config.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        config.read(tmp_path / "absent.yaml")


def test_later_files_win_by_key(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("campaign: a\nreport: {title: A, author: B}\n")
    (tmp_path / "b.yaml").write_text("report: {title: C}\n")
    assert config.read(tmp_path / "a.yaml", tmp_path / "b.yaml") == {
        "campaign": "a",
        "report": {"title": "C", "author": "B"},
    }


@pytest.mark.parametrize("key", ["campaign", "nodes", "interface"])
@pytest.mark.parametrize("word", ["$(id)", "../x", "-x", "a b", "a\nb", "a\n", "a;b", "a'b", "é", "."])
def test_what_becomes_part_of_a_path_or_a_command_is_a_plain_name(key: str, word: str) -> None:
    with pytest.raises(ConfigError, match=r"allowed is"):
        config.complete({**CPU, key: word})
