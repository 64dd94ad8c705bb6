"""How the Snakefile tells a user what he did wrong."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from snakemake_interface_common.exceptions import ApiError

from peakmark.errors import PeakmarkError, sentence

Result = TypeVar("Result")


class UserError(ApiError):
    """Printed by Snakemake as one line: without a traceback there is no place in the rules that it
    would add.
    """

    @property
    def __traceback__(self) -> TracebackType | None:
        return None

    @__traceback__.setter
    def __traceback__(self, value: TracebackType | None) -> None:
        """Whoever passes the error on sets it."""


def as_workflow_error(function: Callable[[], Result]) -> Result:
    """What a user or his machine did wrong is told in a sentence. Errors: Mistake."""
    try:
        return function()
    except PeakmarkError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(sentence(error)) from None
