"""How the programs were made and what they load: from this machine, and from outputs kept of it."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import machine
from peakmark.machine import libraries
from peakmark.machine.host import Host
from peakmark.report import machine_text
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.storage.types import Facts
from peakmark.tools import present
from peakmark.validation import convert

LDD = (make.DATA / "ldd" / "hpcc.txt").read_text()
OPENBLAS = {
    "name": "OpenBLAS",
    "core_type": "Zen",
    "config": "OpenBLAS 0.3.21 DYNAMIC_ARCH Zen MAX_THREADS=64",
}


def host(outputs: Mapping[str, str], root: Path = Path("/")) -> Host:
    """A machine whose tools print this, by a word of their command line."""

    def run(argv: Sequence[str]) -> str | None:
        return next((text for word, text in outputs.items() if word in argv), None)

    return Host(root, run)


def test_compiler_and_flags_as_make_wrote_them(tmp_path: Path) -> None:
    """By the real Makefile, which need not compile anything for it."""
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "src/kernels"), f"BUILD={tmp_path}", "PROGRAMS=", "CFLAGS_EXTRA=-DA=1",
         str(tmp_path / "build.json")],
        check=True,
    )  # fmt: skip
    read = json.loads((tmp_path / "build.json").read_text())
    here = Host()
    facts = libraries.collect_build(here, tmp_path)
    assert facts == read
    assert "gcc" in str(facts["compiler"])
    assert "-O2" in facts["flags"] and "-DA=1" in facts["flags"]
    assert "-fno-tree-vectorize" in facts["isa_flags"]["scalar"]
    assert here.unknown == {}


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_a_build_that_left_no_word_is_unknown(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "build.json").write_text(text)
    here = Host()
    assert set(libraries.collect_build(here, tmp_path).values()) == {None}
    assert "make kernels" in here.unknown["build.compiler"]


def test_libraries_that_results_depend_on() -> None:
    found = libraries.collect_libraries(host({"ldd": LDD}), ["/usr/bin/hpcc"])
    assert set(found) == {
        "libblas.so.3",
        "libopenblas.so.0",
        "libmpi.so.40",
        "libhwloc.so.15",
        "libgfortran.so.5",
    }
    assert libraries.collect_libraries(host({}), ["/bin/sh"]) == {}


def test_the_blas_is_the_one_that_hpl_loads() -> None:
    here = host({"ldd": LDD, "/lib/x86_64-linux-gnu/libopenblas.so.0": json.dumps(OPENBLAS)})
    facts = libraries.collect_blas(here, "/usr/bin/hpcc")
    assert {name: facts[name] for name in OPENBLAS} == OPENBLAS
    assert "openblas" in facts["library"]
    assert here.unknown == {}


def test_a_blas_that_is_not_there_or_says_nothing_is_unknown() -> None:
    nothing = host({})
    assert set(libraries.collect_blas(nothing, None).values()) == {None}
    assert "libopenblas0-pthread" in nothing.unknown["blas.name"]
    silent = host(
        {"libblas.so.3": '{"name": "reference BLAS or unknown", "core_type": null, "config": null}'}
    )
    assert libraries.collect_blas(silent, None)["name"] == "reference BLAS or unknown"
    assert "record of hpl" in silent.unknown["blas.core_type"]


@pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is not here")
def test_the_real_blas_of_this_machine() -> None:
    facts = libraries.collect_blas(Host(), shutil.which("hpcc"))
    assert facts["name"] in ("OpenBLAS", "BLIS", "MKL", "reference BLAS or unknown")
    if facts["name"] == "OpenBLAS":
        assert facts["core_type"]
        assert facts["core_type"].lower() in facts["config"].lower()


def test_facts_with_all_programs_are_valid_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "build.json").write_text(
        '{"compiler": "cc 1", "flags": "-O9", "isa_flags": {"avx2": "-mavx2"}, "io_uring": true}'
    )
    found = present(folder)
    assert "cpubench" not in found  # what is not compiled is left out
    facts = machine.collect(tmp_path, tools=found, cpubench=folder / "cpubench")
    convert(facts, Facts, "facts")
    (group,) = (
        one
        for one in machine_text._groups(facts, ".", ())
        if one["title"] == "Programs and libraries"
    )
    items = dict(group["items"])
    assert {"cc 1", "-O9", "avx2: -mavx2"} <= set(items.values())
    for name, tool in found.items():
        assert (
            f"{name} {tool.version}" in items["Programs"]
            or f"{name} (unknown)" in items["Programs"]
        )


def test_the_core_type_of_the_runs_is_told_before_what_the_library_takes_by_itself(
    tmp_path: Path,
) -> None:
    of = make.cell("hpl", "DP", subsystem="cpu")
    library = {"library": {"blas": "OpenBLAS", "core_type": "SkylakeX", "requested": "SkylakeX"}}
    facts = {"host": "node1", "blas": {"name": "OpenBLAS", "core_type": "Prescott", "library": "/lib/libblas.so.3",
                                       "config": "OpenBLAS 0.3.21 DYNAMIC_ARCH Prescott MAX_THREADS=64"}}  # fmt: skip
    record = make.record(of, [make.measurement(of, "rate", 1e10)], context=library)
    (ran,) = machine_text.nodes(Results.read(make.write(tmp_path / "a", [record], facts=facts)))
    (not_run,) = machine_text.nodes(
        Results.read(make.write(tmp_path / "b", [], planned=[of], facts=facts))
    )
    told = [
        dict(item for group in one["groups"] for item in group["items"])["BLAS"]
        for one in (ran, not_run)
    ]
    assert re.findall("SkylakeX|Prescott", told[0]) == ["SkylakeX", "Prescott"]
    assert re.findall("SkylakeX|Prescott", told[1]) == ["Prescott"]
    assert all("/lib/libblas.so.3" in text for text in told)
