"""In the guest: call the function that was ordered and write what it returns. ``python -m
tests.guest.inside FOLDER``
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any


def main(directory: Path) -> None:
    """Whatever happens there is a result: that of the function, or its error."""
    answer: dict[str, Any]
    try:
        order = json.loads((directory / "order.json").read_text())
        module, _, name = order["function"].partition(":")
        answer = {"result": getattr(importlib.import_module(module), name)(order["argument"])}
        text = json.dumps(answer)
    except BaseException:  # this is the last place where it can be told
        text = json.dumps({"error": traceback.format_exc()})
    part = directory / "result.json.part"
    with part.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    part.rename(directory / "result.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
