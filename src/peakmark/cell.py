"""A cell is one instrument at one point, measured once. Its identity is its path below
``results/<campaign>/cells/``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from peakmark.catalogue import SHAPES
from peakmark.formatting import format_size
from peakmark.validation import allowed, convert

Scalar = str | int | float | bool | None
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class CellKeys(TypedDict):
    """Keys of a cell in a plan or a record. Its id becomes a path, so all parts are plain names."""

    subsystem: Literal["cpu", "memory", "disk", "network", "gpu"]
    instrument: Annotated[
        str, allowed("the name of a program, such as fio", pattern=r"^[a-z0-9][a-z0-9-]*\Z")
    ]
    workload: Annotated[
        str, allowed("the name of a workload, such as RWS", pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*\Z")
    ]
    variant: Annotated[
        str,
        allowed("the name of a variant, such as pool", pattern=r"^([a-z0-9][a-z0-9_-]*)?\Z"),
    ]
    block: Annotated[int, Meta(ge=1)] | None
    concurrency: Annotated[int, Meta(ge=1)] | Literal["numa", "socket", "cores", "cpus", "gpus"]
    node: Annotated[
        str, allowed("any, or the name of a node", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")
    ]
    peer: NotRequired[
        Annotated[str, allowed("the name of a node", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
    ]
    repetition: Annotated[int, Meta(ge=0)]
    options: dict[str, str | int | Annotated[float, Meta(ge=-1e300, le=1e300)] | bool | None]


@dataclass(frozen=True)
class Cell:
    """One measurement to make.

    subsystem    cpu, memory, disk, network or gpu
    instrument   name in ``peakmark.tools.REGISTRY``, e.g. ``cpubench`` or ``fio``
    workload     QP HP SP DP FP32 DPMIX FP32MIX QPDOT FP16 BF16DOT QPMM BF16MM |
                 RS WS RWS RR WR RWR LAT | RS WS RR WR | TCP UDP LAT-TCP LAT-UDP |
                 FP64 FP32 FP16 INT32 TC-* RS WS RWS RWR LINK LAUNCH LADDER-LAT; ``ALL`` for a reference tool that fills several workloads in one execution
    variant      kind of access that has rows of its own: memory ``block`` or ``pool`` (the working
                 set), disk ``psync`` or ``io_uring-qd8``, network ``gso`` or ``busy-poll``, gpu
                 ``sustained`` or ``burst``, LINK ``to``, ``from``, ``both`` or ``peer``; empty
                 where there is no such choice
    block        bytes of a block, record or message; None where there is none (cpu), and of the
                 memory's LAT where the node that measures chooses an area beyond its caches
    concurrency  threads, processes, streams or GPUs; 1 where ``word`` says how many, until the node that
                 measures is known
    node         ``any`` or the name of the node that must run it
    repetition   0, 1, 2, ...
    options      everything else that changes what is executed (seconds, sizes, directory); JSON
                 scalars only. Not part of the path: a changed option makes Snakemake measure the
                 cell anew.
    word         instead of a number: one of ``machine.topology.WORDS``, a part of the node, or ``gpus``; empty
                 where a number was asked
    peer         the node of the server where ``pairs`` names it, ``node`` then has the client; else
                 empty
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
    peer: str = ""

    @property
    def point(self) -> str:
        """Return the directory name of the point, such as ``RWS-pool_1MiB_x2`` or ``LAT_auto_x1``."""
        workload = self.workload
        if self.variant:
            workload += f"-{self.variant}"
        if self.block is not None:
            block = format_size(self.block)
        elif self.automatic:
            block = "auto"
        else:
            block = "none"
        return f"{workload}_{block}_x{self.asked}"

    @property
    def automatic(self) -> bool:
        """Return whether the node chooses the block. It does for the area of LAT in memory."""
        walked = self.subsystem == "memory" and self.workload not in SHAPES
        return walked and self.block is None

    @property
    def area(self) -> int | None:
        """Return the bytes of the block or of the area that the node chose; None before it chooses."""
        chosen = self.options.get("area")
        if self.automatic and isinstance(chosen, int):
            return chosen
        return self.block

    @property
    def asked(self) -> int | str:
        """Return the concurrency as the user wrote it: a word or a number."""
        return self.word or self.concurrency

    @property
    def id(self) -> str:
        """Return the path of the record below ``cells/``, without ``.json``. It is unique in a
        campaign.
        """
        return f"{self.row}/{self.repetition}"

    @cached_property
    def row(self) -> str:
        """Return the id without the repetition, which all repetitions of a measurement share."""
        return f"{self.subsystem}/{self.instrument}/{self.point}/{self.place}"

    @property
    def place(self) -> str:
        """Return the node, or client and server of a pair: ``node1+node2``."""
        return f"{self.node}+{self.peer}" if self.peer else self.node

    def to_json(self) -> dict[str, Any]:
        """Return the cell as JSON values, with ``block`` in bytes and the fields as keys."""
        fields = {name: getattr(self, name) for name in CellKeys.__annotations__}
        if not self.peer:
            del fields["peer"]
        return fields | {"concurrency": self.asked, "options": dict(sorted(self.options.items()))}

    def spec(self) -> str:
        """Return canonical JSON on one line. A record is valid while its cell has the same text."""
        return _canonical(self.to_json())

    @classmethod
    def from_json(cls, data: Mapping[str, Any], what: str = "cell") -> Cell:
        """Return the cell of JSON values; the inverse of ``to_json``.

        Raises:
            RecordError: begins with ``what`` and names the key that is missing or wrong.
        """
        keys: dict[str, Any] = {**convert(data, CellKeys, what)}
        if isinstance(keys["concurrency"], str):
            keys |= {"concurrency": 1, "word": keys["concurrency"]}
        return cls(**keys)
