"""The own figure against that of a reference: which references count, and what is said of the
ratio.
"""

import pytest
from tests.unit import campaign_data as make

from peakmark.rows import schema


@pytest.mark.parametrize(("own", "tool", "workload", "details", "counts"), [
    ("cpubench", "hpl", "DP", {"seconds": 0.08}, False),
    ("cpubench", "hpl", "DP", {"seconds": 20.0}, True),
    ("rambench", "pmbw", "RS", {"estimate": True}, False),
    ("rambench", "pmbw", "RS", {}, True),
])  # fmt: skip
def test_neither_a_tiny_matrix_nor_an_estimate_is_a_reference(
    tmp_path, own, tool, workload, details, counts
):
    ours, theirs = make.runs(own, workload, 5e10), make.runs(tool, workload, 2e10, details=details)
    frames = make.frames(tmp_path / "c", ours + theirs)
    (reference,) = schema.lines(frames.rows[~frames.rows["is_own"]])
    assert reference.is_comparable == counts
    assert ("Reference" in set(frames.findings["topic"])) == counts
    assert ("disagreement" in set(frames.warnings["code"])) == counts
