"""Any value of any key of a configuration or a site file is taken or refused, in one sentence and
in time.
"""

from __future__ import annotations

import copy
import json
import math
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.hostile import SECONDS, one_grid, refused

from peakmark.catalogue import WORKLOADS
from peakmark.config import site
from peakmark.config.layouts import Layout
from peakmark.config.types import Campaign, CampaignGrid, ReferenceGrid, Report, Site
from peakmark.errors import ConfigError
from peakmark.plan import plan, plan_text

GRID = {
    "repetitions": {"min": 6, "max": 7, "until": "2%", "within": "1 h"},
    "seconds": 0.1,
    "warmup": 0.1,
}


EVERY_KEY: dict[str, Any] = {
    "campaign": "c", "seed": 1, "nodes": "any", "fan_out": "cell", "peers": "ring", "give_up_after": "1 h", "retries": 2, "interface": "lo", "seconds": 0.1, "warmup": 0.1,
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
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
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
    assert EVERY_KEY.keys() == set(Campaign.__struct_fields__)
    assert EVERY_KEY["report"].keys() == set(Report.__struct_fields__)
    grids = [one for name in WORKLOADS for one in EVERY_KEY[name]]
    assert {key for one in grids for key in one} == set(CampaignGrid.__struct_fields__)
    tools = {key for one in grids for tool in one["references"].values() for key in tool}
    assert tools == set(ReferenceGrid.__struct_fields__)
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
def test_any_value_of_any_site_key_is_read_or_refused(
    path: tuple[Any, ...], tmp_path: Path, in_time: None
) -> None:
    file = tmp_path / "site.yaml"
    for new in WRONG:
        file.write_text(json.dumps(with_value(EVERY_SITE_KEY, path, new)))
        try:
            site.for_host(site.load(file), "fat-1")
        except ConfigError as error:
            refused(str(error))


@pytest.mark.parametrize("kind", [Campaign, Site, Layout])
def test_every_pattern_is_told_in_words(kind: type) -> None:
    """A regular expression is no message for people."""
    found = []

    def look(node: Any, words: str) -> None:
        words = (getattr(node, "extra", None) or {}).get("allowed", words)
        if getattr(node, "pattern", None):
            found.append(words)
        for name in ("type", "item_type", "value_type"):
            if hasattr(node, name):
                look(getattr(node, name), words)
        for part in getattr(node, "types", ()):
            look(part, words)
        for field in getattr(node, "fields", ()):
            look(field.type, "")

    look(msgspec.inspect.type_info(kind), "")
    assert found and all(found)


def test_a_message_shows_what_was_written(tmp_path: Path) -> None:
    for values, words in (
        ({"campaign": "Straße 東京"}, ['campaign is "Straße 東京"', "letters, digits"]),
        ({"nodes": {"sample": 0}}, ["at least 1"]),
        (
            {"cpu": [{"workloads": [], "concurrency": [1]}]},
            ["cpu[0].workloads", "at least 1 entry"],
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            plan.make({**one_grid("cpu"), **values})
        refused(str(caught.value), *words)
    made = plan.make({**one_grid("cpu"), "repetitions": 1})
    assert plan_text.describe(made).startswith("campaign node: 1 cell, ")
