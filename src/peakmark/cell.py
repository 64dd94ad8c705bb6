"""A cell: one instrument at one point, once. Its identity is its path below
``results/<campaign>/cells/``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.errors import ConfigError
from peakmark.units import format_size, parse_size

Scalar = str | int | float | bool | None

_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_ALL = _LOWER | {letter.upper() for letter in _LOWER}
_NAMES = {
    "instrument": (_LOWER, _LOWER | set("-"), "[a-z0-9][a-z0-9-]*"),
    "workload": (_ALL, _ALL | set("-"), "[A-Za-z0-9][A-Za-z0-9-]*"),
    "variant": (_LOWER, _LOWER | set("_-"), "([a-z0-9][a-z0-9_-]*)?"),
    "node": (_ALL, _ALL | set("._-"), "[A-Za-z0-9][A-Za-z0-9._-]*"),
}
"""What a part of an id begins with, what else it may hold, and both as a pattern for people:
compiling them would take longer than all else that is done with a cell.
"""
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_WORDS = {"subsystem": SUBSYSTEMS, "word": ("", "numa", "socket", "cores", "cpus")}


@dataclass(frozen=True)
class Cell:
    """One measurement to make.

    subsystem    cpu, memory, disk or network
    instrument   name in ``peakmark.tools.REGISTRY``, e.g. ``cpubench`` or ``fio``
    workload     QP HP SP DP FP32 QPDOT | RS WS RWS RR WR RWR LAT | RS WS RR WR | TCP UDP LAT-TCP
                 LAT-UDP; ``ALL`` for a reference tool that fills several workloads in one execution
    variant      what must never be mixed in one row: memory ``block`` or ``pool`` (the working
                 set), disk ``psync`` or ``io_uring-qd8``, network ``gso`` or ``busy-poll``; empty
                 where there is no such choice
    block        bytes of a block, record or message; None where there is none (cpu), and of the
                 memory's LAT where the node that measures chooses an area beyond its caches
    concurrency  threads, processes or streams; 1 where ``word`` says how many, until the node that
                 measures is known
    node         ``any`` or the name of the node that must run it
    repetition   0, 1, 2, ...
    options      everything else that changes what is executed (seconds, sizes, directory); JSON
                 scalars only. Not part of the path: a changed option makes Snakemake measure the
                 cell anew.
    word         instead of a number: one of ``machine.topology.WORDS``, a part of the node; empty
                 where a number was asked
    """

    subsystem: str
    instrument: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    node: str
    repetition: int
    options: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    word: str = ""

    @property
    def point(self) -> str:
        """Directory name of the point: ``RWS-pool_1MiB_x2``, ``DP_none_x1``, ``LAT_auto_x1``."""
        workload = f"{self.workload}-{self.variant}" if self.variant else self.workload
        none = "auto" if self.automatic else "none"
        block = none if self.block is None else format_size(self.block)
        return f"{workload}_{block}_x{self.asked}"

    @property
    def automatic(self) -> bool:
        """Whether the node that measures chooses the block: the area of the memory's LAT."""
        return self.subsystem == "memory" and self.block is None

    @property
    def area(self) -> int | None:
        """Bytes of the block, or those that the node has chosen for it; None where there is none,
        or not yet.
        """
        chosen = self.options.get("area")
        return chosen if self.automatic and isinstance(chosen, int) else self.block

    @property
    def asked(self) -> int | str:
        """The concurrency as it was asked for: the word, else the number."""
        return self.word or self.concurrency

    @property
    def id(self) -> str:
        """Path of the record below ``cells/``, without ``.json``; unique in a campaign."""
        return f"{self.row}/{self.repetition}"

    @cached_property
    def row(self) -> str:
        """What the repetitions of one measurement share: the id without the repetition."""
        return f"{self.subsystem}/{self.instrument}/{self.point}/{self.node}"

    def to_json(self) -> dict[str, Any]:
        """The cell as JSON values; ``block`` in bytes, keys as the fields."""
        return {
            "subsystem": self.subsystem,
            "instrument": self.instrument,
            "workload": self.workload,
            "variant": self.variant,
            "block": self.block,
            "concurrency": self.asked,
            "node": self.node,
            "repetition": self.repetition,
            "options": dict(sorted(self.options.items())),
        }

    def spec(self) -> str:
        """Canonical one-line JSON: what decides whether a finished cell is still valid."""
        return _canonical(self.to_json())

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """Inverse of ``to_json``. Errors: ConfigError when a key is missing, of the wrong type, or
        more than a name.
        """
        try:
            block, asked = data["block"], data["concurrency"]
            word = asked if isinstance(asked, str) and not asked.isdigit() else ""
            cell = cls(
                subsystem=str(data["subsystem"]),
                instrument=str(data["instrument"]),
                workload=str(data["workload"]),
                variant=str(data["variant"]),
                block=None if block is None else parse_size(block),
                concurrency=1 if word else int(asked),
                node=str(data["node"]),
                repetition=int(data["repetition"]),
                options=dict(data["options"].items()),
                word=word,
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            why = f"it lacks {error.args[0]}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(f"cell {data!r} is not complete: {why}") from error
        cell._check()
        return cell

    def _check(self) -> None:
        """The id becomes a path: its parts are names and nothing more. Errors: ConfigError."""
        for key, allowed in _WORDS.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(
                    f"cell has {key} {getattr(self, key)!r}: allowed are {', '.join(filter(None, allowed))}"
                )
        for key, (first, rest, pattern) in _NAMES.items():
            value = getattr(self, key)
            if (
                not (value or key == "variant")
                or not first.issuperset(value[:1])
                or not rest.issuperset(value)
            ):
                raise ConfigError(
                    f"cell has {key} {value!r}: allowed is a name that matches {pattern}"
                )
        if self.concurrency < 1 or self.repetition < 0:
            raise ConfigError(
                f"cell {self.id}: concurrency must be 1 or more, repetition 0 or more, both whole numbers"
            )
        for key, option in self.options.items():
            if not isinstance(key, str) or not isinstance(option, str | int | float | bool | None):
                raise ConfigError(
                    f"cell {self.id}: option {key!r} is neither text, number nor truth value"
                )
            if isinstance(option, float) and not math.isfinite(option):
                raise ConfigError(
                    f"cell {self.id}: option {key!r} is {option}, not a finite number"
                )
