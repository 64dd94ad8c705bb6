"""What the compiler or assembler cannot make is left out and said: by an assembler that knows no
AVX-VNNI, as none did before binutils 2.36, and by a gcc without its option, as none had it
before 11. And clang, which refuses nothing. `make test-debian11` asks the real gcc 10 and
binutils 2.35.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from peakmark.machine import libraries
from peakmark.machine.host import Host
from peakmark.resources import ROOT
from peakmark.workflow import doctor

KERNELS = ROOT / "src" / "kernels"
# The assembler itself, told to know nothing of AVX-VNNI: it refuses the line that one before
# binutils 2.36 refuses, in the same words.
OLD_AS = "gcc -Wa,-march=+noavx_vnni"

# gcc 8.5 of RHEL 8 with binutils 2.30: the option is not known to it, and it would not come to
# assembling.
OLD_GCC = """#!/bin/sh
for word in "$@"; do
    if [ "$word" = -mavxvnni ]; then
        echo "gcc: error: unrecognized command line option '-mavxvnni'; did you mean '-mavx512vnni'?" >&2
        exit 1
    fi
done
exec gcc "$@"
"""

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="AVX-VNNI is x86's")


def make(build: Path, compiler: str, target: str) -> str:
    """What make prints when it builds ``target`` with this compiler."""
    argv = [
        "make",
        "--no-print-directory",
        "-C",
        str(KERNELS),
        f"BUILD={build}",
        f"CC={compiler}",
        "PROGRAMS=",
        target,
    ]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def test_an_old_assembler_leaves_out_what_it_lacks_and_everybody_says_so(tmp_path: Path) -> None:
    last = make(tmp_path, OLD_AS, "all").splitlines()[-1]
    told = re.fullmatch(
        r"left out, as this compiler or assembler cannot make it: avxvnni \((.+)\)", last
    )
    # "unsupported instruction vpdpbusd", of binutils 2.44 "no VEX/XOP encoding for vpdpbusd".
    assert told is not None and "vpdpbusd" in told[1], last
    facts = libraries.collect_build(Host(), tmp_path)
    assert facts["left_out"] == {"avxvnni": told[1]}
    assert "avxvnni" not in facts["isa_flags"] and "avx2" in facts["isa_flags"]
    text, _ = doctor.examine(None, tmp_path)
    assert f"built without avxvnni ({told[1]})" in text


def test_an_old_compiler_leaves_out_what_it_lacks(tmp_path: Path) -> None:
    compiler = tmp_path / "gcc-8"
    compiler.write_text(OLD_GCC)
    compiler.chmod(0o755)
    last = make(tmp_path / "build", str(compiler), "all").splitlines()[-1]
    assert "avxvnni (unrecognized" in last
    facts = libraries.collect_build(Host(), tmp_path / "build")
    assert set(facts["left_out"]) == {"avxvnni"} and "avx512vnni" in facts["isa_flags"]


def test_clang_makes_all(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("no clang here")
    assert "left out" not in make(tmp_path, "clang", "all")
    facts = libraries.collect_build(Host(), tmp_path)
    assert facts["left_out"] == {} and "clang" in facts["compiler"]
    make(tmp_path, "clang", str(tmp_path / "cpubench"))
    argv = [tmp_path / "cpubench", "--workload", "QPDOT", "--operations", "1e6"]
    result = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert not any("lacks" in text or "without" in text for text in result["warnings"])


def test_the_program_links_without_it_and_its_version_tells(tmp_path: Path) -> None:
    make(tmp_path, OLD_AS, str(tmp_path / "cpubench"))
    said = subprocess.run(
        [tmp_path / "cpubench", "--version"], check=True, capture_output=True, text=True
    ).stdout
    assert "without avxvnni" in said
    argv = [tmp_path / "cpubench", "--workload", "QPDOT", "--isa", "sse2", "--operations", "1e6"]
    result = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    has_it = "avx_vnni" in Path("/proc/cpuinfo").read_text()
    assert any("without AVX-VNNI" in text for text in result["warnings"]) == has_it


def test_a_toolchain_that_makes_all_leaves_out_nothing_and_is_silent(tmp_path: Path) -> None:
    version = subprocess.run(
        ["as", "--version"], check=True, capture_output=True, text=True
    ).stdout.split("\n")[0]
    if tuple(map(int, version.rsplit(maxsplit=1)[1].split(".")[:2])) < (2, 36):
        pytest.skip("the assembler here is an old one")
    assert "left out" not in make(tmp_path, "gcc", "all")
    assert libraries.collect_build(Host(), tmp_path)["left_out"] == {}
