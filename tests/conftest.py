"""What neither a machine under load nor a shell that runs the tests in the background may decide."""

import signal

import pytest
from hypothesis import settings


def pytest_configure(config: pytest.Config) -> None:
    # A shell without job control starts what runs in the background with Ctrl-C ignored, and
    # programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A single example may take seconds while other processes have the CPUs.
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")
