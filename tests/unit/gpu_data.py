"""A made-up campaign on GPUs: the facts of a real H100 and the values of research on it."""

import json

from tests.unit import campaign_data as make

from peakmark.cell import Cell
from peakmark.machine import gpu
from peakmark.machine.host import Host
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

SMI = make.DATA / "nvidia-smi"
"""Outputs of ``nvidia-smi -q -x`` on real machines, without their lists of supported clocks."""
NAME = "NVIDIA H100 80GB HBM3"
L2 = 50 << 20


def listed(count=1, name=NAME, **changes):
    """What ``gpubench --list`` prints of equal GPUs."""
    one = {
        "name": name, "sms": 132, "clock_hz": 1.98e9,
        "memory_clock_hz": 2.619e9, "bus_bits": 5120, "l2_bytes": L2, "compute": "9.0",
        "memory_bytes": 85017493504, "ecc": True, "mig": False,
    } | changes  # fmt: skip
    gpus = [
        {"index": number, "pci": f"0000:00:{number + 6:02x}.0", **one} for number in range(count)
    ]
    return {"driver": 13000, "gpus": gpus}


def host(tmp_path, answer, smi=None):
    """A machine whose gpubench and nvidia-smi print these texts; None for a program that fails."""

    def run(argv):
        if "nvidia-smi" in argv:
            return smi
        return None if answer is None else json.dumps(answer)

    return Host(tmp_path, run)


def facts(tmp_path, count=1, **changes):
    """The facts of a machine with H100s. nvidia-smi has printed the first one."""
    smi = (SMI / "h100.xml").read_text()
    found = gpu.collect(host(tmp_path, listed(count, **changes), smi), tmp_path / "gpubench")
    first = found["gpus"][0]
    for each in found["gpus"]:
        each |= {"generation": first["generation"], "width": first["width"]}
    return {**make.VM, "host": "node1", "gpu": found}


A100 = {
    "name": "NVIDIA A100-PCIE-40GB", "sms": 108, "clock_hz": 1.41e9, "memory_clock_hz": 1.215e9,
    "l2_bytes": 40 << 20, "compute": "8.0", "memory_bytes": 42505273344,
}  # fmt: skip


def facts_of_two_models(tmp_path, first="H100"):
    """The facts of a machine with an H100 and an A100, which is on a slower link."""
    a100 = 1 if first == "H100" else 0
    answer = listed(2)
    answer["gpus"][a100] |= A100
    found = gpu.collect(host(tmp_path, answer), tmp_path / "gpubench")
    for number, each in enumerate(found["gpus"]):
        each |= {"generation": 4 if number == a100 else 5, "width": 16, "nvlinks": [0, 0]}
    return {**make.VM, "host": "node1", "gpu": found}


def printed(of, values, clock=0.0, **more):
    """What gpubench prints of a cell, by the value of each GPU."""
    unit = {"LAUNCH": "s", "LADDER-LAT": "s"}.get(of.workload)
    is_copy = of.workload in ("RS", "WS", "RWS", "RWR", "LINK")
    unit = unit or ("B/s" if is_copy else "op/s")
    gpus = []
    for number, value in enumerate(values):
        pci = f"0000:00:{number + 6:02x}.0"
        gpus.append({"gpu": number, "pci": pci, "value": value, "clock_hz": clock, "seconds": 0.2})
    value = values[0] if unit == "s" else sum(values)
    return {
        "instrument": of.instrument, "version": "0.1.0", "workload": of.workload,
        "threads": len(values), "value": value, "unit": unit, "seconds": 0.2, "work": 0.2 * value,
        "work_unit": "any", "per_gpu": gpus, "isa": "", "clock_hz": clock,
        "checked": of.workload != "LAUNCH", "warnings": [],
    } | more  # fmt: skip


def records(instrument, workload, values, *, context=None, host="node1", **more):
    """Six records of one row; ``more`` are fields of the cell, then keys of what gpubench prints."""
    place = {name: more.pop(name) for name in ("variant", "block", "concurrency") if name in more}
    place = {"variant": "", "block": None, "concurrency": 1} | place
    made = []
    for repetition, factor in enumerate((1.0, 0.999, 1.001, 0.9995, 1.0005, 1.0)):
        of = Cell(
            "gpu", instrument, workload, **place, node="any", repetition=repetition, options={}
        )
        text = json.dumps(printed(of, [factor * value for value in values], **more))
        parsed = REGISTRY[instrument].parse(of, Completed((), 0, text + "\n", ""))
        rows = []
        for row in parsed.measurements:
            changes = {"variant": row.variant, "block": row.block, "details": dict(row.details)}
            rows.append(make.measurement(of, row.metric, row.value, unit=row.unit, **changes))
        made.append(make.record(of, rows, host=host, context=context))
    return made


def noise(moved):
    """The context of a calm run in which counters went on."""
    moment = {
        "load": 0.1, "clock_hz": None, "clock_limit_hz": None, "running": 0,
        "users": 0,
    }  # fmt: skip
    during = {
        "seconds": 1.0, "steal": 0.0, "others": 0.0, "busy": 0, "users": 0, "throttled_s": None,
        "hot": 0, "moved": moved,
    }  # fmt: skip
    return {"noise": {"before": moment, "during": during, "after": moment}}


RATES = {
    "FP64": (32.65e12, 1.98e9, "fma.rn.f64"),
    "FP32": (64.7e12, 1.98e9, "fma.rn.f32"),
    "FP16": (127.4e12, 1.98e9, "fma.rn.f16x2"),
    "INT32": (33.43e12, 1.98e9, "mad.lo.s32"),
    "TC-FP64": (66.3e12, 1.98e9, "mma.sync.m16n8k16.f64"),
    "TC-TF32": (485e12, 1.80e9, "wgmma.m64n256k8.tf32"),
    "TC-FP16": (882e12, 1.6349e9, "wgmma.m64n256k16.f16"),
    "TC-BF16": (920e12, 1.711e9, "wgmma.m64n256k16.bf16"),
    "TC-INT8": (1987e12, 1.84e9, "wgmma.m64n256k32.s8"),
    "TC-FP8": (1798e12, 1.6653e9, "wgmma.m64n256k32.e4m3"),
}
"""Rate of an H100, its clock under the work in Hz, and the instruction that ran (sustained)."""
LADDER = [
    [16384, 17.1e-9], [32768, 17.2e-9], [65536, 19.0e-9], [262144, 118e-9], [524288, 139e-9],
    [1 << 20, 139.4e-9], [8 << 20, 141e-9], [32 << 20, 263e-9], [256 << 20, 341e-9],
    [512 << 20, 344e-9],
]  # fmt: skip
"""Working sets and latencies of an H100."""


def h100():
    """Records of all rows of an H100, with the vendor's references beside them."""
    made = []
    for workload, (rate, clock, isa) in RATES.items():
        made += records("gpubench", workload, [rate], clock=clock, isa=isa, variant="sustained")
    burst = {"clock": 1.8e9, "isa": "wgmma.m64n256k16.f16", "variant": "burst"}
    made += records("gpubench", "TC-FP16", [971e12], **burst)
    made += records("cublas", "TC-FP16", [655e12], isa="cublasGemmEx", variant="sustained")
    for workload, rate in {"RS": 3.177e12, "WS": 3.275e12, "RWS": 2.901e12}.items():
        made += records("gpubench", workload, [rate])
    made += records("cuda-memcpy", "RWS", [3.021e12])
    for variant, rate in {"to": 53.0e9, "from": 54.5e9, "both": 76.9e9}.items():
        made += records("gpubench", "LINK", [rate], variant=variant)
    made += records("cuda-memcpy", "LINK", [55.3e9], variant="to")
    made += records("gpubench", "LAUNCH", [18.3e-6])
    made += records("gpubench", "LADDER-LAT", [344e-9], l2_bytes=L2, points=LADDER)
    return made
