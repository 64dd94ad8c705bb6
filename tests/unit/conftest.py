"""What several test files share because it takes seconds to make."""

import fcntl
import os
import signal
import tempfile
from pathlib import Path

import pytest
from tests import mounts
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, LIMIT_S, Said, copied

from peakmark import cli
from peakmark.machine.facts import cached
from peakmark.rows import build
from peakmark.run import lock
from peakmark.views import rendering
from peakmark.workflow import status


def made_once(factory, name, make_in):
    """A folder that one process makes for all of the test run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        if not os.fstat(stream.fileno()).st_size:
            make_in(folder)
            stream.write("made")
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory):
    """Wait for no other measurement on this machine: it may last longer than ``lock.WAIT_S``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "DIRECTORY", tmp_path_factory.mktemp("locks"))
        yield


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """A whole campaign with its tables, figures and reports; tests must not change it."""
    section = {"title": "Limits", "author": "Jane Dœ", "course": "CS 553"}
    facts = make.ZEN3 | {"cpu": make.ZEN3["cpu"] | {"clock_hz": {"nominal": 2.445e9}}}

    def make_in(folder):
        make.write(folder, make.sweep(), config={"report": section}, facts=facts)
        make.tables(folder)
        rendering.write_all(status.collect_report(folder))

    return made_once(tmp_path_factory, "sweep", make_in)


@pytest.fixture(scope="session")
def sweep(swept):
    """The frames of ``swept``."""
    return build.load(swept)


@pytest.fixture(scope="session")
def preset(tmp_path_factory):
    """The folder of a small campaign of a preset, by its name, with tables; tests must not change it."""

    def made(name):
        def make_in(folder):
            make.tables(make.small_campaign(folder.parent, name))

        return made_once(tmp_path_factory, f"presets/{name}", make_in)

    return made


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """The folder of a real campaign, by its name, with the files of its rows; tests must not change it."""

    def made(name):
        def make_in(folder):
            build.load(make.golden(name, folder))

        return made_once(tmp_path_factory, f"golden/{name}", make_in)

    return made


@pytest.fixture(scope="session")
def twelve(tmp_path_factory):
    """The frames of twelve nodes, two of which are slow as ``make.SLOW`` says."""

    def make_in(folder):
        build.load(make.write_fleet(folder, 12, make.SLOW))

    return build.load(made_once(tmp_path_factory, "twelve", make_in))


@pytest.fixture
def peakmark(capsys):
    """The command line; what it waits for for ever ends the test."""

    def run(*words):
        signal.alarm(LIMIT_S)
        try:
            code = cli.main([str(word) for word in words])
        finally:
            signal.alarm(0)
        return Said(code, *capsys.readouterr())

    def late(*_):
        raise AssertionError(f"it did not end within {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    yield run
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def known(tmp_path_factory):
    """The facts of this machine, which take a moment to collect; tests must not change them."""
    return made_once(tmp_path_factory, "facts/machine", cached)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A whole campaign whose folder has another name than its plan; tests must not change it."""
    folder = make.write(
        tmp_path_factory.mktemp("r") / "quick",
        [make.record(CELL, [make.measurement(CELL, "rate", 4e9)]) | {"raw": {}}],
    )
    return folder.rename(folder.with_name("before"))


@pytest.fixture
def campaign(small, tmp_path):
    """A copy of ``small`` that a test may damage."""
    return copied(small, tmp_path)


@pytest.fixture
def own_mounts():
    """Mounts from here on are those of this process alone."""
    if reason := mounts.take():
        pytest.skip(reason)


NOBODY = 65534


@pytest.fixture
def shared_folder():
    """A folder that every user reaches and may write into, which pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@pytest.fixture
def as_nobody():
    """Call a function as another user; what it returns, or the text of its error."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")

    def call(function):
        read_fd, write_fd = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                os.write(write_fd, str(function()).encode())
            except BaseException as error:
                os.write(write_fd, str(error).encode())
            finally:
                os._exit(0)
        os.close(write_fd)
        with os.fdopen(read_fd) as stream:
            said = stream.read()
        os.waitpid(child, 0)
        return said

    return call
