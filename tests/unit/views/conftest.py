"""What tests of several figures share."""

import pytest
from tests.unit import campaign_data as make


@pytest.fixture(scope="session")
def cpu(tmp_path_factory):
    """Two numbers of threads, three repetitions, HPL beside them; the limit from the site facts."""
    records = [record for record in make.sweep() if record["cell"]["subsystem"] == "cpu"]
    return make.frames(tmp_path_factory.mktemp("results") / "c", records, facts=make.ZEN3)
