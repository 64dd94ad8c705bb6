"""The appendix: what went wrong, where the numbers come from, what it takes to reproduce them."""

import hashlib

import yaml
from tests.checkout import ROOT
from tests.unit import campaign_data as make

from peakmark import yamlfile
from peakmark.analysis.analysis import Analysis
from peakmark.config.campaign import complete
from peakmark.report import appendix

CPU = [make.cell("cpubench", "DP", subsystem="cpu", concurrency=number) for number in range(1, 31)]


def read(folder, records, **more):
    return Analysis.of(make.write(folder, records, **more))


def test_problems_name_failed_repeated_refused_and_missing_cells(tmp_path):
    names = ("DP", "QPDOT", "SP")
    done, refused, hole = (make.cell("cpubench", name, subsystem="cpu") for name in names)
    failing = make.cell("hpl", "DP", subsystem="cpu")
    records = make.runs("cpubench", "DP", 4e10)
    records += [make.record(refused, status="unavailable", reason="no such instruction")]
    attempts = [make.record(done, status="failed", reason="killed by signal 9")]
    attempts += [make.record(failing, status="failed", reason="no output") for _ in range(5)]
    analysis = read(tmp_path / "c", records, planned=[hole, failing], attempts=attempts)
    assert sorted(appendix.problems(analysis)["lines"]) == [
        ["cpubench DP_none_x1 any", "failed, repeated later", "killed by signal 9 (node1)"],
        ["cpubench QPDOT_none_x1 any", "not possible here", "no such instruction"],
        ["cpubench any", "not measured", "no record yet"],
        ["hpl DP_none_x1 any", "failed (5 times)", "no output (node1)"],
    ]


def test_what_an_unfinished_campaign_lacks_is_counted(tmp_path):
    analysis = read(tmp_path / "c", [], planned=CPU)
    assert appendix.problems(analysis)["lines"] == [
        ["cpubench any", "not measured (30 times)", "no record yet"]
    ]


def test_the_printed_configuration_is_short_and_reads_back_the_same(tmp_path):
    formula = {"subsystem": "cpu", "workloads": ["DP"], "metric": "rate", "unit": "op/s"}
    facts = {"name": "here", "cpu": {"cores": 2}}
    grid = {"total": 1e12, "workloads": ["DP"], "concurrency": [1]}
    config = {"cpu": [grid], "warmup": 0.3, "seconds": 12345.25, "seed": 0}
    section = {"title": "Mine", "course": None, "authors": [], "text": {"design": None}}
    site = {**facts, "formulas": {"report-1": [{**formula, "formula": "a * b"}]}}
    whole = {
        **config, "isa": "auto", "scratch": None, "site": "here.yaml", "site_facts": site,
        "report": section,
    }  # fmt: skip
    analysis = read(tmp_path / "c", make.runs("cpubench", "DP", 4e10), config=whole)
    text = appendix.provenance(analysis)["config"]
    printed = yaml.safe_load(text)
    assert printed.items() >= config.items()
    assert printed["site_facts"] == facts
    assert printed["report"]["title"] == "Mine"
    assert not {"course", "authors", "text"} & set(printed["report"])
    assert not {"scratch", "isa"} & set(printed)


def test_a_preset_is_printed_by_its_name(tmp_path):
    preset = yamlfile.read(ROOT / "config" / "presets" / "quick.yaml")
    for seconds, name in ((preset["seconds"], "quick"), (9, "")):
        config = complete({**preset, "campaign": "renamed", "seconds": seconds})
        analysis = read(tmp_path / str(seconds), make.runs("cpubench", "DP", 4e10), config=config)
        assert appendix.preset_of(analysis.results.config) == name
        printed = yaml.safe_load(appendix.provenance(analysis)["config"])
        assert set(printed) == {"campaign"} if name else set(printed) > {"campaign", "cpu"}


def test_the_first_start_is_that_of_the_earliest_moment(tmp_path):
    """In the night in which clocks go back the later start has the smaller time of day."""
    starts = ("2026-10-25T02:50:00.000+02:00", "2026-10-25T02:10:00.000+01:00")
    records = make.runs("cpubench", "DP", 4e10, 4e10)
    for record, start in zip(records, starts, strict=True):
        record["context"]["started"] = start
    facts = dict(appendix.provenance(read(tmp_path / "c", records))["facts"])
    assert " to ".join(starts) in facts.values()


def test_job_numbers_are_numbers(tmp_path):
    records = []
    for number, job in enumerate(("99", "100", "36")):
        place = {"repetition": number, "block": 4096, "context": {"job_id": job}}
        records += make.runs("rambench", "RS", 1e9, **place)
    analysis = read(tmp_path / "c", records)
    assert dict(appendix.provenance(analysis)["facts"])["Slurm jobs"] == "3, 36 to 100"


def test_the_checksum_file_is_what_sha256sum_reads(swept, sweep, report):
    content = (swept / "tables" / "checksums.txt").read_bytes()
    lines = content.decode().splitlines()
    assert len(lines) == len(sweep.results.checksums)
    assert hashlib.sha256(content).hexdigest() in report["provenance"]["checksums_text"]
    digest, path = lines[0].split("  ")
    assert len(digest) == 64 and path.startswith("cells/")
