"""Programs that a test needs, and that a user without root's packages may lack."""

import shutil

import pytest


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test where none of these programs is on PATH."""
    missing = not any(map(shutil.which, names))
    return pytest.mark.skipif(missing, reason=f"{' or '.join(names)} is not here")
