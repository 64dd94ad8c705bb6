"""What Snakemake's catalogue asks of a workflow: lint and place."""

import re
import shutil

from tests.checkout import ROOT, Checkout


def test_no_lint(checkout):
    run = checkout.run("snakemake", "--lint", "--configfile", "config/presets/quick.yaml")
    assert run.returncode == 0
    assert "your workflow is in a good condition" in run.stdout + run.stderr


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
