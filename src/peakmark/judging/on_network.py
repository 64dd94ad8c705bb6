"""Checks of the network: losses, loopback, links that are slowed down on purpose."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark.judging.measured import Measured, Thresholds
from peakmark.judging.notes import Level, Note


def lost_round_trips(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.workload != "LAT-UDP":
        return
    counts = [(run.known("lost") or 0, run.known("round_trips") or 0) for run in row.runs]
    losses = [lost / (lost + whole) for lost, whole in counts if lost]
    if losses and max(losses) > thresholds.loss:
        text = (
            f"up to {max(losses):.2%} of the round trips lost their datagram and are not in the mean: the link or a host"
            " between drops packets; see ip -s link and ethtool -S on both nodes"
        )
        yield Note("lost-round-trips", text, Level.UNSURE)


def udp_loss(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.workload != "UDP":
        return
    losses = []
    for run in row.runs:
        lost = run.details.get("lost")
        total = next((run.details[name] for name in ("sent", "packets") if run.details.get(name)), None)
        if run.details.get("loss") is not None:
            losses.append(float(run.details["loss"]))
        elif lost is not None and total:
            losses.append(float(lost) / float(total))
    if losses and max(losses) > thresholds.loss:
        fewer = " or use fewer streams" if row.concurrency > 1 else ""
        level, says = Level.NOTE, "the receiver's rate is shown"
        if max(losses) > thresholds.most:
            level, says = Level.WRONG, "more than arrived: an overrun receiver was measured, not what the path carries"
        elif max(losses) > thresholds.heavy:
            level, says = Level.UNSURE, "what arrives then depends on how hard the sender pushes"
        text = (
            f"up to {max(losses):.2%} of the messages were lost: {says}; raise net.core.rmem_max{fewer} to see what the"
            " network itself carries"
        )
        yield Note("udp-loss", text, level)


def loopback(row: Measured, _: Thresholds) -> Iterator[Note]:
    if row.subsystem != "network":
        return
    networks = [run.context.get("network") or {} for run in row.runs]
    if any(network.get("loopback") for network in networks):
        text = "over loopback: client and server share one machine, no network lies between them; use two nodes"
        yield Note("loopback", text, Level.NOTE)


def shaped(row: Measured, _: Thresholds) -> Iterator[Note]:
    shapes = {str((run.context.get("network") or {}).get("shaping") or "") for run in row.runs} - {""}
    if shapes:
        text = (
            f"the interface is slowed down on purpose ({'; '.join(sorted(shapes))}): that was measured, not the link;"
            " see tc qdisc show, and have it removed"
        )
        yield Note("shaped", text, Level.WRONG)
