"""Limits of a disk: its datasheet by the site file, else the link it hangs on."""

from __future__ import annotations

from peakmark.limits.base import Limit, Question
from peakmark.messages import message
from peakmark.units import quantity


def limit(question: Question) -> Limit:
    """B/s, operations per second or seconds per operation of the disk behind the scratch directory."""
    metric, workload = question.metric, question.workload
    stated = (question.stated("disk", metric) or {}).get(workload)
    if stated is not None:
        model = question.stated("disk", "model") or question.fact("storage", "model") or "the disk"
        formula = f"{quantity(stated, question.unit)} for {workload} by the datasheet of {model}"
        return question.limit(float(stated), formula, question.site_source("disk"), "site")
    interface = question.fact("storage", "interface")
    filesystem = question.fact("storage", "filesystem")
    if interface == "ram":
        return question.unknown(
            f"{filesystem} is a file system in memory: set scratch to a directory on a disk"
        )
    datasheet = (f"disk.{metric}.{workload}", ", from the disk's datasheet")
    if metric != "throughput":
        what = "IOPS" if metric == "iops" else "latency"
        return question.unknown(f"a link does not bound {what} usefully", *datasheet)
    value = question.fact("storage", "interface_limit")
    if value is None:
        reasons = {
            None: "the device behind the scratch directory is not known",
            "network": f"{filesystem} is a network file system: its disks cannot be seen",
            "virtio": "a virtual disk tells no limit",
        }
        reason = reasons.get(interface, f"the {interface} link tells no speed")
        return question.unknown(reason, *datasheet)
    return question.limit(
        float(value),
        str(question.fact("storage", "interface_limit_formula")),
        "link speed read from this machine",
        "read",
        remarks=(message("limit-of-interface"),),
        detail="interface limit",
    )
