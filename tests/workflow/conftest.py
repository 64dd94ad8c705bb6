"""A checkout of one's own for each test, with the compiled kernels of this one."""

import shutil
from pathlib import Path

import pytest
from tests.checkout import TINY, Checkout


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with a whole campaign ``tiny`` and its report; tests must not change it."""
    checkout = Checkout.copied(tmp_path_factory.mktemp("reported") / "a checkout")
    checkout.measure(checkout.write_config("tiny.yaml", TINY))
    return checkout


@pytest.fixture
def measured(reported: Checkout, tmp_path: Path) -> Checkout:
    """A copy of ``reported`` that a test may change."""
    return Checkout(Path(shutil.copytree(reported.directory, tmp_path / "a checkout")))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.copied(tmp_path / "a checkout")  # with a space: paths reach no shell unquoted
