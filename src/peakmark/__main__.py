"""``python -m peakmark``."""

from peakmark.cli import main

raise SystemExit(main())
