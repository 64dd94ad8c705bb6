"""Limits of MPI: the line rate of the link, for MPI over TCP minus the share of the TCP headers.

The limit of HPL is the sum of the nodes' limits.
The headers of InfiniBand and RoCE, below 2 % of the packets of large messages, are not subtracted.
"""

from __future__ import annotations

from dataclasses import replace

from peakmark.catalogue import ON_ONE_NODE, nodes_of_ranks
from peakmark.formatting import plural, quantity
from peakmark.limits import cpu, network
from peakmark.limits.base import Limit, Question

DIRECTIONS = {"RATE": 1, "BIRATE": 2}
"""Workload that moves bytes -> directions in which it moves them."""


def limit(question: Question) -> Limit:
    """Return the limit in B/s of messages between two nodes, or in op/s of HPL.

    Latencies, message rates and messages within one node have no limit.
    """
    if question.metric == "latency":
        return question.unknown("mpi-latency")
    if question.metric == "rate":  # only HPL's metric
        return _of_nodes(question)
    if question.metric == "message_rate":
        return question.unknown("message-rate")
    if question.variant in ON_ONE_NODE:
        return question.unknown("one-node")
    # The limit follows from that of TCP. Messages between two ranks are one stream.
    stream = replace(question, subsystem="network", workload="TCP", concurrency=1)
    line = network.limit(stream)
    if line.value is None:
        return replace(line, unit=question.unit)
    bits, text = line.value, line.formula
    # Messages that do not use TCP have no headers of TCP: their limit is the line rate. An unknown transport
    # counts as TCP.
    transport = question.fact("network", "transport")
    if transport and "tcp" not in transport:
        bits = float(question.known("network", "speed_bps"))
        text = f"{quantity(bits, 'bit/s')} line rate"
    directions = DIRECTIONS[question.workload]
    value = bits / 8 * directions
    both = " x 2 directions" if directions == 2 else ""
    formula = f"{text} / 8 bit{both} = {quantity(value, question.unit)}"
    return replace(line, value=value, unit=question.unit, formula=formula)


def _of_nodes(question: Question) -> Limit:
    """Return the sum of the limits of the nodes that solve a system with HPL. All are taken to equal the row's node."""
    node = cpu.limit(replace(question, subsystem="cpu", workload="DP"))
    nodes = nodes_of_ranks(question.variant)
    if node.value is None or nodes == 1:
        return node
    value = nodes * node.value
    formula = f"{plural(nodes, 'node')} x {node.formula}, together {quantity(value, 'op/s')}"
    return replace(node, value=value, formula=formula)
