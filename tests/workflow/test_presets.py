"""The shipped presets on this machine: to the report, with what is missing named."""

import pytest
from tests import presets

# What `make demo` runs. All others by make test-trouble: each cell of several threads with IOZone
# takes 20 s, however small, as that tool sleeps between its phases.
DEMO = "quick"
TROUBLE = [pytest.param(name, marks=pytest.mark.trouble) for name in presets.NAMES if name != DEMO]


@pytest.mark.parametrize("name", [DEMO, *TROUBLE])
def test_a_preset_runs_to_its_report(checkout, name):
    file = checkout.directory / f"config/presets/{name}.yaml"
    done = checkout.measure(file, "--config", *presets.short(name), limit_s=1800)
    assert "Traceback" not in done.stderr
    results = checkout.directory / "results" / name
    presets.assert_whole(results, checkout.records(name))
    assert not list((results / "attempts").rglob("*.json"))
