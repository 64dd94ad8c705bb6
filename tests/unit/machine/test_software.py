"""What the programs load, and what changes their results: from kept outputs."""

import json

import pytest
from tests.unit import campaign_data
from tests.unit.machine.hosts import host

from peakmark.machine import software
from peakmark.machine.facts import collect
from peakmark.machine.host import Host
from peakmark.tools import present
from peakmark.views import appendix

LDD = (campaign_data.DATA / "ldd" / "hpcc.txt").read_text()

CONFIG = "OpenBLAS 0.3.21 DYNAMIC_ARCH Zen MAX_THREADS=64"
OPENBLAS = {"name": "OpenBLAS", "core_type": "Zen", "config": CONFIG}


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_a_build_that_wrote_nothing_is_unknown(tmp_path, text):
    if text is not None:
        (tmp_path / "build.json").write_text(text)
    this = Host()
    assert set(software.collect_build(this, tmp_path).values()) == {None}
    assert "build.json" in this.unknown["build.compiler"]


def test_libraries_that_results_depend_on(tmp_path):
    names = ["blas.so.3", "openblas.so.0", "mpi.so.40", "hwloc.so.15", "gfortran.so.5"]
    libraries = software.collect_libraries(host(tmp_path, "", {"ldd": LDD}), ["/usr/bin/hpcc"])
    assert set(libraries) == {f"lib{name}" for name in names}
    assert software.collect_libraries(host(tmp_path, "", {}), ["/bin/sh"]) == {}


def test_the_blas_is_the_one_that_hpl_loads(tmp_path):
    this = host(
        tmp_path, "", {"ldd": LDD, "/lib/x86_64-linux-gnu/libopenblas.so.0": json.dumps(OPENBLAS)}
    )
    facts = software.collect_blas(this, "/usr/bin/hpcc")
    assert {name: facts[name] for name in OPENBLAS} == OPENBLAS
    assert "openblas" in facts["library"] and this.unknown == {}
    missing = host(tmp_path, "", {})
    assert set(software.collect_blas(missing, None).values()) == {None}
    assert "libopenblas0-pthread" in missing.unknown["blas.name"]
    answer = {"name": "reference BLAS or unknown", "core_type": None, "config": None}
    silent = host(tmp_path, "", {"libblas.so.3": json.dumps(answer)})
    assert software.collect_blas(silent, None)["name"] == "reference BLAS or unknown"
    assert "records of hpl" in silent.unknown["blas.core_type"]


def test_facts_with_all_programs_are_valid_and_those_of_the_build_are_shown(tmp_path):
    built = {"compiler": "cc 1", "flags": "-O9", "isa_flags": {"avx2": "-mavx2"}, "io_uring": True}
    (tmp_path / "build.json").write_text(json.dumps(built))
    tools = present(tmp_path)
    assert "cpubench" not in tools  # what is not compiled is left out
    facts = collect(tmp_path, tools=tools, cpubench=tmp_path / "cpubench")
    items = dict(appendix.group(facts)["Programs and libraries"])
    assert {"cc 1", "-O9", "avx2: -mavx2"} <= set(items.values())
    assert facts["tools"].keys() == tools.keys()


def test_kernel_parameters_that_change_results_are_kept(tmp_path):
    files = """
        /proc/cmdline BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro isolcpus=2-3 nosmt mitigations=off nfsroot=10.0.0.1:/x
        /proc/sys/kernel/numa_balancing 1
        /sys/class/dmi/id/bios_version 2.14.1
        /sys/class/dmi/id/bios_date 06/12/2025
    """
    facts = software.collect_os(host(tmp_path, files))
    # No disk, no server.
    assert facts["command_line"].split() == ["isolcpus=2-3", "nosmt", "mitigations=off"]
    assert (facts["numa_balancing"], facts["firmware"]) == (1, "2.14.1 06/12/2025")
