"""How ranks start: which ways are tried, and what is told of those that fail."""

import msgspec
import pytest
from tests.programs import executable

from peakmark.config.types import SiteMpi
from peakmark.errors import MeasurementError, Unavailable
from peakmark.run import mpi
from peakmark.tools.base import Completed

# srun that knows two types, of which only pmi2 starts two ranks: it exchanges messages over TCP.
SRUN = """#!/bin/sh
case "$*" in
  --mpi=list) printf 'MPI plugin types are...\\n\\tpmi2\\n\\tpmix\\n' ;;
  *--mpi=pmi2*) echo '[n1:7] mca: bml: Using tcp btl for send to [[1,2],1] on node n2' >&2; echo '{}' ;;
  *) echo 'mpibench: PINGPONG needs 2 ranks, and was started with 1: mpirun' >&2; exit 2 ;;
esac
"""


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """A campaign with an mpibench, in a job; srun and mpirun are looked for in the folder ``bin``."""
    programs = tmp_path / "bin"
    programs.mkdir()
    executable(programs / "srun", SRUN)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(mpi.shutil, "which", lambda _name: None)
    return tmp_path / "results"


def starter(campaign, nodes=("n1", "n2"), **settings):
    programs = campaign.parent / "bin"
    compiled = mpi.Compiled(str(programs), str(programs / "mpicc"), SiteMpi(**settings))
    (campaign / "mpi").mkdir(parents=True, exist_ok=True)
    (campaign / "mpi" / "compiled.json").write_bytes(msgspec.json.encode(compiled))
    return mpi.Starter(campaign, nodes)


def test_the_first_type_that_starts_two_ranks_is_kept(campaign, tmp_path):
    launch = starter(campaign).launch(tmp_path / "tried")
    assert (launch.text, launch.transport) == ("srun --mpi=pmi2", "tcp")
    assert launch.failed == "srun --mpi=pmix: each rank is alone"
    (tmp_path / "bin" / "srun").unlink()
    assert starter(campaign).launch(tmp_path / "again") == launch


def test_a_failed_start_is_one_sentence_and_tried_once_in_a_run(campaign, tmp_path):
    words = "^two ranks of MPI do not start on two nodes: srun --mpi=pmix: each rank is alone: section mpi"
    for number in (1, 2):
        with pytest.raises(Unavailable, match=words):
            starter(campaign, type="pmix").launch(tmp_path / str(number))
    assert not (tmp_path / "2").exists()


def test_a_job_that_has_ended_says_nothing_of_the_launchers(campaign, tmp_path):
    said = "srun: error: Unable to create step for job 7: Job/step already completing or completed"
    executable(tmp_path / "bin" / "srun", f"#!/bin/sh\necho '{said}' >&2; exit 1\n")
    with pytest.raises(MeasurementError, match="already completing"):
        starter(campaign).launch(tmp_path / "tried")
    assert not [*campaign.glob("mpi/no-launch-*")]


def test_each_way_has_the_reason_of_its_launcher(campaign, tmp_path, monkeypatch):
    """Also without any: srun that lists no type, no mpirun, and a type that is set outside of a job."""
    failing = "#!/bin/sh\n[ \"$1\" = --mpi=list ] || echo '[n1:7] srun: error: no such plugin: pmix' >&2; exit 1\n"
    executable(tmp_path / "bin" / "srun", failing)
    with pytest.raises(
        Unavailable, match="srun --mpi=pmix: srun: error: no such plugin: pmix; mpirun: not found:"
    ):
        starter(campaign).launch(tmp_path / "1")
    for settings in ({"launch": "mpirun"}, {"launch": "mpirun", "type": "pmix"}):
        ways = list(starter(campaign, **settings).ways())
        assert [way.text for way in ways] == ["mpirun"]
    with pytest.raises(Unavailable, match="on one node: mpirun: not found: section mpi"):
        starter(campaign, [], type="pmix").launch(tmp_path / "2")


def test_a_launcher_that_hangs_is_ended(campaign, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi, "PROBE_S", -9.5)
    executable(tmp_path / "bin" / "mpirun", '#!/bin/sh\n[ "$1" = --version ] || exec sleep 60\n')
    with pytest.raises(Unavailable, match="mpirun did not end within"):
        starter(campaign, launch="mpirun").launch(tmp_path / "tried")


@pytest.mark.parametrize(("version", "words"), [
    ("mpirun (Open MPI) 4.1.4", "-np 4 --map-by ppr:2:node --bind-to core:overload-allowed"),
    ("HYDRA build details:", "-n 4 -ppn 2 -hosts n1,n2"),
])  # fmt: skip
def test_each_mpirun_gets_its_own_options(campaign, tmp_path, version, words):
    mpirun = executable(tmp_path / "bin" / "mpirun", f"#!/bin/sh\necho '{version}'\n")
    command = mpi.Command(("mpibench",), 60.0, ranks=2)
    started = starter(campaign).start(command, mpi.Launch("mpirun"))
    assert " ".join(started.argv).startswith(f"{mpirun} {words}")
    assert started.argv[-1] == "mpibench" and started.env["SLURM_OVERLAP"] == "1"


@pytest.mark.parametrize(("text", "transport"), [
    ("UCX  INFO  ep_cfg[0]: tag(self/memory0)\nep_cfg[1]: tag(tcp/eth0) rma_am", "tcp/eth0"),
    ("inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)", "rc_mlx5/mlx5_0:1"),
    ("provider: verbs;ofi_rxm, score", "verbs;ofi_rxm"),
    ("[n:1] select: component ucx selected", "ucx"),
    ("nothing", ""),
])  # fmt: skip
def test_the_transport_is_read_from_the_librarys_report(text, transport):
    assert mpi._transport(Completed((), 0, "", text)) == transport


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("srun: error: node1: task 0: Exited\nmpibench: rank 1 got a wrong sum", "mpibench: rank 1 got a wrong sum"),
        ("Primary job terminated, an error\nrank 1 on node n2 exited on signal 9 (Killed).", "rank 1 on node n2 exited on signal 9 (Killed)"),
        ("Abort(6): error stack:\nMPI_Init(59).: \nexchange(145).: ucx failed(Endpoint timeout)", "ucx failed(Endpoint timeout)"),
        ("[n3:8] *** End of error message ***\nsrun: error: n4: task 3: Terminated\nsrun: error: n3: task 2: Segmentation fault", "srun: error: n3: task 2: Segmentation fault"),
        ("[proxy:0:0@node1] demux error", "demux error"),
        ("slurmstepd: error: couldn't chdir to `/tmp/x'\nsrun: error: task 1 launch failed", "srun: error: task 1 launch failed"),
        ("", "exit code 1"),
    ],
)  # fmt: skip
def test_the_most_telling_line_is_the_reason(text, reason):
    assert mpi.reason_of(Completed((), 1, "", text)) == reason


def test_srun_that_starts_nothing_is_a_failure_with_any_exit_code():
    said = "srun: error: task 0 launch failed: Unspecified error"
    with pytest.raises(MeasurementError, match=f"srun ended with exit code 0: {said}"):
        mpi.check(Completed(("srun",), 0, "", said), (0,))


@pytest.mark.parametrize("text", [
    "This test requires exactly two processes", ">>> Need at least 2 processes for these tests <<<",
    "# !! Benchmark PingPong invalid for 1 processes !!", "OPAL ERROR: Unreachable in file ext3x_client.c",
])  # fmt: skip
def test_a_program_of_another_library_is_not_possible(text):
    with pytest.raises(Unavailable, match="each rank of the program is alone: install it with"):
        mpi.check(Completed(("mpirun",), 0, "", "", {"hpccoutf.txt": text}), (0,))


def test_outside_of_a_job_the_ranks_are_on_this_machine(campaign, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID")
    assert mpi.starter(campaign, 1, "").nodes == ()
