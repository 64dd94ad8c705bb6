"""Why a cell was not measured: codes with values, and what each says, once. Records keep the code and the values too.

A value stands as it is, or in a form: ``{need:size}`` for bytes as cells give them, ``{memory:GB}`` as memory is sold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from peakmark.errors import MORE_MEMORY, OUT_OF_MEMORY, PeakmarkError
from peakmark.units import format_size, gigabytes


class Reason(PeakmarkError):
    """Raised with a code of ``WORDS`` and the ``values`` in its sentence; with a sentence where that is all that is known.

    code  what happened, for programs; None where only the sentence tells
    """

    def __init__(self, reason: str, **values: Any) -> None:
        super().__init__(*(worded(reason, values) if values else (reason,)))
        self.code, self.values = reason if values else None, values


class MeasurementError(Reason):
    """A cell could not be measured: the tool failed, hung, or its result is not valid."""


class Unavailable(Reason):
    """The cell is not possible on this machine (a missing tool, an instruction set, an alignment): not a failure."""


_ENDED = "{program} {how}{said}"
_USED = f"{_ENDED}; {OUT_OF_MEMORY}: the {{limit:size}} that it may use were used up"
_ALLOCATES = "{program} would allocate {need:size}, but the job may use {may:size}"

WORDS: dict[str, tuple[str, str]] = {
    # of the program
    "no-instrument": ("unknown instrument {name!r}: known are {known}", ""),
    "no-program": ("{names} not found on {host}", "{remedy}"),
    "not-run": ("{path} cannot be executed: {why}", ""),
    "no-answer": ("{path} {arguments} did not answer in {seconds:g} s", ""),
    "other-program": ("{path} does not look like {program}: asked for its version it printed {printed}", ""),
    "no-kernel": ("the kernel {path} cannot be read ({why})", "make kernels compiles it"),
    "cut-kernel": ("the kernel {path} is cut off after {count} bytes", "`make clean kernels` compiles it anew"),
    "other-kernel": (
        "{path} was compiled for another architecture than this node's, {machine}",
        "run there, once: make -C src/kernels BUILD={build}",
    ),
    "broken-kernel": ("{why}", "`make clean kernels` compiles it anew"),
    "modules-slow": ("loading the modules {names} took longer than {seconds:.0f} s", ""),
    "modules": ("cannot load the modules {names}: {said}", "module avail lists them"),
    # what a program cannot do
    "workload": ("{program} has no workload {workload}: it has {known}", ""),
    "variant": ("{program} has no variant {variant}: it has {known}", ""),
    "variant-of": ("{program}: workload {workload} has {wanted}, not {variant}", ""),
    "stores-nothing": ("{program}: {workload} stores nothing: its variant is pool, not {variant}", ""),
    "nothing-like": ("{program} has nothing like {workload}: {why}", ""),
    "range": ("{program} takes {least} to {most} {what}, the cell asks for {value}", ""),
    "size-range": ("{program} takes {what} of {least:size} to {most:size}, the cell asks for {value:size}", ""),
    "lines": ("{program} takes blocks of a multiple of {line} B, the cell's has {block} B", ""),
    "blocks-of-pool": (
        "{program} numbers blocks of a thread with 32 bits, and its part of the pool of {pool:size} has more of {block:size}",
        "",
    ),
    "small-file": (
        "a file of {file:size} for each of {threads} threads has fewer records of {record:size} than the {depth} in flight",
        "make size larger",
    ),
    "largest-record": ("the largest record of {program} is {largest:size}, the cell's is {record:size}", ""),
    "one-stream": ("{program} measures one stream, the cell asks for {streams}", ""),
    "store-libc": ("{program} has no memcpy or memset", "set store: temporal or streaming"),
    "store-streaming": (
        "{program} writes through the caches, the stores of this row are streaming",
        "set store: temporal",
    ),
    "routine": ("{program} has no routine {routine} for instruction set {isa} on this CPU", ""),
    "area": (
        "{program} measures a fixed list of array sizes, and {area:size} in all for {threads} thread(s) is not among them",
        "use a power of two of blocks and threads",
    ),
    "share": (
        "a total of {total} is less than {least} for each of {threads} threads",
        "give a larger total, or fewer threads a grid of their own",
    ),
    "budget": (
        "HPL cannot solve even N = {n} in budget_s = {seconds:g} s on any machine",
        "raise budget_s or lower nb",
    ),
    "budget-here": (
        "HPL in {program} cannot solve even N = {n} in budget_s = {seconds:g} s and {memory:GB} of memory",
        "raise budget_s or lower nb",
    ),
    # of the node
    "memory": (_ALLOCATES, "make the pool smaller or ask for more memory"),
    "memory-granted": (f"{OUT_OF_MEMORY}: {_ALLOCATES}", MORE_MEMORY),
    "sector": (
        "direct I/O on {disk} moves multiples of {sector} B; the next larger record is {larger:size}",
        "",
    ),
    "no-rights": (
        "{path} may not open its socket as this user",
        "as root: setcap cap_net_raw+p {path}, or sysctl -w net.ipv4.ping_group_range='0 2147483647'",
    ),
    "not-here": ("{said}", ""),
    "system": ("{why}", ""),
    # how a run ended
    "exit": (_ENDED, ""),
    "timeout": (_ENDED, ""),
    "not-started": ("cannot start {program}: {why}", ""),
    "memory-of-node": (f"{_ENDED}; {OUT_OF_MEMORY}: the memory of {{host}} ran out", ""),
    "memory-used": (_USED, ""),
    "memory-of-job": (_USED, MORE_MEMORY),
    "server-ended": (f"{_ENDED}; the server {{server}}", ""),
    "wrote-too-much": (f"{_ENDED}; {{wrote}}", ""),
    # of the far end
    "no-listening": ("the server {program} did not start to listen{said}", ""),
    "no-far-end": ("the server's end on {host} did not come up: {why}", ""),
    "no-loopback": (
        "no server can listen on {address} of {host}: {why}",
        "with IPv4's loopback it can: ip link set lo up (as root)",
    ),
    "no-port": ("no server can listen on {address} of {host}: {why}", ""),
    "other-route": (
        "{host} reaches {address} of {peer} through {near}, not through {interface}",
        "give the interface an address in one network on all nodes, or change interface:",
    ),
    "no-job": ("a cell of two nodes runs inside a Slurm job of two nodes: there is no {variable}", ""),
    "no-second-node": ("job {job} has the nodes {nodes}: two are needed, one of them {host}", ""),
    "no-interface": ("{host} has no interface {interface!r} with an IPv4 address: there {known}", "change interface:"),
    "no-route": ("{host} finds no way to {peer} over IPv4, which the network cells need: {why}", ""),
    "no-address": ("no interface of {host} has the address {address} that leads to {peer}", ""),
    "raw-not-kept": (
        "{cell} was measured, but what its tool printed cannot be written to {folder} ({why})",
        "make room or mend its rights, then start again; what was written before is whole",
    ),
}
"""Code -> what is so, and what to do about it."""


class _Value:
    """A value as templates may ask for it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, form: str) -> str:
        if form in _FORMS:
            return _FORMS[form](self.value)
        return ", ".join(map(str, self.value)) if isinstance(self.value, list | tuple) else format(self.value, form)

    def __repr__(self) -> str:
        return repr(self.value)


_FORMS: dict[str, Callable[[Any], str]] = {"size": format_size, "GB": gigabytes}


def worded(code: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """What is so, and what can be done about it."""
    forms = {name: _Value(value) for name, value in values.items()}
    fact, remedy = WORDS[code]
    return fact.format_map(forms), remedy.format_map(forms)
