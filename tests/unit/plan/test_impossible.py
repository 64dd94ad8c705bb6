"""What is possible nowhere is refused when it is planned; limits of references are named."""

import pytest
from tests.unit.cases import cases
from tests.unit.hostile import one_grid, refused

from peakmark import plan
from peakmark.errors import ConfigError
from peakmark.workflow import startup


@cases("configuration")
def test_what_is_possible_nowhere_is_refused_when_it_is_planned(kind, values, words):
    with pytest.raises(ConfigError) as caught:
        plan.make(values)
    refused(str(caught.value), *words)


def test_more_cells_than_a_year_has_seconds_are_refused():
    grid = one_grid("cpu", concurrency=list(range(1, 4097)), repetitions=1000)
    with pytest.raises(ConfigError, match="more than 200000 cells"):
        plan.make(grid)


@cases("configuration")
def test_what_a_reference_cannot_do(values, row, words):
    made = plan.make(values)
    assert words in made.impossible[row]
    assert row in "\n".join(startup.check(made, made.cells))
