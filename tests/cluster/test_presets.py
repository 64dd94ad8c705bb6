"""The shipped presets on clusters as strangers have them: to the report, with what is missing named."""

import json
import re

import pytest
from tests import presets

from workflow import Workflow


# Of presets, sites and ways of fanning out, one that is short: a site with rules, whose nodes lack a tool.
@pytest.mark.parametrize(("kind", "preset", "fan_out"), [
    ("site", "six-core-evaluation", "node"),
    *(pytest.param(*values, marks=pytest.mark.trouble) for values in (
        ("site", "quick", "cell"),
        ("cluster", "quick", "cell"),
        ("cluster", "full", "cell"),
        ("cluster", presets.DEFAULT, "cell"),
        ("cluster", "quick", "node"),
        *(("site", name, "node") for name in presets.NAMES if name != "six-core-evaluation"),
    )),
])  # fmt: skip
def test_a_preset_runs_to_its_report(request, tmp_path, kind, preset, fan_out):
    """On a site with rules, and on a cluster without slurmdbd."""
    cluster = request.getfixturevalue(kind)
    workflow = Workflow.make(cluster, tmp_path / "checkout")
    # What a site's administrator would tell its users to write.
    words = [f"site={workflow.site('{account: tests}')}"] if cluster.layout.account else []
    done = workflow.preset(preset, *presets.short(preset), *words, f"fan_out={fan_out}")
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{said}\n{json.dumps(workflow.attempts(), indent=1)}"
    assert "Traceback" not in said
    assert not workflow.attempts()
    if fan_out == "node":
        # Progress is shown while a node's job runs, not only when it ends.
        counts = re.findall(r"^(\d+) of (\d+) jobs", said, re.MULTILINE)
        assert any(number != total for number, total in counts), said
    records = workflow.records()
    presets.assert_whole(workflow.results, records, cluster.layout.without)
    assert_own_share(cluster, records)
    assert not cluster.run(["squeue", "--noheader"]).stdout


def assert_own_share(cluster, records):
    """Two threads ran on two CPUs, on the node that has them; memory is what Slurm has of it."""
    layout = cluster.layout
    cpus = dict(zip(layout.names, layout.each(layout.cpus), strict=True))
    memory = dict(zip(layout.names, layout.each(layout.memory), strict=True))
    for name, record in records.items():
        context = record["context"]
        if record["status"] != "ok" or name.startswith("network/"):
            continue
        assert len(context["cpus"]) == cpus[context["host"]], f"{name} did not have its node's CPUs"
        assert context["allowed"]["memory_bytes"] <= memory[context["host"]] << 20, name
        threads = record["cell"]["concurrency"]
        # A word such as `cores` is as many as the node has, whichever it is.
        if record["cell"]["node"] == "any" and isinstance(threads, int):
            assert len(context["cpus"]) >= min(threads, max(cpus.values())), name
