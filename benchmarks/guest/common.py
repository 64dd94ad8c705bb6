"""What both kinds of guest share."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from peakmark.errors import PeakmarkError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class GuestError(PeakmarkError):
    """The guest, or the function in it, did not come to its end."""


def missing(needed: Mapping[str, str]) -> str | None:
    """Which of these programs (name -> Debian package) are not here, and what to install; None when
    all are.
    """
    names = [name for name in needed if shutil.which(name, path=SYSTEM_PATH) is None]
    if not names:
        return None
    return f"{', '.join(names)} not found: install {' '.join(dict.fromkeys(needed[name] for name in names))}"
