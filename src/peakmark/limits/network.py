"""Limits of the network: the line rate without the share of headers and gaps."""

from __future__ import annotations

import math

from peakmark.formatting import quantity
from peakmark.limits import memory
from peakmark.limits.base import Limit, Question

FRAME_OVERHEAD = 38
"""Bytes on the wire that a frame adds to its IP packet, the same for Ethernet and InfiniBand.

Sources: IEEE 802.3 (preamble 8, header 14, check 4, gap 12); IBTA (local route 8, base transport 12,
datagram 8, IPoIB 4, checks 6).
"""
MINIMUM_PACKET = 46
"""Smallest payload of an Ethernet frame, in bytes. Smaller packets are padded."""
IP_HEADER, TCP_HEADER, UDP_HEADER, TIMESTAMPS_OPTION = 20, 20, 8, 12
"""Bytes of the headers of IPv4, TCP and UDP, and of TCP's option for time stamps with its padding."""


def limit(question: Question) -> Limit:
    """Return the limit as payload bits per second at the receiver, or as seconds of a round trip."""
    loopback = is_loopback(question)
    if question.metric == "latency":
        return _latency(question, loopback)
    if loopback:
        return question.unknown("loopback")
    # ``note`` is a remark on the speed of the interface, or says why it has none.
    stated, note = question.site_of_host.network.speed_bps, question.fact("network", "speed_note")
    rate = question.known("network", "speed_bps")
    if rate is None:
        key = "network.speed_bps"
        if note:
            return question.unknown("interface", key=key, note=note)
        return question.unknown("no-interface", key=key)
    stream = question.fact("network", "stream_bps")
    if stated is None and stream:
        # Each stream uses one member of a bond, whose rate in bit/s is ``stream``.
        rate = min(rate, question.concurrency * stream)
    mtu = int(question.known("network", "mtu") or 1500)  # Ethernet's default
    share, text = tcp_share(mtu)
    if question.workload != "TCP":
        share, text = udp_share(question.block or mtu, mtu)
    value = rate * share
    formula = f"{quantity(rate, 'bit/s')} line rate x {text} = {quantity(value, 'bit/s')}"
    packets = f"IPv4, MTU {mtu}"
    if stated is not None:
        source = f"{question.site_source('network')}; {packets}"
        return question.limit(value, formula, source, "site")
    source = f"{question.fact('network', 'interface')} of this machine; {packets}"
    remarks = (note,) if note else ()
    return question.limit(value, formula, source, "read", remarks=remarks)


def is_loopback(question: Question) -> bool:
    """Return whether client and server ran on one machine.

    This is known from the row's runs, or from facts that name ``lo`` as the interface.
    """
    return question.loopback or bool(question.fact("network", "loopback"))


def tcp_share(mtu: int) -> tuple[float, str]:
    """Return payload / bytes on the wire of a full TCP segment, and the formula of this share.

    The message size does not matter: TCP fills its segments from the stream.
    """
    payload, wire = mtu - IP_HEADER - TCP_HEADER - TIMESTAMPS_OPTION, mtu + FRAME_OVERHEAD
    words = "payload of a TCP segment with time stamps / bytes on the wire"
    return payload / wire, f"{payload}/{wire} ({words})"


def udp_share(message: int, mtu: int) -> tuple[float, str]:
    """Return payload / bytes on the wire of a UDP message of ``message`` bytes, and the formula of this share.

    A message is one datagram, which is fragmented if it is larger than the MTU allows (RFC 791).
    """
    # Bytes of the datagram, and the most of them that one packet can carry.
    datagram, most = message + UDP_HEADER, mtu - IP_HEADER
    # Payload of every fragment except the last: offsets of fragments count units of 8 bytes.
    room = most // 8 * 8
    fragments = 1 + max(0, math.ceil((datagram - most) / room))
    last = datagram - (fragments - 1) * room  # payload of the last fragment, which may need padding
    padding = max(0, MINIMUM_PACKET - IP_HEADER - last)
    wire = datagram + fragments * (IP_HEADER + FRAME_OVERHEAD) + padding
    words = "payload of a UDP message"
    if fragments > 1:
        words += f" in {fragments} fragments"
    return message / wire, f"{message}/{wire} ({words} / bytes on the wire)"


def _latency(question: Question, loopback: bool) -> Limit:
    """Return the round trip in seconds that the site file states for the protocol.

    The limit is unknown if the file states none. It is also unknown over loopback, because the
    stated round trip is that of a network.
    """
    protocol = question.workload.removeprefix("LAT-")
    stated = question.stated("network", "latency").get(protocol)
    if loopback:
        return question.unknown("loopback-latency")
    if stated is not None:
        return question.by_site(stated, "network", " round trip")
    return question.unknown("round-trip", key=f"network.latency.{protocol}")


def bounds(question: Question) -> list[Limit | None]:
    """Return a list with one bound: the rate at which the cores of this machine can copy the data.

    Over loopback they copy it as sender and as receiver. The list is empty for a latency, or if the number of
    cores is unknown; the bound is None if the clock or the L1 cache is unknown.
    """
    ends = 2 if is_loopback(question) else 1  # ends of the connection on this machine
    cores = question.fact("limits", "physical_cores_allowed")
    if question.metric == "latency" or cores is None:
        return []
    busy = min(question.concurrency * ends, cores)  # a stream keeps a core busy at each end
    # The data may stay in L1, where copies are fastest. The width of ``copy`` counts bytes read and
    # bytes written, so each end moves a byte twice.
    return [memory.by_cores(question, busy, "copy", may_stay_in_l1=True, moves=2 * ends)]
