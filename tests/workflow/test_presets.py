"""The shipped presets on this machine: to the report, with what is missing named and nothing else lost."""

from __future__ import annotations

import pytest
from tests import presets
from tests.checkout import Checkout

# quick, with all tools, runs on the test cluster; here the one that takes least beside it. All others by make test-trouble.
CHEAP = "file-io-lab"
TROUBLE = [pytest.param(name, marks=pytest.mark.trouble) for name in presets.NAMES if name != CHEAP]


@pytest.mark.parametrize("name", [CHEAP, *TROUBLE])
def test_a_preset_runs_to_its_report(checkout: Checkout, name: str) -> None:
    file = checkout.directory / f"config/presets/{name}.yaml"
    done = checkout.snakemake(file, "--config", *presets.short(name), limit_s=1800)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    results = checkout.directory / "results" / name
    presets.assert_whole(results, checkout.records(name))
    assert not list((results / "attempts").rglob("*.json"))
