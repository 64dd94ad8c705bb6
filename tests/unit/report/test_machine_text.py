"""The facts of a machine as the report tells them."""

from pathlib import Path
from typing import Any

from tests.unit import campaign_data as make

from peakmark.report import machine_text
from peakmark.storage.results import Results


def test_the_network_on_the_facts_page_is_the_one_that_was_measured(tmp_path: Path) -> None:
    default = {"interface": "eth0", "kind": "ethernet", "speed_bps": 1e9, "mtu": 1500}
    fast = {"interface": "ib0", "kind": "infiniband", "speed_bps": 200e9, "mtu": 4092}

    def page(*networks: dict[str, Any] | None) -> list[list[str]]:
        records = []
        for number, network in enumerate(networks):
            context = {"network": network} if network else {}
            records += make.runs("netbench", "TCP", 1e9, repetition=number, context=context)
        name = f"c{len(list(tmp_path.iterdir()))}"
        folder = make.write(tmp_path / name, records, facts={"host": "node1", "network": default})
        (node,) = machine_text.nodes(Results.read(folder))
        (group,) = (one for one in node["groups"] if one["title"] == "Network")
        return list(group["items"])

    where = {"address": "10.0.0.1", "server_interface": "ib0"}
    over_ib = {**where, "interface": "ib0", "loopback": False, "link": fast}
    over_lo = {**where, "interface": "lo", "loopback": True, "link": None}
    assert page(None)[0][1].startswith("eth0") and "not measured" in page(None)[0][1]
    assert page(over_ib, over_ib)[0] == ["Interface", "ib0 (measured)"]
    assert ["Line rate", "200.0 Gb/s"] in page(over_ib)
    assert page(over_ib, over_lo)[0][1].startswith("ib0 (measured")
    assert page(over_ib, over_lo)[0][1].endswith("lo)")
    loopback = page(over_lo)
    assert loopback[0] == ["Interface", "lo (measured)"] and not any(
        what == "Line rate" for what, _ in loopback
    )


def test_the_core_type_that_the_runs_took_stands_before_what_the_library_takes_by_itself(
    tmp_path: Path,
) -> None:
    blas = {
        "name": "OpenBLAS",
        "config": "OpenBLAS 0.3.21 Prescott",
        "core_type": "Prescott",
        "library": "libblas.so.3",
    }

    def told(core: str | None) -> str:
        context = {"library": {"core_type": core, "requested": core}} if core else {}
        record, *_ = make.runs("hpl", "DP", 4e10, context=context)
        folder = make.write(tmp_path / str(core), [record], facts={"host": "node1", "blas": blas})
        (node,) = machine_text.nodes(Results.read(folder))
        (group,) = (one for one in node["groups"] if one["title"] == "Programs and libraries")
        return str(dict(group["items"])["BLAS"])

    for core, by_itself in (("SkylakeX", True), ("Prescott", False), (None, True)):
        text = told(core)
        assert text.startswith("OpenBLAS 0.3.21") and text.endswith("(libblas.so.3)")
        assert f"core type {core or 'Prescott'}" in text
        assert ("by itself" in text) is by_itself and ("HPL" in text) is bool(core)
        assert "Prescott" in text


def test_the_memory_of_several_numa_nodes_is_a_list() -> None:
    numa = [
        {"memory": 1 << 36, "distances": [10, 21, 21]},
        {"memory": 1 << 36, "distances": [21, 10, 21]},
    ]
    assert (
        machine_text._numa({"numa": numa}) == "2: 64 GiB and 64 GiB; distances 10 21 21, 21 10 21"
    )
    three = machine_text._numa({"numa": [*numa, {"memory": 0, "distances": [21, 21, 10]}]})
    assert str(three).startswith("3: 64 GiB, 64 GiB and no memory;")
