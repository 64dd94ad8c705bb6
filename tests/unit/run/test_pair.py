import os
import shlex
import shutil
import socket
import subprocess
import sys

import pytest
from tests.programs import executable
from tests.unit.hostile import KERNELS

from peakmark.cell import Cell
from peakmark.errors import MeasurementError, Unavailable
from peakmark.machine import job_limits
from peakmark.run import allocation, pair
from peakmark.run.measure import Request, measure
from peakmark.tools.base import Command

SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(sys.argv[3])
while True:
    listener.accept()[0].sendall(b"hello")
"""


def server(code):
    return Command(argv=(sys.executable, "-c", code, "{address}", "{port}", "{key}"), timeout_s=20)


def test_the_server_listens_in_the_block_and_is_gone_after_it(tmp_path):
    (tmp_path / "other").mkdir()
    with (
        pair.serving(server(SERVER), tmp_path) as peer,
        pair.serving(server(SERVER), tmp_path / "other") as other,
    ):
        assert peer.values["key"] != other.values["key"]
        where = (peer.address, int(peer.values["port"]))
        with socket.create_connection(where, timeout=5) as connection:
            assert connection.recv(5) == b"hello"
        assert peer.to_json()["loopback"] is True
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where, timeout=5)


def test_a_server_that_dies_is_reported_with_its_last_words(tmp_path):
    dying = server("raise SystemExit('no such interface')")
    words = r"did not start to listen.*no such interface"
    with pytest.raises(MeasurementError, match=words), pair.serving(dying, tmp_path):
        pass


def test_a_port_in_use_is_tried_again_elsewhere(tmp_path):
    first = "import os, sys\nif not os.path.exists('tried'):\n    open('tried', 'w').close()\n"
    code = f"{first}    sys.exit('bind: Address already in use')\n{SERVER}"
    with pair.serving(server(code), tmp_path) as peer:
        assert int(peer.values["port"]) > 0
    assert list(tmp_path.rglob("tried"))


IN_A_NETWORK_OF_ITS_OWN = """
import sys
from pathlib import Path
from peakmark.errors import MeasurementError
from peakmark.tools.base import Command
from peakmark.machine import network
from peakmark.run import pair
for attempt in (
    lambda: pair.serving(Command(argv=("true",), timeout_s=5), Path(sys.argv[1])).__enter__(),
    lambda: network.address_of("eth7"),
    lambda: network.local_address("192.0.2.1"),
):
    try:
        attempt()
    except MeasurementError as error:
        print(error)
"""


@pytest.mark.parametrize("words", ["true", "ip link set lo up; ip -4 address flush dev lo"])
def test_without_loopback_or_with_ipv6_alone_it_is_a_sentence(tmp_path, words):
    """In a network namespace with nothing but a loopback that is down, after some commands."""
    argv = [sys.executable, "-c", IN_A_NETWORK_OF_ITS_OWN, str(tmp_path)]
    namespace = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c"]
    code = f"{words}; exec {shlex.join(argv)}"
    done = subprocess.run([*namespace, code], capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    serving, interface, way = done.stdout.splitlines()
    # Some kernels let a program listen there nevertheless.
    assert "127.0.0.1" in serving or "start to listen" in serving
    assert "'eth7'" in interface and "change interface:" in interface
    assert "no IPv4 route to 192.0.2.1" in way


SSH = """#!/bin/sh
# What ssh is given, and a login's environment on the other host.
for last; do :; done
exec env -i HOME="$HOME" sh -c "$last"
"""


@pytest.fixture
def job_without_slurm(tmp_path, monkeypatch):
    """An environment of no job, with an ssh that stays on this machine."""
    for name in (*job_limits.JOB_NUMBERS, "PBS_NODEFILE", "LSB_HOSTS", "FLUX_URI"):
        monkeypatch.delenv(name, raising=False)
    executable(tmp_path / "programs" / "ssh", SSH)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    return monkeypatch


def test_pbs_lsf_and_the_site_file_name_the_host_that_ssh_starts_the_server_on(
    tmp_path, job_without_slurm
):
    here = socket.gethostname()
    (tmp_path / "nodes").write_text(f"{here}\n{here}\nlocalhost\n")
    ways = (("PBS_NODEFILE", str(tmp_path / "nodes")), ("LSB_HOSTS", f"{here} localhost"))
    for name, value in ways:
        with job_without_slurm.context() as job:
            job.setenv(name, value)
            assert allocation.both_hosts(()) == (here.partition(".")[0], "localhost")
    folder = tmp_path / "cell"
    folder.mkdir()
    with pair.across(server(SERVER), folder, None, 1, [here, "localhost"]) as peer:
        where = (peer.address, int(peer.values["port"]))
        with socket.create_connection(where, timeout=5) as connection:
            assert connection.recv(5) == b"hello"
    assert set(peer.noise) == {"before", "during", "after"}


def test_flux_names_its_hosts(tmp_path, job_without_slurm):
    executable(tmp_path / "programs" / "flux", "#!/bin/sh\necho 'other[7-8]'\n")
    job_without_slurm.setenv("FLUX_URI", "local:///run/flux")
    assert allocation.both_hosts(())[1] == "other7"


def test_without_a_list_of_hosts_the_cell_is_not_possible(job_without_slurm):
    with pytest.raises(Unavailable, match=r"hosts: \[HOST, HOST\] into the site file"):
        allocation.both_hosts(())


@pytest.mark.parametrize(("variable", "value", "words"), [
    ("PBS_NODEFILE", "/no/such/file", "PBS_NODEFILE cannot be read: .*No such file"),
    ("FLUX_URI", "local:///run/flux", "Flux does not list the hosts of this job: .*flux"),
    ("LSB_HOSTS", socket.gethostname(), r"only the host .*{resources.nodes} hosts"),
])  # fmt: skip
def test_a_job_without_a_second_host_is_a_failure(variable, value, words, job_without_slurm):
    job_without_slurm.setenv(variable, value)
    with pytest.raises(MeasurementError, match=words):
        allocation.both_hosts([socket.gethostname(), "localhost"])


NETWORK = Cell("network", "netbench", "TCP", "", 1024, 1, "any", 0, {"seconds": 0.02})


@pytest.mark.parametrize(("ssh", "words"), [
    ("echo 'Permission denied' >&2; exit 255", "ssh does not reach localhost: Permission denied"),
    ("exit 1", "the server on localhost did not start"),
])  # fmt: skip
def test_a_cell_whose_server_did_not_start_has_no_record_and_is_measured_later(
    ssh, words, known, tmp_path, job_without_slurm
):
    campaign = tmp_path / "results" / "c"
    shutil.copytree(known, campaign / "machine")
    output = campaign / "cells" / f"{NETWORK.id}.json"
    hosts = (socket.gethostname(), "localhost")
    request = Request(NETWORK, output, campaign, KERNELS, pair=True, hosts=hosts)
    program = executable(tmp_path / "programs" / "ssh", f"#!/bin/sh\n{ssh}\n")
    with pytest.raises(MeasurementError, match=words):
        measure(request)
    assert not output.exists()
    assert (campaign / "attempts" / NETWORK.id / "0.json").exists()
    executable(program, SSH)
    assert measure(request)["status"] == "ok"
