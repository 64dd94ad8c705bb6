"""``repetitions:`` of a configuration: a number, or what decides how many of those planned are
made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from peakmark.errors import ConfigError
from peakmark.units import parse_duration


@dataclass(frozen=True)
class Criterion:
    """At least ``least`` repetitions, at most ``most``, none beyond the first of which ``until`` is
    reached.

    until     half the 95 % interval of the median as a share of the median
    within_s  seconds that all repetitions beyond ``least`` of the rows with this criterion may take
              together, on each node; None: no limit but ``most``
    """

    least: int
    most: int
    until: float
    within_s: float | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Repetitions that a row has after each round: 6 to 30 are (6, 9, 13, 19, 28, 30)."""
        counts = [self.least]
        while counts[-1] < self.most:
            counts.append(min(self.most, counts[-1] + max(1, counts[-1] // 2)))
        return tuple(counts)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


def parse(where: str, value: Any) -> Criterion | None:
    """The criterion of a ``repetitions`` entry that fits the schema, None for a plain number.
    Errors: ConfigError.
    """
    if not isinstance(value, Mapping):
        return None
    if value["max"] <= value["min"]:
        raise ConfigError(
            f"{where}.max is {value['max']}: allowed is more than {where}.min, which is {value['min']}"
        )
    within = value.get("within")
    return Criterion(
        value["min"],
        value["max"],
        _share(f"{where}.until", value["until"]),
        None if within is None else parse_duration(f"{where}.within", within),
    )


def _share(where: str, value: str | float) -> float:
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", str(value))
    share = float(match.group(1)) / (100 if match.group(2) else 1) if match else 0.0
    if not 0 < share < 1:
        raise ConfigError(
            f"{where} is {json.dumps(value, ensure_ascii=False)}: allowed is a share between 0 and 1, such as 2% or 0.02"
        )
    return share
