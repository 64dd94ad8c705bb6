"""No name of a host or user is left, every number is, and one name is the same everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.pdf import text as pdf_text

from peakmark import cli
from peakmark.bundle import anonymise, bundle
from peakmark.errors import RecordError
from peakmark.storage import records
from peakmark.storage.results import Results

NAMES = [
    "c07n12",
    "login3.cluster.example.org",
    "alice",
    "10.20.30.40",
    "fe80::1:2",
    "aa:bb:cc:dd:ee:ff",
    "Alice Meier",
]


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    of = make.cell("iperf3", "TCP", subsystem="network", block=1024, node="c07n12")
    argv = ["/home/alice/bin/iperf3", "--client", "10.20.30.40"]
    context: dict[str, Any] = {
        "server_host": "login3.cluster.example.org",
        "network": {"interface": "ib0", "address": "10.20.30.40", "loopback": False},
        "commands": [{"argv": argv, "returncode": 0, "seconds": 1.0}],
    }
    record = make.record(
        of, [make.measurement(of, "throughput", 1.25e10)], host="c07n12", context=context
    )
    raw = "iperf 3.12 on Linux c07n12 6.1.0, 10.20.30.40 port 5201, fe80::1:2, aa:bb:cc:dd:ee:ff, 127.0.0.1, 1.2.3\n"
    failed = make.record(
        make.cell("ping", "LAT-ICMP", subsystem="network", block=1, node="c07n12"),
        status="failed",
        reason="ping: connect to LOGIN3.cluster.example.org: file /scratch/alice/x of node c07n12 is gone",
        host="c07n12",
    )
    own = make.cell("netbench", "TCP", subsystem="network", block=1024, node="c07n12")
    ours = make.record(own, [make.measurement(own, "throughput", 1.5e10)], host="c07n12") | {
        "raw": {}
    }
    facts = {"host": "c07n12", "slurm": {"node": "c07n12"}}
    config = {"report": {"author": "Alice Meier", "title": "Results"}, "scratch": "/scratch/alice"}
    folder = make.write(
        tmp_path / "c", [record, ours], attempts=[failed], config=config, facts=facts
    )
    path = next((folder / "cells" / "network" / "iperf3").rglob("0.json"))
    (path.with_suffix(".raw")).mkdir()
    (path.with_suffix(".raw") / "0.stdout").write_text(raw)
    record["raw"] = {"0.raw/0.stdout": hashlib.sha256(raw.encode()).hexdigest()}
    records.write(path, record)
    for attempt in (folder / "attempts").rglob("*.json"):
        records.write(attempt, {**records.read(attempt), "raw": {}})
    (folder / "machine" / "node1.json").rename(folder / "machine" / "c07n12.json")
    return folder


def test_no_name_is_left_and_every_number_is(campaign: Path, tmp_path: Path) -> None:
    results = Results.read(campaign)
    target = tmp_path / "copy"
    bundle.copy(results, target, anonymise.replacer(results))
    for path in target.rglob("*"):
        content = path.read_text() if path.is_file() else ""
        for name in NAMES:
            assert name.lower() not in f"{path.relative_to(target)} {content}".lower(), (name, path)
    copied = Results.read(target)
    assert len(copied.records) == len(results.records) == 2
    assert not copied.left_out  # checksums are those of the new texts
    before, after = results.records[0].data, copied.records[0].data
    assert after["measurements"] == before["measurements"]
    assert after["context"]["seconds"] == before["context"]["seconds"]
    host = after["context"]["host"]
    assert copied.records[0].cell.node == host == copied.attempts[0].data["context"]["host"]
    assert set(copied.facts) == {host}
    assert after["context"]["server_host"] != host
    assert (
        "127.0.0.1"
        in (target / copied.records[0].path).with_suffix(".raw").joinpath("0.stdout").read_text()
    )


def test_words_that_contain_a_name_stay(campaign: Path) -> None:
    replace = anonymise.replacer(Results.read(campaign))
    kept = "malice c07n123 xc07n12 fio 3.33 1.2.3 0::"
    assert replace(kept) == kept
    assert replace("c07n12.json") == f"{replace('c07n12')}.json"
    assert replace("C07N12") == replace("c07n12")
    assert replace(json.dumps({"a": [1, 2.5]})) == json.dumps({"a": [1, 2.5]})


def test_times_and_hex_are_no_addresses(campaign: Path) -> None:
    replace = anonymise.replacer(Results.read(campaign))
    for text in [
        "2026-11-21T04:00:00+00:00",
        "04:00:00",
        "0-1:2",
        "::",
        "a::b::c",
        "999.1.2.3",
        "1.2.3.4.5",
    ]:
        assert replace(text) == text


def test_report_and_bundle_without_names(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the commands a user gives; what is in the PDF's text is looked at with another program."""
    assert cli.main(["report", "--anonymise", str(campaign)]) == 0
    pdf = campaign / "report-anonymous.pdf"
    assert str(pdf) in capsys.readouterr().out
    text = pdf_text(pdf)
    assert "host1" in text
    assert cli.main(["html", "--anonymise", str(campaign)]) == 0
    page = (campaign / "report-anonymous.html").read_text().lower()
    assert "host1" in page and not any(name.lower() in page for name in NAMES)
    target = tmp_path / "anonymous.zip"
    assert cli.main(["bundle", "--anonymise", "-o", str(target), str(campaign)]) == 0
    with zipfile.ZipFile(target) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    for name in NAMES:
        assert name.lower() not in text.lower()
        for path, content in contents.items():
            assert name.lower().encode() not in path.lower().encode() + content.lower(), path


def test_nodes_that_were_not_measured_have_no_name_left_either(campaign: Path) -> None:
    path = campaign / "plan.json"
    plan = json.loads(path.read_text())
    kinds = [{"cpus": 2, "memory": 100, "nodes": ["fat-99"]}]
    path.write_text(
        json.dumps(
            {**plan, "cluster": {"nodes": ["any"], "left_out": {"slim-7": "down"}, "kinds": kinds}}
        )
    )
    replace = anonymise.replacer(Results.read(campaign))
    assert "fat-99" not in replace("on fat-99") and "slim-7" not in replace("not slim-7")


def test_a_user_without_a_name_has_none_to_take_out(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number that nobody has."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert "alice" not in anonymise.replacer(Results.read(campaign))("/home/alice/peakmark")


def test_a_damaged_configuration_is_one_sentence(campaign: Path, tmp_path: Path) -> None:
    (campaign / "config.json").write_text('{"a": ')
    results = Results.read(campaign)
    with pytest.raises(
        RecordError, match=r"config\.json is damaged .*: the next run .* writes it anew"
    ):
        bundle.copy(results, tmp_path / "copy", anonymise.replacer(results))
