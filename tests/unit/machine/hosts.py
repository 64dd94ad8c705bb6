"""A host that is a folder: files as the kernel shows them, and tools that print what real ones
printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.unit import campaign_data

from peakmark.machine.host import Host

DATA = campaign_data.DATA


def host(root: Path, files: Mapping[str, str], tools: Mapping[str, str] | None = None) -> Host:
    """A machine made of files below ``root`` and of what its tools print, by the tool's name and
    arguments.
    """
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text)
    outputs = dict(tools or {})

    def run(argv: Sequence[str]) -> str | None:
        line = " ".join(argv)
        return next((text for start, text in outputs.items() if line.startswith(start)), None)

    return Host(root, run)
