"""Limits of a disk, from the numbers of its datasheet in the site file. The disk's link is a bound."""

from __future__ import annotations

from peakmark.catalogue import is_together
from peakmark.formatting import quantity
from peakmark.limits import memory
from peakmark.limits.base import Limit, Question


def limit(question: Question) -> Limit:
    """Return the limit of the disk that holds the scratch directory.

    The limit is in B/s, operations per second, or seconds per operation.
    """
    metric, workload = question.metric, question.workload
    # Nodes that use one disk at the same moment share its rate.
    if is_together(question.variant):
        return question.unknown("several-nodes")
    # The site file's ``disk.<metric>`` is a mapping: workload -> value in SI units.
    stated = (question.stated("disk", metric) or {}).get(workload)
    if stated is not None:
        model = question.site_of_host.disk.model or question.fact("storage", "model") or "the disk"
        formula = f"{quantity(stated, question.unit)} by the site file, of {model}"
        return question.limit(float(stated), formula, question.site_source("disk"), "site")
    by_seek = _by_seek(question)
    if by_seek is not None:
        return by_seek
    interface = question.fact("storage", "interface")
    filesystem = question.fact("storage", "filesystem")
    if interface == "ram":
        return question.unknown("ram", file_system=str(filesystem))
    if metric == "metadata":
        return question.unknown("metadata")
    # How the user can supply the limit: key of the site file, and the case that says where to find it.
    datasheet = {"key": f"disk.{metric}.{workload}", "place": "disk"}
    if metric != "throughput":
        return question.unknown(metric, **datasheet)  # the case has the name of the metric
    # Interface -> case of the reason why the limit is unknown. For other interfaces, ``bounds`` may return the rate
    # of the link.
    case = {"network": "network-disk", "virtio": "virtual-disk"}.get(interface, "link")
    # Disks of the file system, and paths to the disk (multipath); each path has a link.
    disks, paths = len(question.fact("storage", "members") or ()), question.fact("storage", "paths")
    if disks > 1:
        case = "several-disks"
    elif paths is not None and paths > 1:
        case = "paths"
    elif interface is None and not disks:  # no fact says what holds the scratch directory
        case = "disk"
    return question.unknown(
        case, **datasheet, file_system=str(filesystem), disks=disks, paths=paths
    )


def _by_seek(question: Question) -> Limit | None:
    """Return the limit of a random operation on a hard disk: an average seek and half a turn.

    It is in operations per second or in seconds, as the metric of the row. Return None for other rows, and
    if the site file does not state both the time of a seek and the turns per minute of the disk.
    """
    disk = question.site_of_host.disk
    seek_ms = disk.seek_ms.get(question.workload)  # type: ignore[call-overload]
    if question.metric not in ("iops", "latency") or seek_ms is None or disk.rpm is None:
        return None
    # ``rpm`` is in turns per minute. On average, the sector is half a turn away.
    half_turn_s = 60 / disk.rpm / 2
    seconds = seek_ms / 1000 + half_turn_s
    formula = f"{seek_ms:g} ms seek + {1000 * half_turn_s:.2f} ms for half a turn at {disk.rpm}/min"
    value = seconds
    if question.metric == "iops":
        formula = f"1 / ({formula})"
        value = 1 / seconds
    formula = f"{formula} = {quantity(value, question.unit)}"
    return question.limit(value, formula, question.site_source("disk"), "site")


def bounds(question: Question) -> list[Limit | None]:
    """Return the bound of a throughput row: the rate of the disk's link.

    The bound of a virtual disk is the memory bandwidth of the host, because the data passes the host's memory.
    A virtual machine may show a link for a disk that its host emulates, so the link does not count there.
    The list is empty for other metrics, for several nodes that share the disk, and for an unknown link.
    """
    rate = question.fact("storage", "interface_limit")  # of the link, in B/s
    if question.metric != "throughput" or is_together(question.variant):
        return []
    is_virtual = question.fact("cpu", "virtualised")
    # Without a link, only virtio marks a virtual disk: another disk of a guest may be on a network.
    if rate is None:
        is_virtual = question.fact("storage", "interface") == "virtio"
    if is_virtual:
        return [memory.by_sockets(question, "the memory of a virtual disk's host")]
    if rate is None:
        return []
    formula = str(question.fact("storage", "interface_limit_formula"))
    source = "link speed read from this machine"
    remark = "the limit of the interface, not of the medium"
    return [question.bound(float(rate), formula, source, "read", remarks=(remark,))]
