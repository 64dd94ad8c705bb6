"""Why a cell was not measured: an error with a code of ``messages.yaml``. Records keep the code and
the values.
"""

from __future__ import annotations

from typing import Any

from peakmark import messages
from peakmark.errors import PeakmarkError


class Reason(PeakmarkError):
    """Raised with a code of ``messages.yaml`` and its values; with a sentence where that is all
    that is known.

    code  what happened, for programs; None where only the sentence tells
    """

    def __init__(self, reason: str, **values: Any) -> None:
        super().__init__(*(messages.texts(reason, values) if values else (reason,)))
        self.code, self.values = reason if values else None, values


class MeasurementError(Reason):
    """A cell could not be measured: the tool failed, hung, or its result is not valid."""


class Unavailable(Reason):
    """The cell is not possible on this machine (a missing tool, an instruction set, an alignment):
    not a failure.
    """
