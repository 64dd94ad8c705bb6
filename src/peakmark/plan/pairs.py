"""Which pairs of nodes a network grid measures, in which order, and what two pairs share."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from peakmark.errors import ConfigError
from peakmark.formatting import listed
from peakmark.plan.cluster import ANY, Cluster, Settings, settings_of

Pair = tuple[str, str]
"""Node of the client and node of the server."""
Turns = Mapping[str, Mapping[Pair, int]]
"""Network grid by its place in the configuration -> its pairs in running order, each with the number
of its round.
"""
Behind = Mapping[str, frozenset[str]]
"""Name of a switch or an uplink -> the nodes behind it."""


def turns(config: Settings, nodes: Sequence[str]) -> Turns:
    """The pairs of all grids that ask for them.

    Raises:
        ConfigError: there are no two named nodes, or a pair has a node that is none of them.
    """
    return {
        f"network[{index}]": _turns(f"network[{index}]", grid["pairs"], nodes, config["seed"])
        for index, grid in enumerate(config["network"])
        if "pairs" in grid
    }


def _turns(where: str, pairs: Any, nodes: Sequence[str], seed: int) -> dict[Pair, int]:
    if len(nodes) < 2:
        what = "Slurm chooses" if nodes[0] == ANY else "there is one"
        raise ConfigError(
            f"{where}.pairs needs two named nodes of a cluster, and {what}: set nodes to all, a list "
            "or {sample: 64}, and use --profile slurm"
        )
    if isinstance(pairs, list):
        for client, server in pairs:
            if client == server or not {client, server} <= {*nodes}:
                raise ConfigError(
                    f"{where}.pairs has [{client}, {server}]: a pair is two different nodes of "
                    f"{listed(nodes[:8])}{' and so on' * (len(nodes) > 8)}"
                )
        return {(pair[0], pair[1]): 0 for pair in pairs}
    count = len(nodes) if pairs == "all" else pairs["rounds"]
    return {
        pair: number
        for number, disjoint in enumerate(islice(rounds(nodes, seed), count))
        for pair in disjoint
    }


def rounds(nodes: Sequence[str], seed: int) -> Iterator[list[Pair]]:
    """Rounds of disjoint pairs in random order, until every two nodes have met.

    Of an odd number one node pauses in each round. Who has been client less often is client.

    Source: the circle method of round-robin tournaments, E. Lucas, Les jeux de demoiselles, in
    Recreations mathematiques 2 (1883).
    """
    lot = random.Random(f"{seed}/pairs")  # noqa: S311 - not a secret
    fixed, *circle = lot.sample([*nodes, *([""] * (len(nodes) % 2))], len(nodes) + len(nodes) % 2)
    clients = dict.fromkeys([*nodes, ""], 0)
    for turn in lot.sample(range(len(circle)), len(circle)):
        turned = [fixed, *circle[turn:], *circle[:turn]]
        middle = len(turned) // 2
        disjoint = []
        for one, other in zip(turned[:middle], reversed(turned[middle:]), strict=True):
            if one and other:
                client, server = sorted((one, other), key=clients.__getitem__)
                clients[client] += 1
                disjoint.append((client, server))
        yield disjoint


def behind(config: Settings, cluster: Cluster) -> Behind:
    """What the site file says that nodes share, else Slurm's topology."""
    stated = (config.get("site_facts") or {}).get("shared")
    if stated is None:
        return {name: frozenset(nodes) for name, nodes in cluster.switches.items()}
    return {
        name: frozenset(
            node for node in cluster.nodes if any(fnmatchcase(node, each) for each in patterns)
        )
        for name, patterns in stated.items()
    }


def crossed(pair: Sequence[str], known: Behind) -> frozenset[str]:
    """What the traffic of a pair passes: uplinks with one end of the pair behind them."""
    client, server = pair
    return frozenset(
        name for name, nodes in known.items() if (client in nodes) != (server in nodes)
    )


def shares(pair: Pair, config: Settings, known: Behind) -> frozenset[str]:
    """What no other pair may use at the same time: uplinks, and nodes that jobs do not have alone."""
    alone = settings_of(config).get("exclusive", True)
    return crossed(pair, known) | (frozenset() if alone else frozenset(pair))
