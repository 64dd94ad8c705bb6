"""Where Snakemake and a campaign write: files in the way, no rights, no room, no home; and how the
Snakefile says so.
"""

from __future__ import annotations

import io
import logging
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from snakemake.exceptions import format_exception_to_string
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_peakmark as plugin
from peakmark import resources
from peakmark.errors import PeakmarkError
from peakmark.workflow import preflight
from peakmark.workflow.user_errors import UserError, as_workflow_error


def said(check: Callable[[], object]) -> str:
    """The one sentence with which a check ends."""
    with pytest.raises(UserError) as caught:
        as_workflow_error(check)
    text = str(caught.value)
    assert "\n" not in text
    return text


def as_nobody(check: Callable[[], object]) -> str:
    """The same for a user whom the rights of a folder bind: no rights stop root."""
    if os.geteuid() != 0:
        return said(check)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            os.write(write, said(check).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as stream:
        return stream.read()


@pytest.mark.parametrize("name", ["results", "results/c", "results/c/cells", "results/c/tables"])
@pytest.mark.parametrize("kind", ["a file", "a link to nowhere"])
def test_what_is_no_folder_is_said_before_the_first_cell(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    preflight.check_campaign(Path("results/c"))
    if kind == "a file":
        path.write_text("mine")
    else:
        path.symlink_to("/nowhere/at/all")
    assert f"{name}: " in said(lambda: preflight.check_campaign(Path("results/c")))


def test_no_rights_where_snakemake_writes() -> None:
    # Below a folder that everybody may enter.
    closed = Path("/tmp") / f"peakmark-closed-{os.getpid()}"
    closed.mkdir(mode=0o555)
    try:
        text = as_nobody(lambda: preflight.check_folder(closed / "c"))
        assert text.startswith(f"{closed}: Permission denied")
    finally:
        closed.rmdir()


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", tmp_path], check=True)
    try:
        (tmp_path / "neighbour").write_bytes(bytes(8192))
        assert "No space left" in said(lambda: preflight.check_folder(tmp_path / "c"))
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_caches_are_not_in_the_home(
    read_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / ("nowhere" if read_only else "build")).mkdir(parents=True)
    monkeypatch.setattr(resources, "ROOT", checkout)
    monkeypatch.setenv("XDG_CACHE_HOME", "/etc/passwd")
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    plugin._keep_caches(tmp_path)
    cache = tmp_path / ".snakemake" / "cache"
    assert os.environ["XDG_CACHE_HOME"] == str(cache)
    assert os.environ["MPLCONFIGDIR"] == str(
        (cache if read_only else checkout / "build") / "matplotlib"
    )


def refused() -> None:
    raise PeakmarkError("cpu[0] is wrong: write another")


def disk_full() -> None:
    raise OSError(28, "No space left on device", "/t/a")


def test_the_snakefile_speaks_without_the_place_in_the_rules() -> None:
    """Snakemake finds places by the traceback of what it prints; this file stands for one of the
    rules.
    """
    for function, words in (
        (refused, "cpu[0] is wrong: write another"),
        (disk_full, "/t/a: No space left on device; make"),
    ):
        try:
            try:
                as_workflow_error(function)
            except UserError as told:
                told.__traceback__ = told.__traceback__  # as whoever passes it on does
                raise
        except UserError as told:
            text = format_exception_to_string(
                told, linemaps={__file__: {number: number for number in range(999)}}
            )
            assert text.startswith(f"Error: {words}") and "\n" not in text


@pytest.fixture
def handler() -> plugin.LogHandler:
    settings: Any = SimpleNamespace(stdout=False, dryrun=False, printshellcmds=False, verbose=False)
    made = plugin.LogHandler(settings, None)
    made.console = Console(file=io.StringIO(), width=300)
    made.bar = plugin._Bar(made.console)
    made.setFormatter(logging.Formatter("%(message)s"))
    return made


SPOKEN = {
    "\nError: campaign is wrong\n\n": "Error: campaign is wrong\n",
    "WorkflowError:\nAt least one job did not complete successfully.": "",
    "Exiting because a job execution failed. Look above for error messages": "",
    "WorkflowError:\nsomething else": "WorkflowError:\nsomething else\n",
}


@pytest.mark.parametrize("text", SPOKEN)
def test_of_what_snakemake_says_the_reason_stays(text: str, handler: plugin.LogHandler) -> None:
    record = logging.LogRecord("snakemake", logging.ERROR, __file__, 1, text, None, None)
    record.__dict__["event"] = LogEvent.ERROR
    handler.emit(record)
    assert handler.console.file.getvalue() == SPOKEN[text]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "Report created.",
        "Will exit after finishing currently running jobs (scheduler).",
        "Unlocked working directory.",
        "Would delete results/c/report.pdf",
    ],
)
def test_answers_of_snakemake_are_heard(text: str, handler: plugin.LogHandler) -> None:
    record = logging.LogRecord("snakemake", logging.INFO, __file__, 1, text, None, None)
    for _ in range(2):
        handler.emit(record)
    assert handler.console.file.getvalue() == f"{text}\n", "once"  # type: ignore[attr-defined]
