"""Who may read and write what a cell leaves and works with, whatever the user's umask."""

import os
import stat

from bench import disk_cell
from tests.programs import needs, wait_for


def test_nothing_is_for_everybody_to_write(bench):
    """Under umask 0, while a disk cell runs and after it."""
    argv = bench.argv(disk_cell(seconds=1))
    before = os.umask(0)
    try:
        process = bench.start(argv)
    finally:
        os.umask(before)
    with process:
        wait_for(lambda: list(bench.scratch.rglob("peakmark-0")), "its file is there")
        private = [path for path in bench.scratch.rglob("peakmark-*") if path.is_dir()]
        modes = {stat.S_IMODE(path.stat().st_mode) for path in private}
        file = next(bench.scratch.rglob("peakmark-0"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert process.returncode == 0
    assert len(private) == 2 and modes == {0o700}  # the cell's directory and the kernel's own
    for path in bench.campaign.rglob("*"):
        assert not path.stat().st_mode & stat.S_IWOTH, path


def test_a_link_in_the_place_of_a_record_is_replaced_not_followed(bench):
    cell = disk_cell()
    victim = bench.directory / "victim"
    victim.write_text("mine")
    path = bench.record_path(cell)
    path.parent.mkdir(parents=True)
    path.symlink_to(victim)
    bench.assert_completes(cell)
    assert victim.read_text() == "mine"
    assert not path.is_symlink()


@needs("fio")
def test_no_part_of_the_environment_is_in_a_record(bench):
    word = "a-token-of-the-user-4711"
    os.environ["SOME_SERVICE_TOKEN"] = word
    try:
        for cell in (disk_cell(), disk_cell("fio")):
            bench.assert_completes(cell)
    finally:
        del os.environ["SOME_SERVICE_TOKEN"]
    for path in bench.campaign.rglob("*"):
        assert path.is_dir() or word.encode() not in path.read_bytes(), path
