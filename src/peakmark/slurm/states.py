"""Parse the states of nodes in the formats that Slurm prints. No function calls a command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
"""Last character of a state -> flag for which it stands (sinfo(1), NODE STATE CODES)."""
NAMES = {
    "MAINT": "MAINTENANCE",
    "NO_RESPOND": "NOT_RESPONDING",
    "DRAINED": "DRAIN",
    "DRAINING": "DRAIN",
    "DRNG": "DRAIN",
    "FAILING": "FAIL",
    "FAILG": "FAIL",
    "FUTR": "FUTURE",
    "INVAL": "INVALID_REG",
    "REBOOT": "REBOOT_REQUESTED",
    "BOOT": "REBOOT_REQUESTED",
    "RESV": "RESERVED",
    "UNK": "UNKNOWN",
}
"""Name of a state or flag in other versions or outputs -> scontrol's name since 21.08."""
STOPPED = frozenset(
    [
        *("DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE", "INVALID_REG", "MAINTENANCE"),
        *("NOT_RESPONDING", "POWER_DRAIN", "REBOOT_ISSUED", "UNKNOWN"),
    ]
)
"""Flags of a node that starts no job until an administrator acts or the node has rebooted."""
NOT_NOW = STOPPED | {"POWER_DOWN", "POWERING_DOWN", "REBOOT_REQUESTED", "RESERVED"}
"""Flags of a node that the plan leaves out. A powered-down node is kept, because Slurm can start it."""
OF_RESERVATIONS = frozenset(["MAINTENANCE", "RESERVED"])
"""Flags of reserved nodes, on which the jobs of the reservation itself may start."""


def flags(state: str) -> frozenset[str]:
    """Return the flags in a state, such as ``idle*``, ``MIXED+`` or ``IDLE+MAINTENANCE+RESERVED``."""
    found = set()
    for word in state.upper().split("+"):
        name = word.rstrip("".join(SUFFIXES))
        found.add(NAMES.get(name, name))
        found |= {SUFFIXES[suffix] for suffix in word[len(name) :]}
    return frozenset(found - {""})


def blocking(state: str, flags_that_block: frozenset[str], is_reserved: bool) -> frozenset[str]:
    """Return the flags of a state that keep jobs away.

    Flags of ``OF_RESERVATIONS`` do not count if the jobs have a reservation of the node.
    """
    found = flags(state) & flags_that_block
    if is_reserved:
        found -= OF_RESERVATIONS
    return found


def of_text(output: str) -> dict[str, tuple[str, str]]:
    """Parse ``scontrol show node``, and return node -> (state, administrator's reason)."""
    found = {}
    for line in output.splitlines():
        # The first state counts, because reasons and comments, which come later, may contain any text.
        node = re.match(r"\s*NodeName=(\S+)\s(?:.*?\s)?State=(\S+)", line)
        if node:
            found[node[1]] = (node[2], _reason(line))
    return found


def _reason(line: str) -> str:
    """Return the administrator's reason, which ends before its author and time or the next field."""
    stamped = re.search(r"\sReason=(.*?) \[[^\s@]+@[^\]]+\]", line)
    found = stamped or re.search(r"\sReason=(.*?)(?=\s+[A-Z]\w*=|\s*$)", line)
    return found[1] if found else ""


def of_json(output: str) -> dict[str, tuple[str, str]]:
    """Parse scontrol's JSON, and return the same as ``of_text``; empty if the output has no JSON.

    Slurm 21.08 and 22.05 print a state as one word and a list of flags, later versions as one list.
    """
    found = {}
    for node in _json_nodes(output):
        words = [*_words(node.get("state")), *_words(node.get("state_flags"))]
        name, reason = node.get("name"), node.get("reason")
        if not isinstance(reason, str):
            reason = ""
        if isinstance(name, str) and words:
            found[name] = ("+".join(words), reason)
    return found


def _json_nodes(output: str) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of the first JSON object that has nodes. A site's wrapper may print other lines."""
    for start in re.finditer(r"(?m)^\{", output):
        document: Any = None
        with suppress(ValueError, RecursionError):
            document, _ = json.JSONDecoder().raw_decode(output, start.start())
        if isinstance(document, dict) and isinstance(document.get("nodes"), list):
            for node in document["nodes"]:
                if isinstance(node, dict):
                    yield node
            return


def _words(value: object) -> list[str]:
    """Return the words of a state, which is one word or a list of words, in capitals."""
    if not isinstance(value, list):
        value = [value]
    return [word.upper() for word in value if isinstance(word, str) and word]
