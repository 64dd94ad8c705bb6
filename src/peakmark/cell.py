"""``Cell``, one run of one instrument at one point.

The id of a cell is the path of its record below ``results/<campaign>/cells/``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from peakmark.catalogue import SHAPES, is_together
from peakmark.formatting import format_size

Scalar = str | int | float | bool | None
NodeName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]


class CellKeys(Struct, kw_only=True, omit_defaults=True):
    """Keys of a cell in a plan or a record. Names are parts of a path, so they have no slash and no space."""

    subsystem: Literal["cpu", "memory", "disk", "network", "mpi", "gpu"]
    instrument: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*\Z")]
    workload: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*\Z")]
    variant: Annotated[
        str,
        Meta(pattern=r"^([a-z0-9][a-z0-9_-]*)?\Z"),
    ]
    block: Annotated[int, Meta(ge=1)] | None
    concurrency: Annotated[int, Meta(ge=1)] | Literal["numa", "socket", "cores", "cpus", "gpus"]
    node: NodeName
    peer: NodeName = ""
    repetition: Annotated[int, Meta(ge=0)]
    # The bounds exclude NaN and infinity, which JSON does not have.
    options: dict[str, str | int | Annotated[float, Meta(ge=-1e300, le=1e300)] | bool | None]

    def spec(self) -> str:
        """Return the cell as canonical JSON.

        A record counts only if the cell in it has the same text as the cell in the plan.
        """
        return msgspec.json.encode(self, order="sorted").decode()


@dataclass(frozen=True)
class Cell:
    """One measurement: one run of one instrument at one point.

    Attributes:
        subsystem: cpu, memory, disk, network, mpi or gpu.
        instrument: name in ``peakmark.tools.REGISTRY``, such as ``cpubench`` or ``fio``.
        workload: workload of the subsystem, see ``catalogue.WORKLOADS``; ``ALL`` for a reference tool
            that measures several workloads in one execution.
        variant: kind of access with separate rows: ``block`` or ``pool`` for memory, ``psync`` or
            ``io_uring-qd8`` for disk, ``gso`` or ``busy-poll`` for network, ``2-nodes`` or
            ``same-socket`` for mpi, ``sustained`` or ``burst`` for gpu, ``to``, ``from``, ``both`` or ``peer`` for LINK; empty without variants.
        block: bytes of a block, record or message. None for cpu, and for LAT of the memory if the node
            that measures chooses the area.
        concurrency: number of threads, processes, streams or GPUs, or of ranks on each node. If ``word`` is set, it is 1
            until the node that measures replaces it.
        node: name of the node that measures, or ``any``.
        repetition: number of the repetition, from 0.
        options: all other settings of the execution, such as seconds and sizes, as JSON scalars. They
            are not part of the id. If an option changes, Snakemake measures the cell again.
        word: one of ``machine.topology.WORDS``, or ``gpus``, instead of a number; empty for a number.
        peer: node of the server, if ``pairs`` names it. ``node`` is then the client's node.
    """

    subsystem: str
    instrument: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    node: str
    repetition: int
    options: dict[str, Scalar] = field(default_factory=dict, hash=False)
    word: str = ""
    peer: str = ""

    @property
    def point(self) -> str:
        """Return the folder name of the point, such as ``RWS-pool_1MiB_x2``, ``LAT_auto_x1`` or ``DP_none_xcores``."""
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
        """Return whether the node that measures chooses the block, as for the memory workload LAT."""
        # A workload of ``SHAPES`` has no block: one cell measures blocks of all sizes.
        has_block = self.subsystem == "memory" and self.workload not in SHAPES
        return has_block and self.block is None

    @property
    def area(self) -> int | None:
        """Return the bytes of the block, or of the area that the node chose for an ``automatic`` cell.

        Return None if the cell has no block, or if the node has not chosen an area yet.
        """
        chosen = self.options.get("area")
        if self.automatic and isinstance(chosen, int):
            return chosen
        return self.block

    @property
    def asked(self) -> int | str:
        """Return the concurrency as in the configuration: a word or a number."""
        return self.word or self.concurrency

    @property
    def id(self) -> str:
        """Return the id, which is the path of the record below ``cells/`` without ``.json``."""
        return f"{self.row}/{self.repetition}"

    @cached_property
    def row(self) -> str:
        """Return the id without the repetition."""
        return f"{self.subsystem}/{self.instrument}/{self.point}/{self.place}"

    @property
    def is_together(self) -> bool:
        """Return whether other nodes or pairs of nodes are measured at the same moment, in one job."""
        return is_together(self.variant)

    @property
    def place(self) -> str:
        """Return the node; for a pair, client and server as ``node1+node2``."""
        return f"{self.node}+{self.peer}" if self.peer else self.node

    @property
    def keys(self) -> CellKeys:
        """Return the cell as a plan or a record holds it."""
        fields = {name: getattr(self, name) for name in CellKeys.__struct_fields__}
        return CellKeys(**fields | {"concurrency": self.asked})

    def to_json(self) -> dict[str, Any]:
        """Return the cell as JSON values, with the keys of ``CellKeys``."""
        values: dict[str, Any] = msgspec.to_builtins(self.keys, order="deterministic")
        return values

    def spec(self) -> str:
        """Return the cell as canonical JSON, see ``CellKeys.spec``."""
        return self.keys.spec()

    @classmethod
    def of(cls, stored: CellKeys) -> Cell:
        """Return the cell that a plan or a record holds, from its checked keys."""
        keys = {name: getattr(stored, name) for name in CellKeys.__struct_fields__}
        if isinstance(keys["concurrency"], str):
            # A word such as "cores": the number is 1 until the node that measures knows it.
            keys |= {"concurrency": 1, "word": keys["concurrency"]}
        return cls(**keys)
