# SPDX-License-Identifier: MIT

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyPeakmark(PythonPackage):
    """Tells how close a cluster node comes to its physical limits in CPU, memory, disk and network.

    From a checkout: ``spack dev-build py-peakmark@1.0.0``. Spack's builtin repository of July 2026
    lacks py-msgspec and py-typst, and has Snakemake up to 9.14: ``spack create --template python``
    makes a recipe from PyPI, ``spack edit snakemake`` adds a version.
    """

    pypi = "peakmark/peakmark-1.0.0.tar.gz"

    license("MIT", checked_by="peakmark")

    version("1.0.0")

    variant("tools", default=True, description="Reference tools that it measures beside")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.27:", type="build")

    # Kernels are compiled where they measure.
    depends_on("c", type=("build", "run"))
    depends_on("gmake", type=("build", "run"))

    with default_args(type=("build", "run")):
        depends_on("snakemake@9.17:")
        depends_on("py-snakemake-interface-executor-plugins@9.3.2:")
        depends_on("py-snakemake-interface-logger-plugins@2:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-markdown-it-py@3:")
        depends_on("py-matplotlib@3.8:")
        depends_on("py-msgspec@0.19:")
        depends_on("py-numpy@1.26:")
        depends_on("py-pandas@3.0:")
        depends_on("py-psutil@5.9:")
        depends_on("py-pyarrow@15:")
        depends_on("py-pyyaml@6:")
        depends_on("py-rich@13:")
        depends_on("py-scipy@1.12:")
        depends_on("py-seaborn@0.13:")
        depends_on("py-typst@0.15.0")

    with when("+tools"):
        depends_on("fio", type="run")
        depends_on("hpl", type="run")
        depends_on("iozone", type="run")
        depends_on("iperf3", type="run")
        depends_on("likwid", type="run")
        depends_on("qperf", type="run")
