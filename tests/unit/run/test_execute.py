import errno
import os
import sys
import time
from pathlib import Path

import pytest

from peakmark.reasons import MeasurementError
from peakmark.run import execute
from peakmark.tools.base import Command


def python(code: str, *words: str, timeout_s: float = 20, **more: object) -> Command:
    return Command(argv=(sys.executable, "-c", code, *words), timeout_s=timeout_s, **more)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_both_streams_the_code_and_the_files_come_back(tmp_path: Path) -> None:
    code = "import sys; print(open('in').read()); sys.stderr.write('e'); open('out', 'w').write('f'); sys.exit(3)"
    done = execute.run(python(code, files={"in": "i"}, outputs=("out", "absent")), tmp_path)
    assert (done.returncode, done.stdout, done.stderr, done.files) == (3, "i\n", "e", {"out": "f"})
    assert done.elapsed_s > 0


def test_placeholders_are_filled_and_other_braces_stay(tmp_path: Path) -> None:
    code = "import sys, os; print(sys.argv[1:], os.environ['KEY'])"
    command = python(code, "{port}", "{other}", '{"a": 1}', env={"KEY": "{key}"})
    done = execute.run(command, tmp_path, {"port": "77", "key": "s"})
    assert done.stdout.split("] ")[0] == "['77', '{other}', '{\"a\": 1}'"
    assert done.stdout.endswith("s\n")


def test_what_failed_is_the_program_and_not_what_gives_it_its_cpus(tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    with pytest.raises(MeasurementError, match=r"^sleep did not end within"):
        execute.run(
            Command(argv=("taskset", "-c", cpu, "/bin/sleep", "60"), timeout_s=0.2), tmp_path
        )
    assert execute.program_name(("/opt/bin/fio", "--version")) == "fio"
    assert execute.program_name(("taskset",)) == "taskset"


def test_hostile_words_reach_no_shell(tmp_path: Path) -> None:
    word = "$(touch pwned); `id` 'x' \"y\" \n é -"
    done = execute.run(python("import sys; sys.stdout.write(sys.argv[1])", word), tmp_path)
    assert done.stdout == word
    assert not (tmp_path / "pwned").exists()


def test_a_program_that_waits_for_its_turn_is_given_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = os.cpu_count() or 1
    monkeypatch.setattr(os, "getloadavg", lambda: (6.0 * cpus, 1.0, 1.0))
    assert execute.wait_factor() == 6
    nap = python("import time; time.sleep(0.6)", timeout_s=0.3)
    assert execute.run(nap, tmp_path).returncode == 0
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 50.0, 50.0))
    assert execute.wait_factor() == 1
    with pytest.raises(MeasurementError, match="did not end within"):
        execute.run(python("import time; time.sleep(60)", timeout_s=0.3), tmp_path)
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0 * cpus, 50.0, 50.0))
    assert execute.wait_factor() == execute.LARGEST_WAIT_FACTOR


def test_past_its_limit_the_whole_group_is_ended(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    with pytest.raises(MeasurementError, match="did not end within"):
        execute.run(python(code, timeout_s=1.0), tmp_path)
    child = int((tmp_path / "stdout").read_text())
    assert not alive(child)


def test_a_group_that_ignores_the_polite_signal_is_ended_too(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    with execute.start(python(code), tmp_path) as process:
        while "on" not in (tmp_path / "stdout").read_text():
            assert process.poll() is None
        execute.end(process, grace_s=0.2)
        assert process.poll() is not None


def test_a_program_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="cannot start /nonexistent/tool: No such file"):
        execute.run(Command(argv=("/nonexistent/tool",), timeout_s=1), tmp_path)


def test_the_locale_of_the_user_does_not_reach_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    done = execute.run(python("import os; print(os.environ['LC_ALL'])"), tmp_path)
    assert done.stdout == "C\n"
    assert os.environ["LC_ALL"] == "de_DE.UTF-8"


def test_a_tool_hears_nothing_of_the_job_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An MPI that finds these takes itself for a step of srun, and does not start."""
    for name in (
        "SLURM_JOB_ID",
        "SLURM_CPU_BIND",
        "SLURMD_NODENAME",
        "SRUN_DEBUG",
        "PMI_RANK",
        "PMIX_RANK",
    ):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURMISH", "stays")
    done = execute.run(python("import os; print(*sorted(os.environ))"), tmp_path)
    assert not [
        name
        for name in done.stdout.split()
        if name.startswith(("SLURM_", "SLURMD_", "SRUN_", "PMI"))
    ]
    assert "SLURMISH" in done.stdout.split() and os.environ["SLURM_JOB_ID"] == "1"


def test_a_command_that_names_cpus_runs_on_these_alone(tmp_path: Path) -> None:
    for cpu in sorted(os.sched_getaffinity(0)):
        folder = tmp_path / str(cpu)
        folder.mkdir()
        done = execute.run(python("import os; print(os.sched_getaffinity(0))", cpus=(cpu,)), folder)
        assert done.stdout.strip() == f"{{{cpu}}}"


def test_a_kernel_without_process_descriptors_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(os, "pidfd_open", unknown)
    nap = python("import time; time.sleep(0.1)")
    assert execute.run(nap, tmp_path).returncode == 0
    with pytest.raises(MeasurementError, match="did not end within"):
        execute.run(python("import time; time.sleep(60)", timeout_s=0.2), tmp_path)


def test_the_end_of_a_program_is_told_and_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("woke up beside the measurement"))
    done = execute.run(python("import time; time.sleep(0.2)"), tmp_path, trouble=lambda: None)
    assert done.returncode == 0 and done.elapsed_s >= 0.2
