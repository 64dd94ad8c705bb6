"""Check an archive for machines without a network, before anything is installed from it: this Python, and every file."""

import hashlib
import sys
from pathlib import Path

folder = Path(__file__).resolve().parent
wanted = (folder / "python").read_text().strip()
running = f"{sys.version_info[0]}.{sys.version_info[1]}"
if running != wanted:
    sys.exit(f"this archive is for Python {wanted}, and {sys.executable} is {running}: set PYTHON")
for line in (folder / "SHA256SUMS").read_text().splitlines():
    digest, name = line.split(maxsplit=1)
    if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
        sys.exit(f"{folder / name} is damaged: copy the archive again")
