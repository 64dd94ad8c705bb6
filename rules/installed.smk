# Snakemake without peakmark's environment: one sentence instead of a traceback about a missing module.
import sys
from importlib.util import find_spec

if find_spec("snakemake_logger_plugin_peakmark") is None:
    sys.exit(
        f"peakmark is not installed for the Python that runs this Snakemake ({sys.executable}): "
        "in a checkout of peakmark run make setup and source .venv/bin/activate, "
        f"or install it with {sys.executable} -m pip install CHECKOUT; then start snakemake again"
    )
