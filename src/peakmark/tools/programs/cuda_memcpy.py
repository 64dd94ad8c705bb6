"""cuMemcpy and cuMemset, the functions of NVIDIA's driver that copy and set memory."""

from __future__ import annotations

from peakmark.catalogue import GPU_LINKS
from peakmark.cell import Cell
from peakmark.tools.base import Coverage
from peakmark.tools.programs.gpubench import VendorLibrary


class CudaMemcpy(VendorLibrary):
    """Functions of the driver, measured in B/s.

    - RWS: cuMemcpyDtoD.
    - WS: cuMemsetD32.
    - LINK: cuMemcpy with pinned memory.
    """

    name = "cuda-memcpy"
    reference_call = "memcpy"
    heading = "cuMemcpy"
    place = 2
    rows = (Coverage("gpu", ("RWS", "WS")), Coverage("gpu", ("LINK",), variants=GPU_LINKS))
    build = "nothing to build: the calls are part of NVIDIA's driver"

    def arguments(self, cell: Cell) -> list[str]:
        argv = super().arguments(cell)
        if cell.workload == "WS":
            argv[1] = "memset"  # instead of ``reference_call``, the value of --reference
        return argv


INSTRUMENT = CudaMemcpy()
