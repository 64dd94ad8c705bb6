"""Run the command line with ``python -m peakmark``."""

from peakmark.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
