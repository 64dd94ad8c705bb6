"""The kernels are hardened against attacks, and none of it is in a loop that is timed."""

import subprocess

import pytest
from tests.unit.hostile import KERNELS as BUILD

PROGRAMS = ["cpubench", "rambench", "diskbench", "netbench"]


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_is_hardened(program):
    headers = output("readelf", "-W", "-h", "-l", "-d", str(BUILD / program))
    assert "DYN (Position-Independent" in headers  # its addresses are random
    assert "GNU_RELRO" in headers and "BIND_NOW" in headers  # its table of functions is read-only
    (stack,) = (line for line in headers.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack  # its stack is not executable
    # It takes libraries from nowhere but the system's places.
    assert "RPATH" not in headers and "RUNPATH" not in headers
    symbols = output("nm", "--dynamic", "--undefined-only", str(BUILD / program))
    assert "__stack_chk_fail" in symbols  # buffers on the stack are guarded
    assert "_chk@" in symbols  # copies of known size are checked


def test_no_timed_loop_pays_for_it():
    patterns = ("cpu/kernels_*.o", "memory/sweep_*.o", "memory/chase.o")
    loops = [file for pattern in patterns for file in BUILD.glob(f"obj/{pattern}")]
    assert len(loops) > 3
    for file in loops:
        symbols = output("nm", "--undefined-only", str(file))
        assert "__stack_chk_fail" not in symbols, file
        assert "_chk" not in symbols, file
