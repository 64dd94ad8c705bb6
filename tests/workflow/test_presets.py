"""The shipped presets on this machine: to the report, with what is missing named."""

import pytest
from tests import presets

# What `make demo` runs, with one cell at the memory: working sets of the size of this machine's caches take
# most of its time. All whole presets by make test-trouble: each cell of several threads with IOZone takes
# 20 s, however small, as that tool sleeps between its phases.
ONE_CELL = "memory=[{workloads: [RWS], blocks: [1KiB], concurrency: [1]}]"


@pytest.mark.parametrize(("name", "less"), [
    ("quick", [ONE_CELL]),
    *(pytest.param(name, [], marks=pytest.mark.trouble) for name in presets.NAMES),
])  # fmt: skip
def test_a_preset_runs_to_its_report(checkout, name, less):
    file = checkout.directory / f"config/presets/{name}.yaml"
    done = checkout.measure(file, "--config", *presets.short(name), *less, limit_s=1800)
    assert "Traceback" not in done.stderr
    results = checkout.directory / "results" / name
    presets.assert_whole(results, checkout.records(name))
    assert not list((results / "attempts").rglob("*.json"))
