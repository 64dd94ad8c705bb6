"""Limits of a disk: its datasheet by the site file, else the link it hangs on."""

from __future__ import annotations

from peakmark.limits.base import Limit, Question
from peakmark.messages import message
from peakmark.units import quantity


def limit(question: Question) -> Limit:
    """B/s, operations per second or seconds per operation of the disk behind the scratch directory."""
    given = (question.given("disk", question.metric) or {}).get(question.workload)
    model = question.given("disk", "model") or question.fact("storage", "model")
    if given is not None:
        formula = f"{quantity(given, question.unit)} for {question.workload} by the datasheet of {model or 'the disk'}"
        return question.limit(float(given), formula, question.site_source("disk"), "site")
    interface = question.fact("storage", "interface")
    if interface == "ram":
        return question.unknown(
            f"{question.fact('storage', 'filesystem')} is a file system in memory: set scratch to a directory on a disk"
        )
    datasheet = (f"disk.{question.metric}.{question.workload}", ", from the disk's datasheet")
    if question.metric != "throughput":
        what = "IOPS" if question.metric == "iops" else "latency"
        return question.unknown(f"a link does not bound {what} usefully", *datasheet)
    value = question.fact("storage", "interface_limit")
    if value is not None:
        formula, source = (
            question.fact("storage", "interface_limit_formula"),
            "link speed read from this machine",
        )
        said = {"remarks": (message("limit-of-interface"),), "detail": "interface limit"}
        return question.limit(float(value), str(formula), source, "read", **said)
    seen = {
        None: "the device behind the scratch directory is not known",
        "network": f"{question.fact('storage', 'filesystem')} is a network file system: its disks cannot be seen",
        "virtio": "a virtual disk tells no limit",
    }
    return question.unknown(seen.get(interface, f"the {interface} link tells no speed"), *datasheet)
