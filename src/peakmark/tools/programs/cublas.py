"""cuBLAS, NVIDIA's library, with which gpubench multiplies matrices of 8192 x 8192 elements."""

from __future__ import annotations

from peakmark.catalogue import MATRIX
from peakmark.tools.base import Coverage
from peakmark.tools.programs.gpubench import VendorLibrary


class Cublas(VendorLibrary):
    """cuBLAS. It measures TC-*, FP64 and FP32 in op/s, sustained. FP8 also needs libcublasLt."""

    name = "cublas"
    reference_call = "cublas"
    heading = "cuBLAS"
    place = 1
    rows = (Coverage("gpu", ("FP64", "FP32", *MATRIX), variants=("sustained",)),)
    build = "pip install nvidia-cublas-cu12, then add site-packages/nvidia/cublas/lib to LD_LIBRARY_PATH"


INSTRUMENT = Cublas()
