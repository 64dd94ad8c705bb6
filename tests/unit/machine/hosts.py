"""A host that is a folder: files as the kernel shows them, and tools that print real outputs."""

import json

from tests.unit import campaign_data as make

from peakmark.machine import gpu
from peakmark.machine.host import Host

DATA = make.DATA
SMI = DATA / "nvidia-smi"
"""Outputs of ``nvidia-smi -q -x`` on real machines, without their lists of supported clocks."""
NAME = "NVIDIA H100 80GB HBM3"


def listed(text):
    """Files from lines of a path, a blank, and the file's text."""
    lines = (line.strip().partition(" ") for line in text.splitlines() if line.strip())
    return {path: content for path, _, content in lines}


def files_of(name):
    """Files of a machine that is listed in ``tests/unit/data/hosts``."""
    return listed((DATA / "hosts" / f"{name}.txt").read_text())


def host(root, files="", tools=None):
    """A machine of files below ``root`` (``->target`` makes a link), and of what its tools print by
    words of their command lines.
    """
    for name, text in (listed(files) if isinstance(files, str) else files).items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text)

    def run(argv):
        line, outputs = " ".join(argv), dict(tools or {})
        return next((text for words, text in outputs.items() if words in line), None)

    return Host(root, run)


# -- GPUs


def gpus(count=1, name=NAME, **changes):
    """What ``gpubench --list`` prints of equal GPUs."""
    one = {
        "name": name, "sms": 132, "clock_hz": 1.98e9,
        "memory_clock_hz": 2.619e9, "bus_bits": 5120, "l2_bytes": make.L2, "compute": "9.0",
        "memory_bytes": 85017493504, "ecc": True, "mig": False,
    } | changes  # fmt: skip
    every = [
        {"index": number, "pci": f"0000:00:{number + 6:02x}.0", **one} for number in range(count)
    ]
    return {"driver": 13000, "gpus": every}


def gpu_host(tmp_path, answer, smi=None):
    """A machine whose gpubench and nvidia-smi print these texts; None for a program that fails."""
    listed_gpus = None if answer is None else json.dumps(answer)
    return host(tmp_path, "", {"nvidia-smi": smi, "gpubench": listed_gpus})


def gpu_facts(tmp_path, count=1, **changes):
    """The facts of a machine with H100s. nvidia-smi has printed the first one."""
    smi = (SMI / "h100.xml").read_text()
    found = gpu.collect(gpu_host(tmp_path, gpus(count, **changes), smi), tmp_path / "gpubench")
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
    answer = gpus(2)
    answer["gpus"][a100] |= A100
    found = gpu.collect(gpu_host(tmp_path, answer), tmp_path / "gpubench")
    for number, each in enumerate(found["gpus"]):
        each |= {"generation": 4 if number == a100 else 5, "width": 16, "nvlinks": [0, 0]}
    return {**make.VM, "host": "node1", "gpu": found}
