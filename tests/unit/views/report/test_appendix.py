"""The appendix: how it was measured, what went wrong, where the numbers come from, and what it takes
to reproduce them.
"""

import hashlib

import msgspec
import pytest
import yaml
from tests.checkout import ROOT
from tests.unit import campaign_data as make

from peakmark import yamlfile
from peakmark.config.campaign import complete
from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.views import appendix, layout_tables, score_card


def read(folder, records, **more):
    return make.frames(folder, records, **more)


def test_problems_name_failed_repeated_refused_and_missing_cells(tmp_path):
    done, refused, *holes = (
        make.cell("cpubench", name, subsystem="cpu") for name in ("DP", "QPDOT", "SP", "QP")
    )
    failing = make.cell("hpl", "DP", subsystem="cpu")
    records = make.runs("cpubench", "DP", 4e10)
    records += [make.record(refused, status="unavailable", reason="no such instruction")]
    attempts = [make.record(done, status="failed", reason="killed by signal 9")]
    attempts += [make.record(failing, status="failed", reason="no output") for _ in range(5)]
    analysis = read(tmp_path / "c", records, planned=[*holes, failing], attempts=attempts)
    assert sorted(appendix.list_problems(analysis)["lines"]) == [
        ["cpubench", "not measured (2 times)", "no record yet"],
        ["cpubench DP_none_x1", "failed, repeated later", "killed by signal 9 (node1)"],
        ["cpubench QPDOT_none_x1 on node1", "not possible here", "no such instruction"],
        ["hpl DP_none_x1", "failed (5 times)", "no output (node1)"],
    ]


def test_a_layout_prints_how_the_raw_output_of_a_reference_begins(tmp_path):
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    records = [*make.runs("fio", "RS", 1e9), *make.runs("diskbench", "RS", 1e9)]
    folder = make.write(tmp_path / "c", records, config=config)
    for record in folder.glob("cells/**/0.json"):
        (record.parent / "0.stdout").write_text("fio-3.33\n\x1b[1mrates\n" + 99 * "more\n")
    frames = build.load(folder)
    ((name, _, output),) = appendix.list_outputs(frames, layout_tables.layout_of(frames))
    assert name.startswith("fio")
    assert output.splitlines() == ["fio-3.33", " [1mrates", *48 * ["more"]]
    assert appendix.list_outputs(frames, None) == []


def test_the_printed_configuration_has_the_keys_that_differ_and_reads_back_the_same(tmp_path):
    grid = {"total": 1e12, "workloads": ["DP"], "concurrency": [1]}
    config = {"cpu": [grid], "warmup": 0.3, "seconds": 12345.25, "seed": 0}
    site = {"name": "here", "cpu": {"cores": 2}}
    section = {"title": "Mine", "course": None, "authors": [], "text": None}
    defaults = {"interface": None, "scratch": None}
    whole = config | defaults | {"site_facts": site, "report": section}
    results = read(tmp_path / "c", make.runs("cpubench", "DP", 4e10), config=whole)
    provenance = appendix.describe_provenance(results)
    printed = yaml.safe_load(provenance["config"])
    assert printed.items() >= config.items()
    assert printed["site_facts"] == site
    assert printed["report"]["title"] == "Mine"
    assert not {"course", "authors", "text"} & set(printed["report"])
    assert not defaults.keys() & set(printed)


@pytest.mark.parametrize(("changes", "name"), [({}, "quick"), ({"seconds": 9}, "")])
def test_a_preset_is_printed_by_its_name(tmp_path, changes, name):
    preset = yamlfile.read(ROOT / "config" / "presets" / "quick.yaml")
    config = msgspec.to_builtins(complete({**preset, "campaign": "renamed", **changes}))
    analysis = read(tmp_path / "c", make.runs("cpubench", "DP", 4e10), config=config)
    assert analysis.campaign["preset"] == name
    printed = appendix.describe_provenance(analysis)["config"]
    assert appendix.config_text({"name": "c", "preset": "", "settings": {}}) == ""
    assert ("The preset quick, as the campaign c." in printed) == bool(name)
    assert ("cpu:" in printed) == (not name)


def test_the_first_start_is_that_of_the_earliest_moment(tmp_path):
    """In the night in which clocks go back the later start has the smaller time of day."""
    starts = ("2026-10-25T02:50:00.000+02:00", "2026-10-25T02:10:00.000+01:00")
    records = make.runs("cpubench", "DP", 4e10, 4e10)
    for record, start in zip(records, starts, strict=True):
        record["context"]["started"] = start
    printed = score_card.measured_when(read(tmp_path / "c", records))
    assert printed.startswith("25 October 2026 from 00:50 UTC")


def test_the_checksum_file_is_what_sha256sum_reads(swept, sweep):
    content = (swept / "rows" / "checksums.txt").read_bytes()
    lines = content.decode().splitlines()
    assert len(lines) == sweep.campaign["checksums"]["files"]
    assert (
        hashlib.sha256(content).hexdigest() in appendix.describe_provenance(sweep)["checksums_text"]
    )
    files = dict(reversed(line.split("  ")) for line in lines)
    records = [path.relative_to(swept).as_posix() for path in swept.glob("cells/**/*.json")]
    for path in ("plan.json", *records):
        assert hashlib.sha256((swept / path).read_bytes()).hexdigest() == files.pop(path)
    assert all(len(digest) == 64 and path.startswith("cells/") for path, digest in files.items())


def test_the_report_has_the_node_hours_that_slurm_counted(tmp_path):
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10, context={"job_id": "7"}))
    (folder / "jobs.csv").write_text("7,1,1800\n8,2,900\n9,1,36")
    frames = build.judge(Results.read(folder))
    (text,) = (
        text for name, text in appendix.describe_provenance(frames)["facts"] if "jobs" in name
    )
    assert text == "1 (ID 7 to 7); 1.00 node-hours by Slurm's count of 2 jobs"
