"""Limits of the network: the line rate less what headers and gaps take."""

from __future__ import annotations

from peakmark.limits.base import Kind, Limit, Question
from peakmark.messages import Message, message
from peakmark.units import quantity

# Bytes a frame costs on the wire beside its IP packet (IEEE 802.3: preamble 8, header 14, check 4,
# gap 12; IBTA: local route 8, base transport 12, datagram 8, IPoIB 4, checks 6).
FRAME = {"ethernet": 38, "infiniband": 38}
MINIMUM_PACKET = 46  # an Ethernet frame carries at least this much
IP, TCP, UDP, TIMESTAMPS = 20, 20, 8, 12


def limit(question: Question) -> Limit:
    """Payload bits per second at the receiver, or seconds of a round trip."""
    loopback = question.loopback or bool(question.fact("network", "loopback"))
    if question.metric == "latency":
        return _latency(question, loopback)
    if loopback:
        return question.unknown("loopback has no line rate")
    given = question.given("network", "speed_bps")
    rate = given if given is not None else question.fact("network", "speed_bps")
    kind: Kind = "site" if given is not None else "read"
    stream = question.fact("network", "stream_bps")
    if given is None and rate and stream and question.concurrency * stream < rate:
        rate = question.concurrency * stream  # of a bond: each stream takes one member
    if rate is None:
        note = question.fact("network", "speed_note") or "no network interface is known"
        return question.unknown(note, "network.speed_bps")
    mtu = question.given("network", "mtu") or question.fact("network", "mtu") or 1500
    frame = FRAME["infiniband" if question.fact("network", "kind") == "infiniband" else "ethernet"]
    payload = question.block or int(mtu)
    share, share_text = (
        tcp_share(int(mtu), frame)
        if question.workload == "TCP"
        else udp_share(payload, int(mtu), frame)
    )
    value = rate * share
    formula = f"{quantity(rate, 'bit/s')} line rate x {share_text} = {quantity(value, 'bit/s')}"
    source = question.site_source("network")
    remarks: tuple[Message, ...] = ()
    if kind == "read":
        source = f"{question.fact('network', 'interface')} of this machine"
        note = question.fact("network", "speed_note")
        remarks = (message("remark", remark=note),) if note else ()
    return question.limit(value, formula, f"{source}; IPv4, MTU {mtu}", kind, remarks=remarks)


def tcp_share(mtu: int, frame: int = FRAME["ethernet"]) -> tuple[float, str]:
    """Payload share of a full TCP segment; the message size does not matter, TCP fills its segments
    from the stream.
    """
    payload = mtu - IP - TCP - TIMESTAMPS
    wire = mtu + frame
    return (
        payload / wire,
        f"{payload}/{wire} (payload of a TCP segment with time stamps / bytes on the wire)",
    )


def udp_share(message: int, mtu: int, frame: int = FRAME["ethernet"]) -> tuple[float, str]:
    """Payload share of a UDP message: one datagram, in fragments when it is larger than the MTU
    allows (RFC 791).
    """
    left, wire, fragments = message + UDP, 0, 0
    room = (mtu - IP) // 8 * 8
    while left > 0:
        part = left if left <= mtu - IP else room
        wire += max(part + IP, MINIMUM_PACKET) + frame
        left -= part
        fragments += 1
    pieces = "" if fragments == 1 else f" in {fragments} fragments"
    return (
        message / wire,
        f"{message}/{wire} (payload of a UDP message{pieces} / bytes on the wire)",
    )


def _latency(question: Question, loopback: bool) -> Limit:
    protocol = question.workload.removeprefix("LAT-")
    given = (question.given("network", "latency") or {}).get(protocol)
    if given is not None and not loopback:
        return question.stated(given, "network", " round trip")
    if loopback:
        return question.unknown("loopback has no wire: no latency limit exists")
    return question.unknown(
        "no fact of the machine bounds a round trip", f"network.latency.{protocol}"
    )
