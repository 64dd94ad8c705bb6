"""Programs that a test needs or makes, and waiting for what they do."""

import os
import shutil
import time
from collections.abc import Callable, Collection
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


def path_without(folder: Path, places: str, names: Collection[str]) -> Path:
    """Make a folder for PATH with links to all programs in ``places``, a PATH, but those named."""
    folder.mkdir()
    for place in places.split(":"):
        if not os.access(place, os.R_OK | os.X_OK):
            continue  # missing, or of another user
        for program in Path(place).iterdir():
            if program.name not in names and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder
