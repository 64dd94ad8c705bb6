"""What a campaign's configuration has of its own: the keys that are not as by default."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from peakmark import yamlfile
from peakmark.config.types import Campaign
from peakmark.resources import of_checkout


def preset_of(config: Mapping[str, Any]) -> str:
    """Return the preset that comes with peakmark and differs in nothing but the campaign's name.

    It is empty without one.
    """
    wanted = settings_of({**config, "campaign": None})
    return next((name for name, preset in presets().items() if preset == wanted), "")


@functools.cache
def presets() -> dict[str, dict[str, Any]]:
    """Return the settings of the presets that come with peakmark, without a name of a campaign."""
    found = {}
    for path in sorted(of_checkout("config/presets").glob("*.yaml")):
        found[path.stem] = settings_of({**yamlfile.read(path), "campaign": None})
    return found


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that are not as by default."""
    return filled(config, msgspec.to_builtins(Campaign()))


def filled(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the keys that hold nothing or their default."""
    kept = {}
    for key, value in config.items():
        default: Any = defaults.get(key)
        shown = value
        if isinstance(value, dict) and isinstance(default, dict):
            shown = filled(value, default)
        if shown not in (default, None, {}):
            kept[key] = shown
    return kept
