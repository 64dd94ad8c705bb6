"""How large a matrix HPL can solve in a given time: pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

# flop per cycle of one core in double precision, by what the CPU can do. A guess for N, not a
# limit: see limits/.
_FLOPS_PER_CYCLE = (
    ({"avx512f"}, 24.0),
    ({"avx2", "fma"}, 16.0),
    ({"avx"}, 8.0),
    ({"sse2"}, 4.0),
    ({"neon"}, 8.0),
)
_EFFICIENCY = 0.65
_CLOCK_HZ = 2.5e9
_START_S = 0.5
_MEMORY_SHARE = 0.8  # HPL's own FAQ

# hpcc cannot select HPL: it runs its other tests first. Measured with hpcc 1.5.0 on a 2-core Zen 3:
# random access on a table of about half the matrix, a power of two, 4 updates a word: through MPI
# 0.14 us an update, at most 60 s, done twice; locally 35 ns an update with its check, four times.
# All else grows like HPL itself. The model's seconds beside those measured: N = 1000 1.6 (1.0),
# 2000 5.0 (3.2), 4000 20 (14 to 18), 8000 86 (85).
_MPI_UPDATE_S, _MPI_LIMIT_S, _LOCAL_UPDATE_S, _OTHER_TESTS = 1.4e-7, 60.0, 3.5e-8, 1.6


def guess_rate(cpu: Mapping[str, Any], flags: frozenset[str], threads: int) -> float:
    """flop/s that HPL may reach with that many cores, from the machine facts' clock and instruction
    sets.
    """
    clock = cpu.get("clock_hz")
    known = (
        [clock.get(key) for key in ("nominal", "observed", "maximum")]
        if isinstance(clock, Mapping)
        else [clock]
    )
    hz = next(
        (float(value) for value in known if isinstance(value, int | float) and value > 0), _CLOCK_HZ
    )
    per_cycle = next((flops for needs, flops in _FLOPS_PER_CYCLE if needs <= flags), 2.0)
    return threads * hz * per_cycle * _EFFICIENCY


def memory_bytes(n: int) -> int:
    """Bytes of the matrix, a fifth more for everything else."""
    return math.ceil(8 * n * n * 1.2)


def wall_seconds(n: int, rate: float, hpcc: bool) -> float:
    """Wall time of a run with a matrix of n x n at ``rate`` flop/s, of all of hpcc's tests with
    ``hpcc``.
    """
    solve = (2 / 3 * n**3 + 1.5 * n**2) / rate
    generate = 4e-8 * n * n  # once to solve it and once to check it
    if not hpcc:
        return _START_S + solve + generate
    updates = 4.0 * 2.0 ** math.floor(math.log2(max(n * n / 2 * 1.05, 2)))
    random_access = (
        2 * 1.1 * min(updates * _MPI_UPDATE_S, _MPI_LIMIT_S) + 4 * updates * _LOCAL_UPDATE_S
    )
    return _START_S + solve * (1 + _OTHER_TESTS) + 3 * generate + random_access


def choose_n(budget_s: float, rate: float, memory: int, nb: int, hpcc: bool) -> int | None:
    """The largest multiple of ``nb`` that fits the time and 80 % of ``memory`` bytes; None if two
    blocks do not.
    """
    largest = int(math.sqrt(_MEMORY_SHARE * memory / 8)) // nb
    low, high = 1, largest
    while low < high:
        middle = (low + high + 1) // 2
        if wall_seconds(middle * nb, rate, hpcc) <= budget_s:
            low = middle
        else:
            high = middle - 1
    fits = largest >= 2 and low >= 2 and wall_seconds(low * nb, rate, hpcc) <= budget_s
    return low * nb if fits else None
