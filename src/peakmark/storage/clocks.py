"""``machine/clocks/<host>.json``: the clocks that a host reached under its work, beside its facts.

A campaign keeps its own, and the best of earlier campaigns in the same folder, which a bundle of it
brings along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from peakmark import files

FOLDER = "machine/clocks"


class Work(NamedTuple):
    """What clocks must have in common to be compared: many cores and wide vectors lower them.

    Attributes:
        cpu: model and number of CPUs; empty where they are unknown.
    """

    cpu: str
    workload: str
    isa: str
    threads: int


class SeenClock(msgspec.Struct, frozen=True):
    """The clock of one work on one host.

    Attributes:
        day: ISO 8601.
        earlier: whether it is of an earlier campaign.
    """

    work: Work
    hz: Annotated[float, msgspec.Meta(gt=1e8, lt=1e11)]
    day: str
    earlier: bool = False


def read_earlier(campaign: Path, hosts: Iterable[str]) -> dict[str, dict[Work, SeenClock]]:
    """The best clocks of each host by their work, in other campaigns of the same folder and in those
    that a campaign brought along.
    """
    best: dict[str, dict[Work, SeenClock]] = {host: {} for host in hosts}
    for folder in sorted(campaign.parent.glob(f"*/{FOLDER}")):
        brought = folder.is_relative_to(campaign)
        for host, known in best.items():
            for seen in _read(folder / f"{host}.json"):
                faster = seen.work not in known or seen.hz > known[seen.work].hz
                if seen.earlier is brought and faster:
                    known[seen.work] = seen
    return best


def _read(path: Path) -> list[SeenClock]:
    """The clocks in a file; none where it cannot be read or is another's."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(files.read_bytes(path), type=list[SeenClock])
    return []


def write(campaign: Path, clocks: Mapping[str, Iterable[SeenClock]]) -> None:
    """Store the clocks of hosts, with the best of earlier campaigns for the same work. Errors: OSError."""
    earlier = read_earlier(campaign, clocks)
    for host, here in clocks.items():
        path = campaign / FOLDER / f"{host}.json"
        known = [earlier[host][seen.work] for seen in here if seen.work in earlier[host]]
        brought = [msgspec.structs.replace(seen, earlier=True) for seen in known]
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, msgspec.json.encode([*here, *brought]).decode())
