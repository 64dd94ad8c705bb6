"""How often ``peakmark compare`` is wrong about simulated pairs of campaigns: unchanged rows that it
calls different, and changed ones that it does not find.

Values are lognormal, as rates and times are positive; ``spread`` is their coefficient of variation.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.method.promises import Count, Counts
from peakmark.resources import ROOT
from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.views import compare
from peakmark.views.compare import KEY, Dataset, dataset_of

Values = NDArray[np.float64]

ROWS, FASTER = 110, 11
"""Rows of a campaign; where some are faster, it is every eleventh."""
TABLES = {
    "cpu": "cpubench",
    "memory_throughput": "rambench",
    "disk_throughput": "diskbench",
    "network_throughput": "netbench",
}
GOLDEN = ROOT / "tests" / "unit" / "data" / "golden"
"""Records of real campaigns."""

Noise = Literal["normal", "as in real records", "with heavy tails"]


@dataclass(frozen=True)
class Pairs:
    """Pairs of campaigns.

    Attributes:
        repetitions: of each row.
        spread: of each row; 0: rows differ, from 0.2 to 5 %.
        drift: how far a table moves by itself during one campaign, as a share: a random walk.
        change: by what share every eleventh row of the second campaign is faster.
        turned: measured at one time, each cell of A beside that of B; else B wholly after A.
        noise: how the logarithms of repetitions spread.
    """

    repetitions: int = 6
    spread: float = 0.0
    drift: float = 0.0
    change: float = 0.0
    turned: bool = False
    noise: Noise = "normal"

    def __str__(self) -> str:
        spread = f"spread of {self.spread:.0%}" if self.spread else "spreads of 0.2 to 5 %"
        parts = [f"n = {self.repetitions}", spread]
        parts += [self.noise] if self.noise != "normal" else []
        parts += [f"drift of {self.drift:.0%}"] if self.drift else []
        return ", ".join([*parts, "at one time" if self.turned else "one after the other"])

    def compared(self, pairs: int, seed: int = 1) -> tuple[Count, Count, Count]:
        """So many pairs, judged by ``peakmark compare``: those that call an unchanged row different,
        the sum of the shares of their claims that are false (their mean is the false discovery
        rate), changed rows not found.
        """
        lot = np.random.default_rng((seed, *str(self).encode()))
        different = missed = changed = 0
        false = 0.0
        for _ in range(pairs):
            moved = self._moved(lot)
            spreads = np.full(ROWS, self.spread) if self.spread else 0.002 * 25 ** lot.random(ROWS)
            first, second = (self._side(lot, spreads, moved[side], side) for side in (0, 1))
            found, _, _ = compare.compare(first, second)
            is_faster = found["threads"].astype(int).mod(FASTER).eq(0) & bool(self.change)
            claimed = found["verdict"].isin(compare.CLAIMS)
            wrong = int((claimed & ~is_faster).sum())
            different += bool(wrong)
            false += wrong / claimed.sum() if wrong else 0.0
            missed += int((is_faster & found["verdict"].ne("better")).sum())
            changed += int(is_faster.sum())
        return Count(different, pairs), Count(false, pairs), Count(missed, changed)

    def _moved(self, lot: np.random.Generator) -> Values:
        """How far the machine has moved: campaign, row and round."""
        rounds = self.repetitions
        if not self.turned:  # tables move by equal steps from round to round
            steps = lot.normal(0, self.drift / np.sqrt(rounds), size=(len(TABLES), 2 * rounds))
            moved = np.cumsum(steps, axis=1)[np.arange(ROWS) % len(TABLES)]
            return np.stack([moved[:, :rounds], moved[:, rounds:]])
        # The machine moves by equal steps from cell to cell; A is first in every other round.
        steps = lot.normal(0, self.drift / np.sqrt(rounds * ROWS), size=2 * rounds * ROWS)
        moments = np.cumsum(steps).reshape(rounds, ROWS, 2).transpose(2, 1, 0)
        moments[:, :, 1::2] = moments[::-1, :, 1::2]
        return moments

    def _side(
        self, lot: np.random.Generator, spreads: Values, moved: Values, number: int
    ) -> Dataset:
        """Campaign A (0) or B (1) on a machine that ``moved`` so far, by row and round."""
        if self.noise == "as in real records":
            noise = lot.choice(residuals(), moved.shape)
        elif self.noise == "with heavy tails":  # Student's t, of standard deviation 1
            noise = lot.standard_t(3, moved.shape) / np.sqrt(3)
        else:
            noise = lot.normal(size=moved.shape)
        logs = noise * spreads[:, None] + moved
        logs[FASTER - 1 :: FASTER] += number * np.log1p(self.change)
        tables = [list(TABLES)[row % len(TABLES)] for row in range(ROWS)]
        rows = pd.DataFrame({"table": tables, "threads": [str(row + 1) for row in range(ROWS)]})
        rows = rows.assign(instrument=rows["table"].map(TABLES), workload="X", block_bytes=0)
        rows = rows.assign(
            variant="", node="", percentile="", trust="ok", wrong_codes="", unequal_nodes=""
        )
        facts: list[Any] = [{} for _ in range(ROWS)]
        rows = rows.assign(facts=facts)
        columns = [*KEY, "trust", "unequal_nodes", "facts"]
        return Dataset("AB"[number], rows[columns], pd.DataFrame(np.exp(logs)))


@cache
def residuals() -> Values:
    """Distances of real repetitions from the mean of their row, as logarithms in units of the
    standard deviation of their table: 1 in the mean square, with the tails that records have.
    """
    found: list[Values] = []
    for archive in sorted(GOLDEN.glob("*.tar.xz")):
        with tempfile.TemporaryDirectory() as folder:
            shutil.unpack_archive(archive, folder)
            side = dataset_of("golden", build.judge(Results.read(Path(folder))))
        tables: dict[str, list[Values]] = {}
        for table, line in zip(side.rows["table"], side.values.to_numpy(), strict=True):
            values = line[np.isfinite(line)]
            n = len(values)
            if n >= 3:
                logs = np.log(values)
                errors = (logs - logs.mean()) * np.sqrt(n / (n - 1))
                tables.setdefault(table, []).append(errors)
        every = [np.concatenate(errors) for errors in tables.values()]
        found += [errors / np.sqrt((errors**2).mean()) for errors in every]
    return np.concatenate(found)


def counted(pairs: int) -> Counts:
    """Unchanged campaigns that are called different; false claims and rows not found in others."""
    sizes, noises = (3, 6, 12), get_args(Noise)
    unchanged = [Pairs(n, noise=noise) for noise in noises for n in sizes]
    unchanged += [Pairs(n, 0.02) for n in sizes]
    unchanged += [Pairs(drift=0.05, turned=True)]
    for of in unchanged:
        yield f"unchanged campaigns, {of}", of.compared(pairs)[0]
    changed = [Pairs(n, 0.02, change=0.05, noise=noise) for noise in noises for n in sizes]
    changed += [
        Pairs(n, drift=0.05, change=change, turned=True) for n in (6, 10) for change in (0.02, 0.05)
    ]
    for of in changed:
        where = f"where a tenth of rows is {of.change:.0%} faster, {of}"
        _, false, missed = of.compared(pairs // 2)
        yield f"false claims {where}", false
        yield f"changed rows not found {where}", missed
