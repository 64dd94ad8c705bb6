"""What Snakemake's catalogue asks of a workflow: lint, with the one exception that is meant, format and place."""

import re
import shutil
import sys
from pathlib import Path

from tests.checkout import ROOT, Checkout

# Conda or a container would bring its own tools and libraries: what is measured is the machine with
# what it has, and envs/ says what that should be.
MEANT = {"Specify a conda environment or container for each rule."}


def test_no_lint_but_the_meant_one(checkout):
    run = checkout.run("snakemake", "--lint", "--configfile", "config/presets/quick.yaml")
    output = run.stdout + run.stderr
    found = {line.strip(" *:") for line in output.splitlines() if line.startswith("    * ")}
    assert "rule measure" in output
    assert found <= MEANT


def test_the_format_is_that_of_snakefmt():
    program = str(Path(sys.executable).parent / "snakefmt")
    run = Checkout(ROOT).run(program, "--check", "Snakefile", "rules", "workflow")
    assert run.returncode == 0, run.stderr


def test_what_snakedeploy_writes_names_the_report(tmp_path):
    """A module of the file that it looks for, with the whole workflow as the default target."""
    lines = (
        f'configfile: "{ROOT / "config" / "presets" / "quick.yaml"}"',
        f'module peakmark:\n    snakefile: "{ROOT / "workflow" / "Snakefile"}"\n    config: config',
        "use rule * from peakmark",
    )
    (tmp_path / "Snakefile").write_text("\n".join(lines))
    run = Checkout(tmp_path).run("snakemake", "--dry-run", "--cores", "all")
    assert "rule report" in run.stdout + run.stderr


def test_the_catalogue_draws_the_rule_graph_of_a_fresh_clone(checkout):
    """By its own command; nothing is compiled or measured."""
    shutil.rmtree(checkout.directory / "build")
    words = ("-s", "workflow/Snakefile", "-c", "1", "-d", ".test", "--forceall", "--rulegraph")
    sources = {"PYTHONPATH": str(checkout.directory / "src")}
    run = checkout.run("snakemake", *words, env=sources)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("digraph")
    rules = {"kernels", "measure", "rows", "tables", "report", "deployed"}
    assert set(re.findall(r'label = "(\w+)"', run.stdout)) == rules
    assert not (checkout.directory / "build").exists()
    assert not (checkout.directory / ".test" / "results").exists()
