"""A checkout of one's own for each test, with the compiled kernels of this one."""

from pathlib import Path

import pytest
from tests.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.copied(tmp_path / "a checkout")  # with a space: paths reach no shell unquoted
