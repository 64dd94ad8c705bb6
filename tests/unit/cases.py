"""Tables of cases in ``tests/unit/data/cases``: a file for each boundary, in it a table for each test."""

from functools import cache

import pytest
import yaml
from tests.unit.campaign_data import DATA


@cache
def tables(boundary):
    """The tables of a file by their names: lists of rows, of which the first names the columns."""
    text = (DATA / "cases" / f"{boundary}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def cases(boundary, name="", **how):
    """Parametrise a test by the table of its own or of another name; ``how``: as pytest takes it."""

    def parametrised(test):
        columns, *rows = tables(boundary)[name or test.__name__]
        return pytest.mark.parametrize(columns, rows, **how)(test)

    return parametrised
