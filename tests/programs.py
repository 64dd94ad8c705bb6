"""Programs that a test needs or makes, and waiting for what they do."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

LIMIT_S = 90.0


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test where none of these programs is on PATH."""
    missing = not any(map(shutil.which, names))
    return pytest.mark.skipif(missing, reason=f"{' or '.join(names)} is not here")


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"in {LIMIT_S:g} s it did not happen that {what}"
        time.sleep(0.01)


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
