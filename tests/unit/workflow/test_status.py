"""How far a campaign has come, and the summary of a run."""

import json
from types import SimpleNamespace

import pytest
from tests.unit import campaign_data as make
from tests.unit.plan.planned import CPU, made

from peakmark import files, resources
from peakmark.slurm import failures
from peakmark.storage import records
from peakmark.storage.results import Results
from peakmark.workflow import status


def planned(one):
    files.write_text(one.directory / "plan.json", json.dumps(one.to_json()))
    return Results.read(one.directory)


@pytest.fixture
def six(tmp_path, monkeypatch):
    return made(tmp_path, monkeypatch, None, cpu=[{**CPU, "workloads": ["DP", "SP", "QP"]}])


def test_equal_reasons_stand_together_and_all_that_is_missing_is_named(six):
    for number, cell in enumerate(six.cells[:4]):
        lost = f"Slurm ended job {number}: NODE_FAIL: its node was lost"
        failures.store_refused(six.directory, [cell], lost)
    failures.store_refused(six.directory, six.cells[4:5], "Slurm has forgotten job 9")
    described = status.describe(planned(six), only_failed=True)
    assert "complete" not in described
    lines = [line.strip() for line in described.splitlines()]
    # Numbers of jobs are no other reason.
    assert any(line.startswith("4 cells, any") and "NODE_FAIL" in line for line in lines)
    assert described.count("NODE_FAIL") == 1 and "job 9" in described
    # Cells that are not measured yet are no failures; the end of a run names them too.
    assert six.cells[5].id not in lines and {cell.id for cell in six.cells[:5]} <= {*lines}
    ended = status.describe(planned(six), only_failed=True, ending="failed")
    lines = [line.strip() for line in ended.splitlines()]
    assert lines[-3].startswith("1 more cell") and {cell.id for cell in six.cells} <= {*lines}


def measured(plan):
    """Records of all cells of a plan; the last lines that a failed run then prints."""
    for cell in plan.cells:
        record = make.struct(cell, status="unavailable", reason="too many threads")
        records.write(plan.results.record_path(cell), record)
    return lambda: status.describe(planned(plan), only_failed=True, ending="failed")


def test_a_run_that_failed_behind_its_cells_is_not_called_complete(six):
    described, campaign = measured(six), planned(six)
    assert status.describe(campaign).splitlines()[-1] == "complete"
    # Asked for later, it knows of no failure.
    assert status.describe(campaign, only_failed=True).splitlines()[-1] == "complete"
    assert "report" in described() and "complete" not in described().splitlines()
    ended = status.describe(campaign, only_failed=True, ending="interrupted")
    assert "interrupted" in ended and "failed" not in ended and status.command(campaign) in ended


def test_only_a_log_that_says_something_is_said_to_say_why(six):
    described = measured(six)
    log = six.directory / "logs" / "tables.log"
    log.parent.mkdir(exist_ok=True)
    log.touch()
    assert "log says why" not in described() and "Snakemake printed" in described()
    log.write_text("peakmark: no space\n")
    assert f"{log} says why" in described()


def summary(folder, capsys):
    status.print_summary(folder)
    return capsys.readouterr().out


def test_a_summary_names_the_files_and_has_the_score_card(swept, capsys):
    text = summary(swept, capsys)
    assert str(swept / "report.pdf") in text
    assert str(swept / "report.html") in text
    assert "what is missing" not in text
    titles = ("FP64 multiply-add", "DRAM copy", "Disk", "TCP")
    assert all(any(line.startswith(title) for line in text.splitlines()) for title in titles)
    assert "GFLOP/s" in text and "HPL" in text and "\x1b" not in text


def test_commands_have_their_folder_unless_the_environment_is_active(tmp_path, monkeypatch):
    environment = SimpleNamespace(prefix=str(tmp_path / ".venv"), base_prefix="/usr")
    monkeypatch.setattr(resources, "sys", environment)
    monkeypatch.chdir(tmp_path)
    for active, command in (
        ("", ".venv/bin/peakmark"),
        (str(tmp_path / ".venv"), "peakmark"),
        ("/another/one", ".venv/bin/peakmark"),
    ):
        monkeypatch.setenv("VIRTUAL_ENV", active)
        assert resources.program("peakmark") == command
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert resources.program("peakmark") == f"{tmp_path}/.venv/bin/peakmark"


def test_cells_that_are_not_possible_have_their_reason(tmp_path, peakmark):
    reasons = ["no FMA here"] * 4 + ["too little memory"]
    found = []
    for number, reason in enumerate(reasons):
        cell = make.cell("cpubench", "DP", subsystem="cpu", repetition=number)
        found.append(make.record(cell, status="unavailable", reason=reason) | {"raw": {}})
    folder = make.write(tmp_path / "c", found)
    for command in ("status", "report"):
        done = peakmark(command, folder)
        assert done.returncode == 0
        assert "5 cells" in done.stdout
        assert done.stdout.count("no FMA here") == done.stdout.count("too little memory") == 1
        assert "and 1 more" in done.stdout
        # A file that does not exist is not named.
        assert ("report.html" in done.stdout) is (command == "report")
    assert peakmark("status", folder).stdout.splitlines()[-1] == "complete"
    failed = peakmark("status", folder, "--failed").stdout
    assert failed.splitlines()[-1] == "complete" and "log" not in failed
