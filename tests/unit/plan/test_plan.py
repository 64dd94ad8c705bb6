import os
import re
from pathlib import Path
from typing import Any

import pytest

from peakmark.catalogue import KERNELS, WORKLOADS
from peakmark.config import overrides
from peakmark.errors import ConfigError
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.plan import grids, jobs, plan, plan_text
from peakmark.plan.cluster import Cluster
from peakmark.resources import ROOT
from peakmark.tools import references
from peakmark.tools.programs import rambench

GRID = {
    "workloads": ["RS", "WS"],
    "concurrency": [1, 2],
    "blocks": ["1MiB", "100MiB"],
    "references": {"iozone": {}, "fio": {}},
}


PINGED: dict[str, Any] = {"workloads": ["LAT-TCP"], "concurrency": [1], "blocks": ["1B"]}
PINGED["references"] = {"ping": {}, "qperf": {}}


@pytest.fixture
def every_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH on which every reference tool is found: planning only asks whether there is an
    executable.
    """
    for name in ("xhpl", "pmbw", "likwid-bench", "iozone", "fio", "iperf3", "qperf", "ping"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def make(**changes: Any) -> plan.Plan:
    return plan.make({"campaign": "t", "repetitions": 3, **changes})


def test_own_cells_are_the_whole_grid() -> None:
    made = make(cpu=[{"workloads": ["DP", "SP"], "concurrency": [1, 2]}])
    assert len(made.cells) == 2 * 2 * 3
    assert {cell.instrument for cell in made.cells} == {"cpubench"}


def test_references_stand_only_beside_rows_they_can_measure(every_tool: Path) -> None:
    made = make(disk=[GRID])
    iozone = {cell.point for cell in made.cells if cell.instrument == "iozone"}
    fio = {cell.point for cell in made.cells if cell.instrument == "fio"}
    # One execution fills all patterns, records end at 16 MiB.
    assert iozone == {"ALL-psync_1MiB_x1", "ALL-psync_1MiB_x2"}
    assert len(fio) == 8


def test_fio_fills_the_rows_whose_records_this_build_of_iozone_refuses(every_tool: Path) -> None:
    (every_tool / "iozone").write_text(
        "#!/bin/sh\necho 'Error: maximum record size 1048576 kB is greater than maximum buffer size 4096 kB'\n"
    )
    grid = {**GRID, "blocks": ["4MiB", "8MiB"], "concurrency": [2]}
    grid["references"] = {"iozone": {"repetitions": 1}}
    made = make(disk=[grid])
    iozone = [cell.point for cell in made.cells if cell.instrument == "iozone"]
    assert iozone == ["ALL-psync_4MiB_x2"]
    filling = [cell for cell in made.cells if cell.instrument == "fio"]
    assert {cell.point for cell in filling} == {"RS-psync_8MiB_x2", "WS-psync_8MiB_x2"}
    assert {cell.repetition for cell in filling} == {0}
    for cell in filling:
        assert cell.options["instead_of"] == "iozone"
        assert cell.options["total"] == cell.options["size"]  # as much data as IOZone moves
    assert re.search("4MiB; larger .*fio", plan_text.describe(made))
    beside = make(disk=[{**grid, "references": {"iozone": {}, "fio": {}}}])
    assert not any("instead_of" in cell.options for cell in beside.cells)
    for left_out in ("iozone", "fio"):
        without = make(disk=[grid], tools={left_out: False})
        assert not [cell for cell in without.cells if cell.instrument == "fio"], left_out


def test_ping_is_measured_once(every_tool: Path) -> None:
    grid = {**PINGED, "workloads": ["LAT-TCP", "LAT-UDP"], "concurrency": [1, 2]}
    made = make(network=[grid])
    assert [cell.point for cell in made.cells if cell.instrument == "ping"] == ["LAT-ICMP_none_x1"]
    assert [cell.point for cell in made.cells if cell.instrument == "qperf"] == ["ALL_1B_x1"]


def test_what_a_program_does_not_do_otherwise_is_not_measured_again(every_tool: Path) -> None:
    """ping sends so many packets, qperf measures so long; neither draws numbers or warms up."""

    def specs(**more: Any) -> dict[str, str]:
        made = make(network=[PINGED], repetitions=1, **more)
        return {cell.instrument: cell.spec() for cell in made.cells}

    before = specs()
    after = {key: specs(**{key: 9}) for key in ("seed", "warmup", "seconds")}
    expected = {"seed": {"netbench"}, "warmup": {"netbench"}, "seconds": {"netbench", "qperf"}}
    for key, new in after.items():
        assert {name for name in before if new[name] != before[name]} == expected[key]


def test_a_missing_tool_is_no_cell_but_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    made = make(disk=[GRID])
    assert {cell.instrument for cell in made.cells} == {"diskbench"}
    assert {one.instrument for one in made.references if one.reason} == {"fio", "iozone"}


def test_a_tool_can_be_left_out(every_tool: Path) -> None:
    made = make(disk=[GRID], tools={"fio": False})
    assert "fio" not in {cell.instrument for cell in made.cells}
    assert "tools.fio" in str(made.references[0].reason)


def test_on_nodes_every_reference_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    made = make(disk=[GRID], tools_on="nodes")
    assert {"iozone", "fio"} <= {cell.instrument for cell in made.cells}


def test_repetitions_are_interleaved_in_a_seeded_order() -> None:
    grid = [{"workloads": ["DP", "SP", "HP", "QP"], "concurrency": [1, 2]}]
    first, again, other = (make(cpu=grid, seed=seed).cells for seed in (1, 1, 2))
    assert [cell.id for cell in first] == [cell.id for cell in again]
    assert [cell.id for cell in first] != [cell.id for cell in other]
    assert [cell.repetition for cell in first] == sorted(cell.repetition for cell in first)
    points = [[cell.point for cell in first if cell.repetition == number] for number in range(3)]
    assert points[0] != points[1]


def test_the_same_point_twice_with_different_options_is_refused() -> None:
    grid = {"workloads": ["DP"], "concurrency": [1]}
    with pytest.raises(ConfigError, match="two grids of cpu"):
        make(cpu=[{**grid, "seconds": 1}, {**grid, "seconds": 2}])


def test_latency_of_memory_has_no_working_set() -> None:
    grid = {"workloads": ["LAT"], "variants": ["pool"], "concurrency": [1], "blocks": ["16KiB"]}
    made = make(memory=[grid])
    assert {cell.point for cell in made.cells} == {"LAT_16KiB_x1"}


def test_a_total_is_named_after_what_is_counted() -> None:
    cpu = {"workloads": ["DP"], "concurrency": [1], "total": 1e12}
    memory = {
        "workloads": ["RWS", "LAT"],
        "concurrency": [1],
        "blocks": ["1KiB"],
        "total": "100GiB",
    }
    network = {"workloads": ["LAT-TCP"], "concurrency": [1], "blocks": ["1B"], "total": 1000000}
    made = make(cpu=[cpu], memory=[memory], network=[network])
    options = {cell.workload: cell.options for cell in made.cells}
    assert options["DP"]["operations"] == 10**12
    assert options["RWS"]["total"] == 100 << 30
    assert "accesses" in options["LAT"]
    assert options["LAT-TCP"]["round_trips"] == 10**6


def test_quick_shows_every_workload_and_every_instrument(every_tool: Path) -> None:
    made = plan.make(overrides.read([ROOT / "config/presets/quick.yaml"]))
    own = [cell for cell in made.cells if cell.instrument in KERNELS.values()]
    for subsystem, workloads in WORKLOADS.items():
        mine = [cell for cell in own if cell.subsystem == subsystem]
        assert {cell.workload for cell in mine} == set(workloads)
        # Whether this machine has more than one core.
        more = grids.alike([1, "cores"], on_this_machine=True)["cores"] != 1
        assert len({cell.asked for cell in mine}) >= (2 if more else 1)
        assert {cell.repetition for cell in mine} == {0, 1, 2}
    assert {cell.instrument for cell in made.cells} == set(KERNELS.values()) | set(references())


def test_the_plan_in_words_names_cells_tools_space_and_time(every_tool: Path) -> None:
    made = make(disk=[GRID], tools={"fio": False})
    text = plan_text.describe(made)
    for word in (f"{len(made.cells)} cells", "iozone", "tools.fio", "GB at most", "about"):
        assert word in text
    listed = plan_text.describe(made, every_cell=True)
    assert all(cell.id in listed for cell in made.cells)


def test_the_site_is_read_when_planning_and_kept_in_the_plan() -> None:
    grid = [{"workloads": ["DP"], "concurrency": [1]}]
    made = make(cpu=grid, site=str(ROOT / "config/sites/hyperion.yaml"))
    assert made.to_json()["config"]["site_facts"]["name"]
    with pytest.raises(ConfigError, match=r"absent\.yaml cannot be read"):
        make(cpu=grid, site="absent.yaml")


def test_a_word_is_planned_as_a_word_and_numbers_come_with_the_node(every_tool: Path) -> None:
    grid: list[dict[str, Any]] = [{"workloads": ["DP"], "concurrency": [1, "socket", "cores"]}]
    grid[0]["references"] = {"hpl": {"concurrency": ["cores"]}}
    on_nodes = Cluster("p", "any", ("any",), cpus=8, memory=1 << 20, limit=None, count=1)
    made = plan.make({"cpu": grid, "repetitions": 1}, on_nodes)
    assert sorted(cell.id for cell in made.cells) == [
        *(f"cpu/cpubench/DP_none_x{asked}/any/0" for asked in (1, "cores", "socket")),
        "cpu/hpl/DP_none_xcores/any/0",
    ]
    words = [cell.to_json()["concurrency"] for cell in made.cells if cell.word == "cores"]
    assert words == ["cores"] * 2
    assert jobs.threads(made.cells, made) == 8  # what the word means there is not known before


def test_what_a_word_says_here_is_not_measured_twice() -> None:
    cores = topology.resolve(topology.read(Host()), os.sched_getaffinity(0), "cores")
    assert grids.alike([cores, "cores"], on_this_machine=True) == {cores: cores, "cores": cores}
    assert grids.alike([cores, "cores"], on_this_machine=False) == {cores: cores, "cores": "cores"}
    only = grids.alike([cores + 1, "cores", "cpus", "socket"], on_this_machine=True)
    assert only["cores"] == "cores" and set(only) == {cores + 1, "cores", "cpus", "socket"}


def test_own_kernel_and_pmbw_walk_a_pool_of_one_size_that_both_can(every_tool: Path) -> None:
    grid = {"workloads": ["RS"], "variants": ["pool"], "blocks": ["1MiB"], "concurrency": [1]}
    beside = {**grid, "references": {"pmbw": {}, "likwid-bench": {}}}
    chosen = [cell.options.get("power_of_two") for cell in make(memory=[beside]).cells]
    assert len(chosen) > 3 and set(chosen) == {True}
    for other in (
        grid,
        {**beside, "pool": "1GiB"},
        {**beside, "variants": ["block", "pool"], "references": {"pmbw": {"variants": ["block"]}}},
    ):
        assert not any("power_of_two" in cell.options for cell in make(memory=[other]).cells)


def test_pools_and_placement_are_options_of_the_cells_that_have_them() -> None:
    grid = {"workloads": ["RWS"], "variants": ["pool"], "blocks": ["1MiB"], "concurrency": ["cpus"]}
    for pool, planned in ((None, "auto"), ("auto", "auto"), ("1GiB", 1 << 30)):
        made = plan.make({"memory": [grid | ({"pool": pool} if pool else {})], "repetitions": 1})
        assert [cell.options["pool"] for cell in made.cells] == [planned]
        assert "placement" not in made.cells[0].options
    spread = plan.make({"memory": [grid], "repetitions": 1, "placement": "spread"})
    assert spread.cells[0].options["placement"] == "spread"


def test_the_area_of_a_latency_may_be_left_to_the_node() -> None:
    grid = {"workloads": ["LAT"], "blocks": ["16KiB", "auto"], "concurrency": [1, 2]}
    grid["references"] = {"pmbw": {}}  # type: ignore[assignment]
    made = plan.make({"memory": [grid], "repetitions": 1, "reference_repetitions": 1})
    assert {cell.id.split("/")[2] for cell in made.cells} == {
        f"LAT_{block}_x{threads}" for block in ("16KiB", "auto") for threads in (1, 2)
    }
    assert "16KiB auto" in plan_text.describe(made)
    for other in ({"workloads": ["LAT", "RS"]}, {"workloads": ["RS"]}):
        with pytest.raises(ConfigError, match=r"memory\[0\].blocks has 'auto'"):
            plan.make({"memory": [grid | other]})
    with pytest.raises(ConfigError, match=r"disk\[0\].blocks has 'auto'"):
        plan.make({"disk": [{"workloads": ["RS"], "blocks": ["auto"], "concurrency": [1]}]})


def test_words_are_for_what_runs_on_cores() -> None:
    disk = {"workloads": ["RS"], "blocks": ["1MiB"], "concurrency": ["cores"]}
    with pytest.raises(ConfigError, match=r"disk\[0\].concurrency has 'cores'"):
        plan.make({"disk": [disk]})
    with pytest.raises(ConfigError, match=r"cpu\[0\].concurrency\[0\] is .*core"):
        plan.make({"cpu": [{"workloads": ["DP"], "concurrency": ["core"]}]})


def test_stores_are_an_option_where_they_are_asked_for_and_in_no_identity() -> None:
    grid = {"workloads": ["WS"], "variants": ["pool"], "concurrency": [1], "blocks": ["1MiB"]}
    [plain], [asked] = (
        [cell for cell in make(memory=[one]).cells if cell.repetition == 0]
        for one in (grid, {**grid, "store": "temporal"})
    )
    assert plain.id == asked.id
    assert "store" not in plain.options and asked.options["store"] == "temporal"


def test_streaming_and_ordinary_stores_of_a_pool_are_two_rows_where_both_are_asked_for() -> None:
    grid = {"workloads": ["WS", "RWS"], "variants": ["pool", "pool-temporal"], "concurrency": [1], "blocks": ["1MiB"],
            "references": {"likwid-bench": {}}}  # fmt: skip
    cells = [cell for cell in make(memory=[grid]).cells if cell.repetition == 0]
    own = {cell.variant: rambench.store_of(cell) for cell in cells if cell.instrument == "rambench"}
    assert own == {"pool": "streaming", "pool-temporal": "temporal"}
    assert {cell.point for cell in cells} >= {"WS-pool_1MiB_x1", "WS-pool-temporal_1MiB_x1"}
    for cell in cells:
        assert cell.options["pool"] == "auto"
        assert rambench.store_of(cell) == own[cell.variant]  # of the references too
    with pytest.raises(ConfigError, match="no variant pool-temporal for RS: it has block, pool"):
        make(memory=[{**grid, "workloads": ["RS"]}])


def test_a_cell_has_no_option_that_its_tool_does_not_heed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed option makes a cell be measured again: ping counts its packets itself."""
    monkeypatch.chdir(tmp_path)
    grid = {**PINGED, "references": {"ping": {"count": 10}, "qperf": {}}}
    values = {"campaign": "c", "cpu": [], "memory": [], "disk": [], "network": [grid]}
    tools = {"ping": "/bin/ping", "qperf": "/bin/qperf"}
    made = plan.make({**values, "tools": tools, "tools_on": "nodes"})
    options = {cell.instrument: set(cell.options) for cell in made.cells}
    assert not options["ping"] & {"seconds", "warmup", "seed"} and "count" in options["ping"]
    assert not options["qperf"] & {"warmup", "seed"} and "seconds" in options["qperf"]
