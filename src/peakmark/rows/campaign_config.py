"""The keys of a campaign's configuration that differ from the default, and the preset they match."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from peakmark import yamlfile
from peakmark.config.types import Campaign
from peakmark.resources import of_checkout


def preset_of(config: Mapping[str, Any]) -> str:
    """Return the name of the shipped preset that has the settings of a configuration.

    The campaign's name is not compared. Return an empty name if there is no such preset.
    """
    wanted = settings_of({**config, "campaign": None})
    return next((name for name, preset in presets().items() if preset == wanted), "")


@functools.cache
def presets() -> dict[str, dict[str, Any]]:
    """Return name of each shipped preset -> its settings, without the name of a campaign."""
    found = {}
    for path in sorted(of_checkout("config/presets").glob("*.yaml")):
        found[path.stem] = settings_of({**yamlfile.read(path), "campaign": None})
    return found


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a configuration that differ from the default."""
    return without_defaults(config, msgspec.to_builtins(Campaign()))


def without_defaults(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the keys that are empty or equal their default."""
    kept = {}
    for key, value in config.items():
        default: Any = defaults.get(key)
        shown = value
        if isinstance(value, dict) and isinstance(default, dict):
            shown = without_defaults(value, default)
        if shown not in (default, None, {}):
            kept[key] = shown
    return kept
