"""A program started, bounded and ended."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from peakmark.errors import MeasurementError, Sentence
from peakmark.run import execute
from peakmark.tools.base import Command


def python(code, *words, timeout_s=20, **more):
    return Command(argv=(sys.executable, "-c", code, *words), timeout_s=timeout_s, **more)


SLEEP = python("import time; time.sleep(60)", timeout_s=0.3)


def test_both_streams_the_code_and_the_files_come_back(tmp_path):
    code = "import sys; print(open('in').read()); sys.stderr.write('e'); open('out', 'w').write('f'); sys.exit(3)"
    done = execute.run(python(code, files={"in": "i"}, outputs=("out", "absent")), tmp_path)
    assert (done.returncode, done.stdout, done.stderr, done.files) == (3, "i\n", "e", {"out": "f"})
    assert done.elapsed_s > 0
    cpu = max(os.sched_getaffinity(0))  # the only one that a command names
    code = "import os; print(os.sched_getaffinity(0))"
    assert execute.run(python(code, cpus=(cpu,)), tmp_path).stdout.strip() == f"{{{cpu}}}"


def test_placeholders_are_filled_and_hostile_words_reach_no_shell(tmp_path):
    code = "import sys, os; print(sys.argv[1:], os.environ['KEY'])"
    command = python(code, "{port}", "{other}", '{"a": 1}', env={"KEY": "{key}"})
    done = execute.run(command, tmp_path, {"port": "77", "key": "s"})
    assert done.stdout == "['77', '{other}', '{\"a\": 1}'] s\n"
    word = "$(touch pwned); `id` 'x' \"y\" \n é -"
    done = execute.run(python("import sys; sys.stdout.write(sys.argv[1])", word), tmp_path)
    assert done.stdout == word
    assert not (tmp_path / "pwned").exists()


def test_the_program_that_failed_is_named(tmp_path):
    cpu = str(min(os.sched_getaffinity(0)))
    for argv, message in (
        (("taskset", "-c", cpu, "/bin/sleep", "60"), r"^sleep did not end within"),
        (("/nonexistent/tool",), "cannot start /nonexistent/tool: No such file"),
    ):
        with pytest.raises(MeasurementError, match=message):
            execute.run(Command(argv=argv, timeout_s=0.2), tmp_path)


@pytest.mark.parametrize(("load", "factor"), [(0.1, 1), (6, 6), (1000, 10)])
def test_more_time_under_load(load, factor, tmp_path, monkeypatch):
    cpus = os.cpu_count() or 1
    monkeypatch.setattr(os, "getloadavg", lambda: (load * cpus, 1.0, 1.0))
    assert execute.wait_factor() == factor
    if factor > 1:
        nap = python("import time; time.sleep(0.6)", timeout_s=0.3)
        assert execute.run(nap, tmp_path).returncode == 0
    else:
        with pytest.raises(MeasurementError, match="did not end within"):
            execute.run(SLEEP, tmp_path)


def lives(path):
    """Whether the process whose number is in a file still runs."""
    stat = Path(f"/proc/{int(path.read_text())}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


LEAVE = {
    "setsid": "setsid sleep 600 & echo $! > pid",
    "double": "(setsid sh -c 'sleep 600 & echo $! > pid' &)",
    "ignores": "setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; sleep 600; sleep 600' &",
}


@pytest.mark.parametrize("how", LEAVE)
@pytest.mark.parametrize("last", ["exit 0", "sleep 600"])
def test_what_leaves_the_group_is_ended_too(tmp_path, how, last):
    """A server of the same cell, started before, goes on; so does a child of the caller."""
    folder = tmp_path / "run0"
    folder.mkdir()
    (tmp_path / "server").mkdir()
    wait = "until [ -s pid ]; do sleep 0.01; done"
    command = Command(argv=("bash", "-c", f"{LEAVE[how]}\n{wait}\n{last}"), timeout_s=60)

    def trouble():
        pid = folder / "pid"
        return Sentence("it has begun") if pid.exists() and pid.stat().st_size else None

    with (
        subprocess.Popen(["sleep", "600"]) as other,
        execute.start(SLEEP, tmp_path / "server") as server,
    ):
        try:
            if last == "exit 0":
                assert execute.run(command, folder).returncode == 0
            else:
                with pytest.raises(MeasurementError, match="was ended"):
                    execute.run(command, folder, trouble=trouble)
            assert not lives(folder / "pid")
            assert server.poll() is None and other.poll() is None
        finally:
            other.kill()


def test_a_group_that_ignores_sigterm_is_ended_too(tmp_path):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    with execute.start(python(code), tmp_path) as process:
        while "on" not in (tmp_path / "stdout").read_text():
            assert process.poll() is None
        execute.end(process, grace_s=0.2)
        assert process.poll() is not None


def test_a_tool_sees_neither_the_users_locale_nor_the_job(tmp_path, monkeypatch):
    """An MPI that finds a job takes itself for a step of srun, and does not start."""
    job = {"SLURM_JOB_ID", "SLURMD_NODENAME", "SRUN_DEBUG", "PMI_RANK", "PMIX_RANK"}
    for name in (*job, "LC_ALL", "SLURMISH"):
        monkeypatch.setenv(name, "1")
    done = execute.run(python("import os; print(*os.environ, os.environ['LC_ALL'])"), tmp_path)
    words = done.stdout.split()
    assert job.isdisjoint(words) and "SLURMISH" in words and words[-1] == "C"
    assert os.environ["SLURM_JOB_ID"] == "1"


def test_waiting_for_the_end_wakes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("woke up beside the measurement"))
    done = execute.run(python("import time; time.sleep(0.2)"), tmp_path)
    assert done.returncode == 0 and done.elapsed_s >= 0.2


def test_a_kernel_without_process_descriptors_will_do(tmp_path, monkeypatch):
    def unknown(*_):
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(os, "pidfd_open", unknown)
    assert execute.run(python("import time; time.sleep(0.1)"), tmp_path).returncode == 0
    with pytest.raises(MeasurementError, match="did not end within"):
        execute.run(SLEEP, tmp_path)
