"""Matrices from NUMA node to NUMA node, on an emulated machine of two: their shape, and where the
pages lie. Never for speed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench import KERNELS, LIMIT_S
from tests import guest
from tests.guest import Machine

from peakmark.catalogue import NUMA
from peakmark.cell import Cell
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

HERE = Path(__file__).resolve().parent
MACHINE = Machine(sockets=2, cores=1, nodes=2, memory_mib=768)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What rambench printed, and the nodes of its pages, from the emulated machine."""
    if reason := guest.why_not(MACHINE):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("matrix").resolve()
    order = {"workloads": NUMA, "kernels": str(KERNELS)}
    where: dict[str, Any] = {"machine": MACHINE, "path": [HERE], "shown": [KERNELS]}
    answer: dict[str, Any] = guest.call(
        folder, "numa_tasks:matrices", order, limit_s=4 * LIMIT_S, **where
    )
    return answer


@pytest.mark.parametrize("number", range(len(NUMA)))
def test_a_matrix_goes_from_each_node_to_each(number: int, seen: dict[str, Any]) -> None:
    cell = Cell("memory", "rambench", NUMA[number], "", None, 2, "any", 0)
    done = Completed((), 0, seen["printed"][number], "")
    rows = {row.variant: row for row in REGISTRY["rambench"].parse(cell, done).measurements}
    assert list(rows) == ["local", "other-socket"]
    for name, pairs in (("local", [[0, 0], [1, 1]]), ("other-socket", [[0, 1], [1, 0]])):
        points = rows[name].details["points"]
        assert [point[:2] for point in points] == pairs
        assert all(value > 0 for *_, value in points)


def test_each_node_holds_its_area(seen: dict[str, Any]) -> None:
    assert set(seen["pages"]) == {"0", "1"}
    assert seen["pages"]["0"] == pytest.approx(seen["pages"]["1"], rel=0.1)
