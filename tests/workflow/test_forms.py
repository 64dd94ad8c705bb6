"""The other forms of the report: the HTML page that the flow writes, and Snakemake's own report."""

import json
import os
import re
import shlex

import pytest
from tests.checkout import TINY, TO_RECORDS, TO_TABLES, Checkout

from peakmark.messages import captions
from peakmark.tools.tables import BY_NAME

NO_NETWORK = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"
)


def test_snakemakes_own_report_holds_tables_figures_and_pdf_without_a_network(reported):
    results = reported.directory / "results" / "tiny"
    assert (results / "report.html").read_text().startswith("<!DOCTYPE html>")

    words = ("--report", "results/tiny/snakemake.html")
    reported.measure(reported.directory / "tiny.yaml", *words, env=NO_NETWORK)
    page = (results / "snakemake.html").read_text()
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?!data:)', page)
    for category in ("Tables", "Figures", "Report"):
        assert f'"{category}"' in page
    tables = (results / "tables").glob("*.csv")
    for title in [BY_NAME[path.stem].full_title for path in tables if path.stem != "runs"]:
        assert json.dumps({"table": title})[1:-1] in page, title
    # Which figures there are is up to this CPU: without a known limit there is no overview.
    drawn = [path.stem for path in (results / "figures").glob("*.svg")]
    assert "disk_throughput_strip" in drawn
    for name in drawn:
        assert f'"figure": "{name}"' in page
        caption = captions().get(name) or captions()[name.rpartition("_")[2]]
        assert caption[:60] in page
    assert '"report": "PDF"' in page
    assert "<strong>tiny</strong>" in page


def test_a_checkout_that_nobody_may_write_measures_into_another_folder(checkout, tmp_path):
    """As on a cluster where one checkout serves all."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a checkout read-only")
    config = checkout.write_config(
        "tiny.yaml", {**TINY, "memory": [], "disk": [], "network": [], "repetitions": 1}
    )
    home, own = tmp_path / "my measurements", {"PYTHONPATH": str(checkout.directory / "src")}
    home.mkdir()
    before = sorted(checkout.directory.rglob("*"))
    read_only = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && exec "$@"'
    flow = ["unshare", "--mount", "sh", "-c", read_only, str(checkout.directory)]
    flow += ["snakemake", "--snakefile", str(checkout.directory / "Snakefile")]
    flow += ["--profile", str(checkout.directory / "local"), "--directory", str(home)]
    done = checkout.run(*flow, "--configfile", str(config), *TO_TABLES, env=own)
    assert done.returncode == 0, done.stderr
    assert (home / "results/tiny/tables/cpu.csv").is_file()
    assert sorted(checkout.directory.rglob("*")) == before
    lost, elsewhere = next((home / "results/tiny/cells").rglob("0.json")), Checkout(home)
    lost.unlink()
    said = elsewhere.run("peakmark", "report", "results/tiny", env=own).stdout
    assert (home / "results/tiny/report.pdf").is_file()
    (line,) = (line for line in said.splitlines() if line.startswith("to measure what is missing"))
    command = f"{line.removeprefix('to measure what is missing')} -- {shlex.join(TO_RECORDS)}"
    again = elsewhere.run("sh", "-c", command, env=own)
    assert again.returncode == 0, again.stderr
    assert lost.is_file()
    # Without a configuration of one's own, the checkout's.
    default = checkout.run(*flow, "--dry-run", env=own)
    assert default.returncode == 0, default.stderr
