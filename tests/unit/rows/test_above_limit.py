"""The kernels on this machine against its limits: more than 105 % means that operations or cycles
are counted wrong.
"""

import json
import os
import subprocess

import pytest

from peakmark import limits
from peakmark.machine.facts import collect
from peakmark.resources import ROOT
from peakmark.rows.rows import MOST

CPUBENCH = ROOT / "build/kernels/cpubench"
ATTEMPTS = 3
"""Another program on the CPU at the wrong moment can make the clock look slower than it was, but
not three times over.
"""


@pytest.fixture(scope="module")
def facts():
    if not CPUBENCH.exists():
        pytest.skip("the kernels are not built")
    return collect()


@pytest.mark.parametrize("workload", ["QP", "HP", "SP", "DP", "FP32", "DPMIX", "FP32MIX", "QPDOT"])
@pytest.mark.parametrize("isa", ["scalar", "sse2", "avx2", "avx512", "neon"])
def test_no_kernel_is_above_the_limit(workload, isa, facts):
    """In whatever instruction set: the limit is that of the best one the CPU has."""
    argv = [str(CPUBENCH), "--workload", workload, "--isa", isa, "--seconds", "0.1"]
    argv += ["--warmup", "0.05", "--cpus", str(min(os.sched_getaffinity(0)))]
    shares = []
    for _ in range(ATTEMPTS):
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode == 77:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        clock = max(result[f"clock_hz_{when}"] or 0 for when in ("before", "after", "loaded"))
        limit = limits.for_row(
            limits.Question("cpu", workload, "", None, 1, "rate", facts, clock_hz=clock)
        )
        share = limit.share(result["value"])
        if share is None:
            pytest.skip(f"no limit is known: {limit.formula}")
        shares.append(share)
        if share <= MOST:
            return
    pytest.fail(f"{workload} with {isa} reached {shares} of {limit.formula}")
