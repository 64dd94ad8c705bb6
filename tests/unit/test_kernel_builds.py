"""How the kernels are compiled, by which compiler and with which flags, and when they are compiled anew."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tests.checkout import OTHER_BUILDS
from tests.programs import executable, needs

from peakmark.errors import PeakmarkError
from peakmark.machine import software
from peakmark.machine.host import Host
from peakmark.resources import ROOT
from peakmark.run import kernel_build
from peakmark.workflow import doctor, startup

KERNELS = Path(__file__).parents[2] / "src" / "kernels"
FLAGS = ("CC", "AR", "CPPFLAGS", "CFLAGS", "LDFLAGS", "WERROR", "MAKEFLAGS", "MAKELEVEL")
FEW = [
    "PROBE=",
    "LEFT_OUT=avx2 avx512 avxvnni avx512vnni avx512bf16 avx512fp16 amx dotprod fp16 i8mm bf16 sve",
]
"""One instruction set of each architecture, and none to probe: a whole build takes 3 s."""

LOGGER = """#!/bin/sh
# A compiler of an architecture that nobody knows: it writes down what it is called with.
echo "$*" >>{log}
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || echo >"$2"
    shift
done
"""


def make(folder, *settings, **variables):
    """Run make with these variables of the environment; return what it printed."""
    clean = {name: text for name, text in os.environ.items() if name not in FLAGS}
    argv = ["make", "-j2", "-C", str(KERNELS), f"BUILD={folder}", *settings]
    done = subprocess.run(
        argv, env=clean | variables, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Compiler:
    """A compiler that compiles nothing and keeps its command lines."""

    def __init__(self, folder):
        self.log = folder / "log"
        self.path = executable(folder / "logger", LOGGER.format(log=self.log))
        self.build = folder / "build"

    def calls(self, *settings, **variables):
        """Command lines of what make compiled, and of what it linked."""
        self.log.write_text("")
        make(self.build, *settings, **({"CC": str(self.path)} | variables))
        lines = self.log.read_text().splitlines()
        compiled = [line for line in lines if " -MMD " in line]
        linked = [line for line in lines if line.endswith(" -lm")]
        return compiled, linked


@pytest.fixture
def compiler(tmp_path):
    return Compiler(tmp_path)


@pytest.mark.parametrize("place", ["environment", "command line"])
def test_flags_of_others_come_after_our_own(compiler, place):
    flags = {
        "CC": f"{compiler.path} --of-distribution",
        "CPPFLAGS": "-DDISTRIBUTION -D_FORTIFY_SOURCE=3",
        "CFLAGS": "-O3 -g",
        "LDFLAGS": "-Wl,--as-needed",
    }
    if place == "environment":
        compiled, linked = compiler.calls(**flags)
    else:
        compiled, linked = compiler.calls(*(f"{name}={text}" for name, text in flags.items()))
    assert len(compiled) > 40 and len(linked) == 5
    for line in compiled:
        assert line.startswith("--of-distribution ")
        assert line.index("-O2") < line.index("-DDISTRIBUTION") < line.index("-O3 -g")
        assert line.count("_FORTIFY_SOURCE") == 1
    for line in linked:
        assert line.index("-O3 -g") < line.index("-Wl,-z,relro") < line.index("-Wl,--as-needed")
    facts = json.loads((compiler.build / "build.json").read_text())
    assert "-O3 -g" in facts["flags"] and "-Wl,--as-needed" in facts["flags"]


def test_loops_that_are_timed_are_compiled_alike(compiler):
    compiled, _ = compiler.calls(CFLAGS="-O0 -flto -Ofast")
    loops = [line for line in compiled if line.endswith(("_scalar.c", "chase.c"))]
    assert len(loops) == 3
    for line in loops:
        assert line.index("-Ofast") < line.rindex("-O2 -fno-lto")
    for line in compiled:
        assert line.index("-Ofast") < line.index("-fno-fast-math -ffp-contract=off")


def test_a_warning_is_an_error_for_developers_only(compiler):
    compiled, _ = compiler.calls()
    assert not any("-Werror" in line for line in compiled)
    shutil.rmtree(compiler.build)
    compiled, _ = compiler.calls(WERROR="1")
    assert compiled and all("-Werror" in line for line in compiled)


def test_other_flags_compile_anew(compiler):
    def count(flags):
        return len(compiler.calls(CFLAGS=flags)[0])

    first = count("-g1")
    assert [count("-g1"), count("-g2"), count("-g1")] == [0, first, first]


def test_facts_of_a_build_hold_no_paths_and_no_quotes(compiler):
    compiler.calls(CFLAGS="""-ffile-prefix-map=/build/dir=. -DNAME='"a b"' -I/opt/of/site -g""")
    facts = (compiler.build / "build.json").read_text()
    assert json.loads(facts)["flags"].count("-g") == 1
    assert "/build" not in facts and "/opt" not in facts


def test_kernels_of_a_campaign_are_those_of_gcc(tmp_path, monkeypatch):
    """Modules of a site set CC, some to a compiler that takes none of the flags."""
    executable(tmp_path / "make", "#!/bin/sh\nenv\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("CC", "AR", "CPPFLAGS", "CFLAGS", "LDFLAGS"):
        monkeypatch.setenv(name, "of-a-module")
    printed = subprocess.run(
        ["sh", "-c", kernel_build.make_command()], capture_output=True, text=True
    )
    assert printed.returncode == 0 and "PATH=" in printed.stdout
    assert "of-a-module" not in printed.stdout


def test_facts_of_a_build_are_those_that_make_wrote(tmp_path):
    make(tmp_path, "PROGRAMS=", str(tmp_path / "build.json"), CC="gcc")
    host = Host()
    facts = software.collect_build(host, tmp_path)
    assert facts == json.loads((tmp_path / "build.json").read_text()) and host.unknown == {}
    assert "gcc" in facts["compiler"] and "-fno-tree-vectorize" in facts["isa_flags"]["scalar"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="AVX-VNNI is x86's")
def test_what_an_old_assembler_lacks_is_left_out_and_told(tmp_path):
    old = {"CC": "gcc -Wa,-march=+noavx_vnni"}
    last = make(tmp_path, "PROGRAMS=", "--no-print-directory", **old).splitlines()[-1]
    words = r"left out, as this compiler or assembler cannot make it: avxvnni \((.+)\)"
    told = re.fullmatch(words, last)
    # "unsupported instruction vpdpbusd", of binutils 2.44 "no VEX/XOP encoding for vpdpbusd".
    assert told is not None and "vpdpbusd" in told[1], last
    facts = software.collect_build(Host(), tmp_path)
    assert facts["left_out"] == {"avxvnni": told[1]}
    assert "avxvnni" not in facts["isa_flags"] and "avx2" in facts["isa_flags"]
    assert f"built without avxvnni ({told[1]})" in doctor.examine(None, tmp_path)[0]
    make(tmp_path, str(tmp_path / "cpubench"), **old)
    program = tmp_path / "cpubench"
    assert "without avxvnni" in subprocess.check_output([program, "--version"], text=True)
    point = ["--workload", "QPDOT", "--operations", "1e6", "--isa", "sse2"]
    warnings = json.loads(subprocess.check_output([program, *point]))["warnings"]
    has_it = "avx_vnni" in Path("/proc/cpuinfo").read_text()
    assert any("without AVX-VNNI" in text for text in warnings) == has_it


@needs("musl-gcc")
def test_another_c_library(tmp_path):
    """musl has no pwritev2, and none of the kernel's headers."""
    make(tmp_path, *FEW, "CC=musl-gcc", WERROR="1")
    common = ["--seconds", "0.05", "--warmup", "0"]
    disk = ["--workload", "WR", "--sync", "each", "--size", "64KiB", "--directory", str(tmp_path)]
    memory = ["--workload", "RWR", "--block", "1KiB", "--pool", "1MiB"]
    for argv in (["diskbench", *disk], ["rambench", *memory], ["cpubench", "--workload", "DP"]):
        argv[0] = str(tmp_path / argv[0])
        run = subprocess.run([*argv, *common], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["value"] > 0


@pytest.fixture
def sources(tmp_path):
    """A copy of the kernels' sources beside what make has made of them."""
    for name in ("src/kernels", "build/kernels"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*OTHER_BUILDS))
    (tmp_path / "src/peakmark").mkdir()
    shutil.copy(ROOT / "src/peakmark/__init__.py", tmp_path / "src/peakmark")
    _make(tmp_path / "src/kernels")
    return tmp_path / "src/kernels"


def _make(sources):
    done = subprocess.run(["make", "-C", str(sources)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_make_calls_up_to_date_is(sources):
    """Also where a newer source belongs to one program or to none, or a program is missing."""
    built = sources.parents[1] / "build/kernels"
    assert kernel_build.up_to_date(sources, built)
    for name in ("net/plan.c", "net/plan.h", "cppcheck.cfg"):
        newest = max(path.stat().st_mtime_ns for path in built.iterdir())
        os.utime(sources / name, ns=(newest + 1, newest + 1))
        assert not kernel_build.up_to_date(sources, built), name
        _make(sources)
        assert kernel_build.up_to_date(sources, built), name
    (built / "netbench").unlink()
    assert not kernel_build.up_to_date(sources, built)
    _make(sources)
    assert kernel_build.up_to_date(sources, built)


def test_of_a_wheel_the_cache_has_kernels_for_each_compiler(tmp_path, monkeypatch):
    """And the processes that a run starts, on nodes without a compiler too, use those of the run."""
    monkeypatch.setattr(kernel_build, "IS_CHECKOUT", False)
    monkeypatch.setattr(kernel_build, "CACHE", tmp_path)

    def key(version):
        executable(tmp_path / "gcc", f"#!/bin/sh\necho {version}\n")
        kernel_build.folder.cache_clear()
        return kernel_build.folder()

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(kernel_build.VARIABLE, raising=False)
    first = key("gcc 12")
    assert first.parent == tmp_path
    assert key("gcc 13") == first
    monkeypatch.delenv(kernel_build.VARIABLE)
    assert key("gcc 13") != first
    kernel_build.folder.cache_clear()


@pytest.mark.parametrize("missing", ["make", "gcc"])
def test_what_compiling_lacks_is_one_sentence(missing, tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    startup.check_compiler(tmp_path)
    for name in {"make", "gcc"} - {missing}:
        executable(programs / name, "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(PeakmarkError, match=f"{missing} is not here"):
        startup.check_compiler(tmp_path)


PTX = KERNELS / "gpu"
CHIPS = ("75", "80", "86", "89", "90a", "100a", "120a")
"""Compute capabilities without the point; the a is of instructions that later chips lack."""


def oldest_chip(module):
    """Return the number and the suffix of the oldest chip that a module is for."""
    text = module.read_text().partition(".target sm_")[2].split()[0]
    return int(text.rstrip("a")), text.endswith("a")


@pytest.fixture(scope="module")
def ptxas():
    try:
        files = metadata.files("nvidia-cuda-nvcc") or []
    except metadata.PackageNotFoundError:
        pytest.skip("the package nvidia-cuda-nvcc, which holds ptxas, is not installed")
    path = next(Path(file.locate()) for file in files if file.name == "ptxas")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("chip", CHIPS)
def test_every_module_is_assembled_for_the_chips_that_it_is_for(ptxas, chip, tmp_path):
    number = int(chip.rstrip("a"))
    assembled = 0
    subprocess.run([sys.executable, PTX / "ptx.py", tmp_path], check=True)
    for module in sorted([*PTX.glob("*.ptx"), *tmp_path.glob("*.ptx")]):
        oldest, only_there = oldest_chip(module)
        if oldest > number or (only_there and oldest != number):
            continue
        argv = [
            ptxas,
            f"--gpu-name=sm_{chip}",
            "--warning-as-error",
            module,
            "-o",
            tmp_path / "code",
        ]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, f"{module.name}: {done.stderr}"
        assembled += 1
    assert assembled >= 8
