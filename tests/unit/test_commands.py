"""`peakmark run`, `init`: what is started, what is refused, what stays."""

import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import snakemake.cli
import yaml
from tests.unit.cases import cases

from peakmark import cli
from peakmark.config import campaign, site
from peakmark.resources import ROOT, command


@cases("workflow")
def test_run_starts_snakemake(words, expected, tmp_path, monkeypatch):
    (tmp_path / "mine").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(snakemake.cli, "main", lambda: None)
    monkeypatch.setattr(sys, "argv", [])
    assert cli.main(words.split()) == 0
    begin = ["snakemake", "--snakefile", str(ROOT / "Snakefile")]
    assert sys.argv == [*begin, *(word.format(root=ROOT) for word in expected)]


@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_unknown_preset_is_told(command, capsys):
    assert cli.main([command, "quickest"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'quickest'" in line and "quick," in line


def test_init_writes_what_is_missing_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config, mine = Path("config/config.yaml"), Path("config/sites/mine.yaml")
    config.parent.mkdir()
    config.write_text("of the user")
    assert cli.main(["init"]) == 0
    assert config.read_text() == "of the user" and mine.is_file()
    # Its own configuration may name another site file.
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"peakmark run --site {mine}")


def test_init_states_nothing_of_a_machine_and_names_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("then: peakmark run")
    values = campaign.complete(campaign.read([]))
    assert values.site == "config/sites/mine.yaml"
    assert site.load(values.site).name == "mine"
    for name in (campaign.BASE, Path(values.site)):
        first = name.read_text().splitlines()[0]
        schema = name.parent / first.removeprefix("# yaml-language-server: $schema=")
        checked = jsonschema.Draft202012Validator(yaml.safe_load(schema.read_text()))
        assert not list(checked.iter_errors(yaml.safe_load(name.read_text())))
        assert list(checked.iter_errors({"no_such_key": 1}))


INTERNAL = {"measure", "rows", "serve"}


def printed(capsys, *words):
    """What a command line prints and its exit code, argparse's own ends too."""
    try:
        code = cli.main(words)
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    return code, said.out, said.err


def test_help_lists_every_command_in_a_group_but_those_of_rules(capsys):
    code, text, _ = printed(capsys, "--help")
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", text, re.MULTILINE)
    known = cli.all_commands().keys()
    assert code == 0 and len(re.findall(r"^[A-Z].*:$", text, re.MULTILINE)) == 3
    assert sorted(listed) == sorted(known - INTERNAL) and known >= INTERNAL


@pytest.mark.parametrize("command", sorted(cli.all_commands()))
def test_help_of_a_command_shows_no_hidden_option(command, capsys):
    code, text, _ = printed(capsys, command, "--help")
    assert code == 0 and text.startswith(f"usage: peakmark {command}")
    assert "SUPPRESS" not in text and "--node  " not in text
    assert printed(capsys, command, "--no-such-option")[0] == 2


def test_a_wrong_command_is_told_with_all_commands(capsys):
    code, _, text = printed(capsys, "compar", "--any", "thing")
    assert code == 2 and "'compar'" in text and "compare" in text


def test_without_a_command_the_whole_help_is_printed(capsys):
    code, out, text = printed(capsys)
    assert code == 2 and not out and "Measure:" in text and "  run  " in text


@pytest.mark.parametrize("words", [
    "status", "rows", "tables", "report", "bundle", "fleet", "check", "export --json-lines",
    "compare results/none", "measure --cell x --plan",
])  # fmt: skip
def test_a_campaign_that_does_not_exist_is_an_error_of_every_command(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    code, out, text = printed(capsys, *words.split(), "results/none")
    assert code == 4 and not out
    assert "results/none" in text and "Traceback" not in text
    assert not any(tmp_path.iterdir())


SMALL = "campaign: small\ncpu: [{workloads: [DP], concurrency: [1]}]\n"


@pytest.mark.parametrize(("text", "words", "code"), [
    (SMALL, ["-n"], 0), ("repetitions: none\n", ["-n"], 2), (SMALL, ["--no-such-option"], 2),
    (SMALL, ["-n", "no-such-target"], 4),
])  # fmt: skip
def test_a_run_ends_with_its_own_exit_codes(text, words, code, tmp_path):
    (tmp_path / "own.yaml").write_text(text)
    argv = command("run", "own.yaml", "--", *words)
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
