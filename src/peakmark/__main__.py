"""``python -m peakmark``, as the rules call it."""

from peakmark.cli import main

raise SystemExit(main())
