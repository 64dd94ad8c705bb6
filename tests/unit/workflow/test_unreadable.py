"""Records of another user that this one may not read: whole, and never set aside."""

import json
import shutil
from types import SimpleNamespace

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL

from peakmark.storage import facts, records
from peakmark.storage.results import Results
from peakmark.workflow import startup, status

RECORD = f"cells/{CELL.id}.json"


@pytest.fixture
def shared(small, shared_folder):
    """A campaign that others may write into, as a shared checkout has it."""
    folder = shared_folder / "before"
    shutil.copytree(small, folder)
    facts.write(folder / "machine" / "node1.json", make.ZEN3)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return folder


def with_output(folder):
    """Give the record an output of its tool, and return that file."""
    path = folder / RECORD
    data = json.loads(path.read_text()) | {
        "raw": {"0.raw/0.stdout": records.hashlib.sha256(b"x").hexdigest()}
    }
    del data["sha256"]
    path.write_text(records.text_of(data))
    output = path.parent / "0.raw" / "0.stdout"
    output.parent.mkdir()
    output.write_bytes(b"x")
    return output


CLOSED = {
    "record": lambda folder: (folder / RECORD, 0o600),
    "folder": lambda folder: ((folder / RECORD).parent, 0o700),
    "folders": lambda folder: (folder / "cells", 0o700),
    "output": lambda folder: (with_output(folder), 0o600),
    "facts": lambda folder: (folder / "machine" / "node1.json", 0o600),
}


@pytest.mark.parametrize("what", CLOSED)
def test_what_another_user_may_not_read_is_not_called_damaged(shared, as_nobody, what):
    path, mode = CLOSED[what](shared)
    path.chmod(mode)
    told = as_nobody(lambda: status.describe(Results.read(shared)))
    assert "cannot be read (Permission denied)" in told and f"chmod -R a+rX {path}" in told
    assert "root" in told
    for wrong in ("damaged", "sets it aside", "measures this cell again"):
        assert wrong not in told
    if what != "facts":
        assert "unreadable" in told and "complete" not in told
    # Its owner still has it.
    assert "complete" in status.describe(Results.read(shared))


@pytest.mark.parametrize("what", CLOSED)
def test_a_run_of_another_user_ends_before_it_changes_anything(shared, as_nobody, what):
    path, mode = CLOSED[what](shared)
    path.chmod(mode)
    before = sorted(shared.rglob("*"))

    def begin():
        results = Results.read(shared)
        plan = SimpleNamespace(directory=shared, results=results)
        try:
            startup.check_readable(results)
        finally:
            startup.set_aside(plan, startup.survey(results))

    said = as_nobody(begin)
    assert "nothing was measured or set aside" in said and f"chmod -R a+rX {path}" in said
    assert sorted(shared.rglob("*")) == before
