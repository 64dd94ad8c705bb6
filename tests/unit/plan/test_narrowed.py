"""A grid for one row of a campaign asks for the very cells of that row."""

from dataclasses import replace

import pytest
from tests.unit.config.test_config import PRESETS
from tests.unit.plan.planned import where

from peakmark import plan, yamlfile
from peakmark.catalogue import WORKLOADS
from peakmark.plan import grids
from peakmark.tools import REGISTRY

NODES = ("node1", "node2")


def of_kernels(config):
    """Id of each cell of a kernel -> the cell."""
    cells = plan.make_completed(config, where(asked="all", nodes=NODES)).cells
    kernels = (cell for cell in cells if not REGISTRY[cell.instrument].reference)
    return {cell.id: _without_pmbw(cell) for cell in kernels}


def _without_pmbw(cell):
    """The cell without what the grid's reference asks of it."""
    options = {key: value for key, value in cell.options.items() if key != "power_of_two"}
    return replace(cell, options=options)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_narrowed_grid_asks_for_the_row_alone(preset):
    config = plan.complete(yamlfile.read(preset), on_cluster=True)
    every = of_kernels(config)
    points = {(cell.subsystem, cell.point): cell for cell in every.values()}
    empty = {subsystem: [] for subsystem in WORKLOADS}
    for cell in points.values():
        grid = grids.narrowed(config, cell) | {"repetitions": 1}
        alone = of_kernels({**config, **empty, cell.subsystem: [grid]})
        assert {one.point for one in alone.values()} == {cell.point}
        assert alone == {name: every[name] for name in alone}


@pytest.mark.parametrize("pairs", ["all", {"rounds": 1}])
def test_a_cell_of_a_pair_comes_from_a_grid_with_pairs(pairs):
    keys = {"workloads": ["TCP", "UDP"], "blocks": ["1KiB", "32KiB"], "concurrency": [1, 4]}
    grid = {**keys, "seconds": 0.2, "pairs": pairs}
    config = plan.complete({"network": [{**keys, "seconds": 0.4}, grid]}, on_cluster=True)
    for cell in of_kernels(config).values():
        narrowed = grids.narrowed(config, cell)
        assert narrowed["seconds"] == (0.2 if cell.peer else 0.4)
        assert ("pairs" in narrowed) == bool(cell.peer)
