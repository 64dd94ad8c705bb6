# Snakemake without peakmark's environment: one sentence instead of a traceback about a missing module.
import sys
from importlib.util import find_spec

if find_spec("snakemake_logger_plugin_peakmark") is None:
    sys.exit(
        f"peakmark is not installed for the Python that runs this Snakemake ({sys.executable}): "
        "in its checkout run make setup, then source .venv/bin/activate, and start snakemake again"
    )
