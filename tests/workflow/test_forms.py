"""The other forms of the report: the HTML page that the flow writes, and Snakemake's own report."""

from __future__ import annotations

import json
import re

from checkout import TINY, Checkout

from peakmark.reporting import captions

NO_NETWORK = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"
)


def test_snakemakes_own_report_holds_tables_figures_and_pdf_without_a_network(checkout: Checkout) -> None:
    config = checkout.write_config("tiny.yaml", {**TINY, "memory": [], "network": []})
    run = checkout.snakemake(config)
    assert run.returncode == 0, run.stderr
    results = checkout.directory / "results" / "tiny"
    assert (results / "report.html").read_text().startswith("<!DOCTYPE html>")

    made = checkout.snakemake(config, "--report", "results/tiny/snakemake.html", env=NO_NETWORK)
    assert made.returncode == 0, made.stderr
    page = (results / "snakemake.html").read_text()
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?!data:)', page)
    for category in ("Tables", "Figures", "Report"):
        assert f'"{category}"' in page
    for title in captions.tables().values():
        assert json.dumps({"table": title})[1:-1] in page, title
    for name in ("overview", "cpu", "disk_throughput"):
        assert f'"figure": "{name}"' in page
        assert captions.text(name)[:60] in page
    assert '"report": "PDF"' in page
    assert "Campaign <strong>tiny</strong> of peakmark" in page

    again = checkout.snakemake(config, "--dry-run")
    assert "Nothing to be done" in again.stdout + again.stderr
