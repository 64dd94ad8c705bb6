"""Host, user and network names of a campaign replaced by made-up ones, the same one everywhere.

``replacer`` gives one function from text to text; ``bundle.copy`` passes every text of a campaign
through it. Names are replaced in free text too (messages, command lines, raw output), as whole
words.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from peakmark.catalogue import KERNELS, WORKLOADS
from peakmark.config import inputs
from peakmark.formatting import natural
from peakmark.storage.results import Results
from peakmark.tools import REGISTRY

_HOME = re.compile(r"/(?:home|Users|users|u|scratch|work|data)/([A-Za-z_][A-Za-z0-9_.-]*)")
_IPV4 = re.compile(r"(?<![0-9.A-Za-z-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z-]|\.[0-9])")
_IPV6 = re.compile(r"(?<![0-9A-Fa-f:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Fa-f:.])")
_MAC = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_DOCUMENTATION = {4: ("192.0.2.{}", 254), 6: ("2001:db8::{:x}", 65535)}
"""Addresses that are kept for documentation, by version, and how many there are."""
_COMMON = frozenset(
    [
        *[
            "any",
            "all",
            "unknown",
            "localhost",
            "lo",
            "root",
            "node",
            "none",
            "ok",
            "failed",
            "tmp",
            "home",
            "peakmark",
        ],
        *REGISTRY,
        *KERNELS,
        *KERNELS.values(),
        *(word for names in WORKLOADS.values() for word in names),
    ]
)
"""Words that a host or user may be called by and that mean something else in every record."""


def replacer(results: Results) -> Callable[[str], str]:
    """The function that takes the names of this campaign out of a text.

    Hosts become ``host1``, ``host2``, ... in the order of their names, users ``user1``, ...,
    addresses those that are kept for documentation (192.0.2.0/24, 2001:db8::/32). Loopback
    addresses stay. It changes no number.
    """
    hosts = sorted({*_hosts(results)}, key=natural)
    users = sorted({*_users(results)} - set(hosts))
    replacements = {name.lower(): f"user{number}" for number, name in enumerate(users, 1)}
    short: dict[str, str] = {}
    for host in hosts:
        first = host.partition(".")[0].lower()
        short.setdefault(first, f"host{len(short) + 1}")
        replacements[host.lower()] = replacements[first] = short[first]
    names = "|".join(map(re.escape, sorted(replacements, key=len, reverse=True)))
    whole_word = re.compile(rf"(?<![A-Za-z0-9_-])(?:{names})(?![A-Za-z0-9_-])", re.IGNORECASE)
    addresses: dict[str, str] = {}

    def replace_address(match: re.Match[str]) -> str:
        """Texts that are no address, and addresses that tell nothing, stay."""
        text = match.group()
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return text
        if address.is_loopback or address.is_unspecified or address.is_multicast:
            return text
        form, most = _DOCUMENTATION[address.version]
        return addresses.setdefault(text, form.format(len(addresses) % most + 1))

    def replace(text: str) -> str:
        if replacements:
            text = whole_word.sub(lambda match: replacements[match.group().lower()], text)
        text = _MAC.sub("02:00:00:00:00:00", text)
        return _IPV6.sub(replace_address, _IPV4.sub(replace_address, text))

    return replace


def _hosts(results: Results) -> Iterator[str]:
    cluster = results.plan.get("cluster") or {}
    names: list[Any] = [*results.facts, *cluster.get("nodes", ()), *cluster.get("left_out", ())]
    names += [node for kind in cluster.get("kinds", ()) for node in kind["nodes"]]
    names += [name for cell in results.cells for name in (cell.node, cell.peer)]
    for facts in results.facts.values():
        names += [facts.get("host"), (facts.get("slurm") or {}).get("node")]
    for record in (*results.records, *results.attempts):
        context = record.data["context"]
        names += [context.get("host"), context.get("server_host")]
    return (name for name in names if name and name.lower() not in _COMMON)


def _users(results: Results) -> Iterator[str]:
    names = {os.environ.get("USER", "")}
    with suppress(KeyError, OSError):  # of a number without a name
        names.add(results.directory.owner())
    account = ((results.config.get("site_facts") or {}).get("slurm") or {}).get("account")
    names |= {str(account or ""), str(results.report_config.get("publisher") or "")}
    for author in inputs.authors(results.report_config):
        names |= {author.name, author.affiliation or "", author.orcid or ""}
    names.update(_HOME.findall(str(results.directory.resolve())))
    for path in results.directory.rglob("*.json"):
        names.update(_HOME.findall(path.read_text(errors="replace")))
    for name in names:
        if len(name) > 1 and name.lower() not in _COMMON:
            yield name
