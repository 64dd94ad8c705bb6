"""The compiled kernels of this machine: one build for all nodes of one architecture."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from peakmark.errors import MeasurementError

HEAD_BYTES = 20  # as far as e_machine
# e_machine of <elf.h>, by what uname calls the machine.
_ELF = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243, "s390x": 22, "loongarch64": 258}


def program(folder: Path, name: str, machine: str | None = None) -> Path:
    """A kernel that this machine can run: ``<folder>/<machine>/<name>`` if it exists, else ``<folder>/<name>``.

    Errors: MeasurementError when it was compiled for another architecture, with the command that compiles one.
    """
    machine = machine or os.uname().machine
    special = folder / machine / name
    path = special if special.exists() else folder / name
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise MeasurementError(
            f"the kernel {path} cannot be read ({error.strerror}): make kernels compiles it"
        ) from error
    if head[:4] == b"\x7fELF" and len(head) < HEAD_BYTES:
        raise MeasurementError(
            f"the kernel {path} is cut off after {len(head)} bytes: `make clean kernels` compiles it anew"
        )
    if head[:4] == b"\x7fELF" and machine in _ELF:
        order = "<" if head[5] == 1 else ">"
        if struct.unpack_from(f"{order}H", head, 18)[0] != _ELF[machine]:
            raise MeasurementError(
                f"{path} was compiled for another architecture than this node's, {machine}: "
                f"run there, once: make -C src/kernels BUILD={(folder / machine).resolve()}"
            )
    return path.resolve()
