"""Checks of the hardware that measured: its error counters, and its links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peakmark.analysis import core_checks
from peakmark.analysis.row import Measured
from peakmark.messages import Message, Severity, Value, message

_EVERYWHERE = {
    "memory-corrected": ("ce_count",),
    "memory-uncorrected": ("ue_count",),
    "machine-check": ("MCE", "THR", "DFR"),
    "pcie-corrected": ("aer_dev_correctable",),
    "pcie-uncorrected": ("aer_dev_nonfatal", "aer_dev_fatal"),
    "power-limited": ("package_power_limit_count",),
    "disk-hot": ("temp1_alarm",),
}
_OF_NETWORK = {
    "network-errors": ("rx_errors", "tx_errors"),
    "network-drops": ("rx_dropped", "tx_dropped"),
    "retransmits": ("RetransSegs",),
    "udp-overflow": ("RcvbufErrors",),
}
"""Code of the warning -> the kernel's counters. Those of the network say nothing of other rows."""
_NOTES = ("pcie-corrected", *_OF_NETWORK)
"""What healthy machines do too."""


def counters(row: Measured) -> Iterator[Message]:
    """What counters of errors and throttling went on by, on the row's nodes."""
    codes = _EVERYWHERE | (_OF_NETWORK if row.subsystem == "network" else {})
    code_of = {name: code for code, names in codes.items() for name in names}
    yield from _counters(code_of, row.noises, "")
    for host, noises in row.server_noises.items():
        yield from _counters(code_of, noises, message("server", hosts=frozenset([host])))


def _counters(
    code_of: Mapping[str, str], noises: Sequence[Mapping[str, Any]], where: Value
) -> Iterator[Message]:
    runs = []
    for noise in noises:
        moved: Counter[tuple[str, str]] = Counter()
        for name, count in ((noise.get("during") or {}).get("moved") or {}).items():
            device, _, counter = name.partition(" ")
            if counter in code_of:
                moved[code_of[counter], device] += count
        runs.append(moved)
    for code, device in dict.fromkeys(each for moved in runs for each in moved):
        counts = [moved[code, device] for moved in runs if moved[code, device]]
        level = Severity.NOTE if code in _NOTES else Severity.UNSURE
        often = core_checks.in_how_many(len(counts), len(noises), where) or where
        yield message(code, level, device=device, count=sum(counts), often=often)


def slow_link(row: Measured) -> Iterator[Message]:
    """A device whose PCI Express link is narrower or slower than both ends could be: the limit is
    that of the link as it is.
    """
    part = {"disk": "storage", "network": "network"}.get(row.subsystem, "")
    link = row.fact(part, "pcie")
    if link and any(link[f"current_{name}"] != link[f"max_{name}"] for name in ("width", "speed")):
        name = row.fact(part, "device" if part == "storage" else "interface")
        yield message("slow-link", device=name, **link)
