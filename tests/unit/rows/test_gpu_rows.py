"""Rows of GPUs: warnings on GPUs that are slow or unwell, and nodes with too few."""

import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import gpu_runs
from tests.unit.machine import hosts

from peakmark.rows import schema
from peakmark.views import fleet_report

FP64 = {"clock": 1.98e9, "isa": "fma.rn.f64", "variant": "sustained"}


def texts(frames, code):
    found = frames.warnings[frames.warnings["code"].eq(code)]
    return found["text"].tolist()


def test_a_gpu_that_is_slow_in_every_repetition_is_named(tmp_path):
    made = gpu_runs("gpubench", "FP64", [32e12, 32e12, 29e12, 32e12], concurrency=4, **FP64)
    frames = make.frames(tmp_path / "c", made, machines={"node1": hosts.gpu_facts(tmp_path, 4)})
    assert texts(frames, "slow-gpu") == [
        f"GPU 2 ({hosts.NAME}, 0000:00:08.0) is 9.4% slower than the other GPUs of its model on the node in every repetition"
    ]
    even = gpu_runs("gpubench", "FP64", [32e12, 31.5e12], concurrency=2, **FP64)
    frames = make.frames(tmp_path / "even", even, machines={"node1": hosts.gpu_facts(tmp_path, 4)})
    assert texts(frames, "slow-gpu") == []


def test_a_gpu_of_a_slower_model_is_not_slow(tmp_path):
    """On a node with an H100 and an A100, whose memories have no common limit."""
    made = gpu_runs("gpubench", "RS", [3.2e12, 1.4e12], concurrency=2)
    machines = {"node1": hosts.facts_of_two_models(tmp_path)}
    frames = make.frames(tmp_path / "c", made, machines=machines)
    (row,) = schema.lines(frames.rows)
    assert row.limit is None and row.share is None
    assert texts(frames, "slow-gpu") == []


def test_a_slow_gpu_is_named_with_its_node(tmp_path):
    made = []
    for name, slow in (("node1", 32e12), ("node2", 29e12)):
        for workload in ("FP64", "FP32"):
            rates = [32e12, 32e12, slow, 32e12]
            for record in gpu_runs("gpubench", workload, rates, concurrency=4, host=name, **FP64):
                record["cell"]["node"] = name
                made.append(record)
    machines = {name: {**hosts.gpu_facts(tmp_path, 4), "host": name} for name in ("node1", "node2")}
    frames = make.frames(tmp_path / "c", made, machines=machines)
    text = (
        f"GPU 2 ({hosts.NAME}, 0000:00:08.0) of node2 is up to 9.4% slower than the other GPUs"
        " of the node, in 2 rows."
    )
    assert [*fleet_report.slow_gpus(frames)] == [text]
    assert fleet_report.typeset(text) in fleet_report.describe(frames)


@pytest.mark.parametrize(("compute", "workload", "isa"), [
    ("10.0", "TC-FP16", "mma.sync.m16n8k16.f16"),
    ("10.0", "FP32", "fma.rn.f32"),
    ("12.0", "TC-FP8", "mma.sync.m16n8k32.e4m3"),
    ("13.0", "FP64", "fma.rn.f64"),
])  # fmt: skip
def test_a_chip_with_a_faster_instruction_has_no_share_and_names_what_ran(
    tmp_path, compute, workload, isa
):
    made = gpu_runs("gpubench", workload, [300e12], clock=1.9e9, isa=isa, variant="sustained")
    machines = {"node1": hosts.gpu_facts(tmp_path, compute=compute)}
    frames = make.frames(tmp_path / "c", made, machines=machines)
    (row,) = schema.lines(frames.rows)
    assert row.limit is None and row.efficiency is None
    assert row.limit_reason.startswith(f"{isa} ran, which may not be the fastest instruction: ")


COUNTERS = {
    "dram_correctable": ("hardware-errors", "ok"),
    "dram_uncorrectable": ("hardware-errors", "care"),
    "remapped_row_unc": ("hardware-errors", "care"),
    "hw_therm_slowdown": ("slowed-down", "care"),
    "hw_power_brake": ("slowed-down", "care"),
    "replay_counter": ("pcie-link", "ok"),
    "lost_lanes": ("pcie-link", "care"),
}
"""Counter of a GPU -> code and weight of the warning if it went on."""


def test_each_counter_that_went_on_is_a_warning(tmp_path):
    context = make.noise(moved={f"0000:00:06.0 {counter}": 3 for counter in COUNTERS})
    made = gpu_runs("gpubench", "FP64", [32e12], context=context, **FP64)
    frames = make.frames(tmp_path / "c", made, machines={"node1": hosts.gpu_facts(tmp_path)})
    found = frames.warnings[frames.warnings["code"].isin([code for code, _ in COUNTERS.values()])]
    assert sorted(zip(found["code"], found["trust"], strict=True)) == sorted(COUNTERS.values())
    assert found["text"].str.contains("0000:00:06.0").all()


def test_a_gpu_without_the_unit_has_no_row_and_one_without_a_driver_says_why(tmp_path):
    made = gpu_runs("gpubench", "TC-FP8", [32e12], variant="sustained")[:1]
    made += gpu_runs("gpubench", "FP64", [32e12], **FP64)[:1]
    for entry in made:
        entry |= {
            "status": "unavailable",
            "reason": "NVIDIA's driver is not installed",
            "measurements": [],
        }
    (row,) = schema.lines(make.frames(tmp_path / "c", made).rows)
    assert (row.workload, row.n, row.reason) == ("FP64", 0, "NVIDIA's driver is not installed")


def test_a_node_that_lost_a_gpu_is_named(tmp_path):
    made = []
    for name in ("node1", "node2", "node3"):
        for record in gpu_runs("gpubench", "FP64", [32e12], host=name, **FP64):
            record["cell"]["node"] = name
            made.append(record)
    machines = {name: {**hosts.gpu_facts(tmp_path, 8), "host": name} for name in ("node1", "node2")}
    machines["node3"] = {**hosts.gpu_facts(tmp_path, 7), "host": "node3"}
    frames = make.frames(tmp_path / "c", made, machines=machines)
    text = "node3 has 7 GPUs, other nodes of its class 8 GPUs: see dmesg and nvidia-smi there."
    assert fleet_report.lone_limits(frames) == [text]
    assert text in fleet_report.describe(frames)
