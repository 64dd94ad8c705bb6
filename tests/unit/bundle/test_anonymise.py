"""No name of a host or user is left, every number is, and one name is the same everywhere."""

import hashlib
import json
import os
import zipfile

import pytest
from tests.unit import campaign_data as make
from tests.unit.pdf import text as pdf_text

from peakmark import bundle
from peakmark.bundle import anonymise
from peakmark.errors import RecordError
from peakmark.storage.results import Results

HOST, LOGIN, ADDRESS = "c07n12", "login3.cluster.example.org", "10.20.30.40"
NAMES = [HOST, LOGIN, "alice", ADDRESS, "fe80::1:2", "aa:bb:cc:dd:ee:ff", "Alice Meier"]
RAW = f"iperf 3.12 on {HOST}, {ADDRESS} port 5201, fe80::1:2, aa:bb:cc:dd:ee:ff, 127.0.0.1, 1.2.3\n"


@pytest.fixture
def campaign(tmp_path):
    def cell(name, workload, block):
        return make.cell(name, workload, subsystem="network", block=block, node=HOST)

    of, own = cell("iperf3", "TCP", 1024), cell("netbench", "TCP", 1024)
    argv = ["/home/alice/bin/iperf3", "--client", ADDRESS]
    context = {
        "server_host": LOGIN,
        "network": {"interface": "ib0", "address": ADDRESS, "loopback": False},
        "commands": [{"argv": argv, "returncode": 0, "seconds": 1.0}],
    }
    rows = [make.measurement(of, "throughput", 1.25e10)]
    record = make.record(of, rows, host=HOST, context=context)
    record["raw"] = {"0.raw/0.stdout": hashlib.sha256(RAW.encode()).hexdigest()}
    ours = make.record(own, [make.measurement(own, "throughput", 1.5e10)], host=HOST)
    reason = f"ping: connect to {LOGIN.upper()}: file /scratch/alice/x of node {HOST} is gone"
    failed = make.record(cell("ping", "LAT-ICMP", 1), status="failed", reason=reason, host=HOST)
    facts = {"host": HOST, "slurm": {"node": HOST}}
    config = {"report": {"author": "Alice Meier", "title": "Results"}, "scratch": "/scratch/alice"}
    records, attempts = [record, ours | {"raw": {}}], [failed | {"raw": {}}]
    folder = make.write(tmp_path / "c", records, attempts=attempts, config=config, facts=facts)
    raw = folder / "cells" / of.id
    raw.with_suffix(".raw").mkdir(exist_ok=True)
    (raw.with_suffix(".raw") / "0.stdout").write_text(RAW)
    (folder / "machine" / "node1.json").rename(folder / "machine" / f"{HOST}.json")
    return folder


@pytest.fixture
def replace(campaign):
    return anonymise.replacer(Results.read(campaign))


def test_every_number_and_checksum_is_kept(campaign, tmp_path):
    results = Results.read(campaign)
    target = tmp_path / "copy"
    bundle.copy(results, target, anonymise.replacer(results))
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
    raw = (target / copied.records[0].path).with_suffix(".raw") / "0.stdout"
    assert "127.0.0.1" in raw.read_text()


def test_what_is_no_name_stays(replace):
    other = ["malice c07n123 xc07n12 fio 3.33 1.2.3 0::", json.dumps({"a": [1, 2.5]})]
    times = ["2026-11-21T04:00:00+00:00", "04:00:00", "0-1:2", "::", "a::b::c"]
    for text in (*other, *times, "999.1.2.3", "1.2.3.4.5"):
        assert replace(text) == text
    assert replace("c07n12.json") == f"{replace('c07n12')}.json"
    assert replace("C07N12") == replace("c07n12")


def test_bundle_without_names(campaign, tmp_path, peakmark):
    """By the command a user gives; what is in the PDF's text is looked at with another program."""
    target = tmp_path / "anonymous.zip"
    assert peakmark("bundle", "--anonymise", "-o", target, campaign).returncode == 0
    pdf, comparison = bundle.rebuild(target)
    assert comparison.startswith("the same")
    with zipfile.ZipFile(target) as archive:
        contents = {name: name.encode() + archive.read(name) for name in archive.namelist()}
    text = pdf_text(pdf)
    assert "host1" in text and b"host1" in contents["report.html"]
    contents["pdf"] = text.encode()
    for name in NAMES:
        for path, content in contents.items():
            assert name.lower().encode() not in content.lower(), path


def test_nodes_that_were_not_measured_have_no_name_left_either(campaign):
    kinds = [{"cpus": 2, "memory": 100, "nodes": ["fat-99"]}]
    cluster = {"nodes": ["any"], "left_out": {"slim-7": "down"}, "kinds": kinds}
    plan = json.loads((campaign / "plan.json").read_text())
    (campaign / "plan.json").write_text(json.dumps({**plan, "cluster": cluster}))
    replace = anonymise.replacer(Results.read(campaign))
    assert "fat-99" not in replace("on fat-99") and "slim-7" not in replace("not slim-7")


def test_a_user_without_a_name(campaign, monkeypatch):
    """As in a container that runs under a number that nobody has."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert "alice" not in anonymise.replacer(Results.read(campaign))("/home/alice/peakmark")


def test_a_damaged_configuration_is_one_sentence(campaign, tmp_path):
    (campaign / "config.json").write_text('{"a": ')
    results = Results.read(campaign)
    with pytest.raises(RecordError, match=r"config\.json is damaged .* writes it anew"):
        bundle.copy(results, tmp_path / "copy", anonymise.replacer(results))
