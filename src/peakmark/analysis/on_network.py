"""Checks of the network: losses, loopback, links that are slowed down on purpose."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark.analysis.measured import DEFAULT, Measured
from peakmark.messages import Message, Severity, message


def lost_round_trips(row: Measured) -> Iterator[Message]:
    if row.workload != "LAT-UDP":
        return
    counts = [(run.known("lost") or 0, run.known("round_trips") or 0) for run in row.runs]
    losses = [lost / (lost + whole) for lost, whole in counts if lost]
    if losses and max(losses) > DEFAULT.loss:
        yield message("lost-round-trips", Severity.UNSURE, share=max(losses))


def udp_loss(row: Measured) -> Iterator[Message]:
    if row.workload != "UDP":
        return
    losses = []
    for run in row.runs:
        lost = run.details.get("lost")
        total = next(
            (run.details[name] for name in ("sent", "packets") if run.details.get(name)), None
        )
        if run.details.get("loss") is not None:
            losses.append(float(run.details["loss"]))
        elif lost is not None and total:
            losses.append(float(lost) / float(total))
    if losses and max(losses) > DEFAULT.loss:
        level, says = Severity.NOTE, "received"
        if max(losses) > DEFAULT.most:
            level, says = Severity.WRONG, "overrun"
        elif max(losses) > DEFAULT.heavy:
            level, says = Severity.UNSURE, "pushed"
        fewer = message("fewer-streams") if row.concurrency > 1 else ""
        yield message("udp-loss", level, share=max(losses), says=message(says), fewer=fewer)


def loopback(row: Measured) -> Iterator[Message]:
    if row.subsystem != "network":
        return
    networks = [run.context.get("network") or {} for run in row.runs]
    if any(network.get("loopback") for network in networks):
        yield message("loopback")


def shaped(row: Measured) -> Iterator[Message]:
    shapes = {str((run.context.get("network") or {}).get("shaping") or "") for run in row.runs} - {
        ""
    }
    if shapes:
        yield message("shaped", Severity.WRONG, shapes="; ".join(sorted(shapes)))
