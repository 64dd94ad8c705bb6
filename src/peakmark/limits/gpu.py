"""Limits of GPUs: operations of the SMs at the clock under load, memory bus, and PCI Express link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peakmark import data
from peakmark.formatting import plural, quantity
from peakmark.limits.base import Limit, Question

TRANSFERS_PER_CYCLE = 2
"""Transfers per memory pin in each cycle of the clock that the driver reports (double data rate)."""
_PCIE = {
    1: (2.5e9, 8 / 10),
    2: (5e9, 8 / 10),
    3: (8e9, 128 / 130),
    4: (16e9, 128 / 130),
    5: (32e9, 128 / 130),
    6: (64e9, 242 / 256),
}
"""Generation of PCI Express -> (transfers per second and lane, share of the bits that carry data)."""
_DRIVER_SOURCE = "attributes of the GPU, by NVIDIA's driver"
"""Source of the limit of memory, as reports cite it."""
_INTEGRATED = ("5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1")
"""Compute capabilities of GPUs that use the memory of a CPU: Jetson, Drive and GB10 (NVIDIA, CUDA GPUs)."""

Gpus = Sequence[Mapping[str, Any]]
"""Facts of each GPU that a row uses."""


def limit(question: Question) -> Limit:
    """Return the limit of a GPU row, in operations or bytes per second.

    A row over GPUs of several models has no limit, and neither has a latency.
    """
    # A row over n GPUs uses the first n of the node.
    gpus = (question.fact("gpu", "gpus") or [])[: question.concurrency]
    if not gpus:
        return question.unknown("facts")
    # Each name once, in the order of the GPUs.
    models = dict.fromkeys(str(gpu["name"]) for gpu in gpus)
    if len(models) > 1:
        return question.unknown("models", models=", ".join(models))
    if question.metric == "rate":
        return _rate(question, gpus)
    if question.metric == "throughput":
        return _memory(question, gpus)
    if question.metric == "link_throughput":
        return _link(question, gpus)
    return question.unknown("shape")


def _rate(question: Question, gpus: Gpus) -> Limit:
    """Return the operations per second of all SMs at the clock of ``question``. All GPUs are of one model."""
    compute, workload = str(gpus[0]["compute"]), question.workload
    ran = question.isa or "an unknown instruction"
    line = _of_chip(compute)
    if line is None:
        return question.unknown("chip", ran=ran, compute=compute)
    # The line has ``128``, or ``2048 tcgen05`` if only the instruction tcgen05 reaches the number.
    operations, _, needed_isa = line[workload].partition(" ")
    if not operations:
        processor = f"a GPU of compute capability {compute}"
        return question.unknown("operations", workload=workload, processor=processor)
    # Another instruction cannot reach the number. An empty ``needed_isa`` fits every instruction.
    if not ran.startswith(needed_isa):
        return question.unknown("instruction", ran=ran, fastest=needed_isa)
    if question.clock is None:
        return question.unknown("clock")
    clock = question.clock
    sms = sum(int(gpu["sms"]) for gpu in gpus)
    value = sms * float(operations) * clock.hz
    which = "clock under the work" if clock.name == "observed" else f"{clock.name} clock"
    formula = (
        f"{plural(sms, 'SM')} x {quantity(clock.hz, 'Hz')} ({which})"
        f" x {operations} operations per cycle and SM = {quantity(value, 'OP/s')}"
    )
    return question.limit(value, formula, line["source"], clock.origin, clock=clock.name)


def _of_chip(compute: str) -> Mapping[str, str] | None:
    """Return the line of ``gpu.csv`` for a compute capability; None if the file has no such line."""
    for line in data.table("gpu"):
        if line["compute"] == compute:
            return line
    return None


def _memory(question: Question, gpus: Gpus) -> Limit:
    """Return the bytes per second that the memory buses of all GPUs can move, from the facts of the first GPU."""
    clock, bits = gpus[0]["memory_clock_hz"], gpus[0]["bus_bits"]
    if not clock or not bits:
        return question.unknown("facts")
    # An integrated GPU uses the memory of the CPU. As its memory clock, the driver shows the clock of the GPU,
    # or one from which the rate of the memory does not follow.
    if str(gpus[0]["compute"]) in _INTEGRATED or clock == gpus[0]["clock_hz"]:
        return question.unknown("integrated")
    value = len(gpus) * clock * TRANSFERS_PER_CYCLE * bits / 8
    formula = (
        f"{plural(len(gpus), 'GPU')} x {quantity(clock, 'Hz')} (memory clock) x {TRANSFERS_PER_CYCLE}"
        f" transfers x {bits} bit / 8 = {quantity(value, 'B/s')}"
    )
    return question.limit(value, formula, _DRIVER_SOURCE, "read")


def _link(question: Question, gpus: Gpus) -> Limit:
    """Return the bytes per second of the links between GPUs, or of the links to the host.

    Between GPUs (variant ``peer``) each one sends to the next, and the last one to the first.
    """
    if question.variant != "peer":
        return _pcie(question, gpus)
    counts = _nvlinks_of(gpus)
    if None in counts:
        return question.unknown("peer")
    if len(counts) > 1:
        return question.unknown("unlike-pairs")
    # GPUs without NVLink between them communicate over PCI Express.
    nvlinks = counts.pop()
    return _nvlink(question, gpus, nvlinks) if nvlinks else _pcie(question, gpus)


def _pcie(question: Question, gpus: Gpus) -> Limit:
    """Return the bytes per second that the PCI Express links of all GPUs carry after line coding.

    The variant ``both`` moves data in both directions at the same time, so its limit is twice as high.
    """
    ways = 2 if question.variant == "both" else 1
    directions = " x 2 directions" if ways == 2 else ""
    links = {(gpu["generation"], gpu["width"]) for gpu in gpus}
    generation, lanes = links.pop()
    # ``links`` still has an element if the GPUs have links of several kinds.
    if links or generation not in _PCIE or not lanes:
        return question.unknown("link", interface="PCI Express")
    transfers, coding = _PCIE[generation]
    value = len(gpus) * ways * transfers * lanes * coding / 8
    formula = (
        f"{plural(len(gpus), 'GPU')} x PCIe {transfers / 1e9:g} GT/s x {lanes} lanes"
        f" x {coding:.4g} line coding / 8{directions} = {quantity(value, 'B/s')}"
    )
    source = "generation and lanes of the link, by nvidia-smi or the driver"
    return question.limit(value, formula, source, "read")


def _nvlinks_of(gpus: Gpus) -> set[int | None]:
    """Return the numbers of NVLinks from each GPU to the next one, and from the last one to the first.

    A number is 0 for a pair without NVLink, and None if it is unknown.
    """
    counts: set[int | None] = set()
    for number, gpu in enumerate(gpus):
        following = (number + 1) % len(gpus)
        # ``nvlinks`` has the number of links to each GPU of the node.
        known = gpu.get("nvlinks") or [None] * len(gpus)
        counts.add(known[following])
    return counts


def _nvlink(question: Question, gpus: Gpus, links: int) -> Limit:
    """Return the bytes per second over NVLink, if each GPU sends to the next at the same time."""
    compute = str(gpus[0]["compute"])
    line = _of_chip(compute)
    if line is None or not line["NVLink"]:
        return question.unknown("nvlink", compute=compute)
    rate = 1e9 * float(line["NVLink"])  # gpu.csv has the GB/s of one NVLink in one direction
    value = len(gpus) * links * rate
    formula = (
        f"{plural(len(gpus), 'GPU')} x {plural(links, 'NVLink')} x {quantity(rate, 'B/s')}"
        f" = {quantity(value, 'B/s')}"
    )
    source = "NVLinks by nvidia-smi, their rate by NVIDIA's white paper of the GPU"
    return question.limit(value, formula, source, "read")
