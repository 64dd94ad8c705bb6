"""Fonts for what a person wrote."""

from __future__ import annotations

import os

import pytest

from peakmark import fonts
from peakmark.errors import ConfigError


def test_a_user_without_home_and_name_has_no_fonts_of_his_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container that runs under a number that nobody has."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    with pytest.raises(
        ConfigError, match=r"report\.title has .*, for which no font here has a glyph"
    ):
        fonts.check({"title": "\U0010fffd"})
