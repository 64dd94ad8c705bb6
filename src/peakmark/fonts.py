"""Which fonts the report needs for the words that a person gave it, beyond those that Typst embeds.

First DejaVu Sans, which comes with matplotlib (Hebrew, Georgian, symbols, faces), then what is
installed here (Chinese and the like). What no font has is refused before anything is measured:
boxes in a title help nobody.
"""

from __future__ import annotations

import functools
import os
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from peakmark.errors import ConfigError
from peakmark.formatting import listed

ALWAYS = 0x1C4
"""Every character below has a glyph in the embedded fonts: most titles need no look at any font."""
WRITTEN = ("title", "author", "authors", "course")
"""Keys of ``report:`` with words for the first page."""
FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
KINDS = (".ttf", ".otf", ".ttc")
PACKAGES = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "HANGUL"), "fonts-noto-cjk")
"""First word of a character's Unicode name -> Debian package with its font."""
SYMBOLS, OTHERS = "fonts-symbola", "fonts-noto-core"


def check(report: Mapping[str, Any]) -> None:
    """Errors: ConfigError when the words of ``report:`` have characters that no font here can show."""
    for key in WRITTEN:
        if lost := _choose(_written(report, key))[1]:
            packages = sorted(set(map(_package, lost)))
            raise ConfigError(
                f"report.{key} has {' '.join(lost)}, for which no font here has a glyph: install {listed(packages)}, or "
                "write it in other letters"
            )


def needed(report: Mapping[str, Any], text: str = "") -> list[Path]:
    """Font files for the words of ``report:`` and for ``text``, none for most. Errors: ConfigError,
    see ``check``.
    """
    check(report)
    return _choose("".join(_written(report, key) for key in WRITTEN) + text)[0]


def _written(report: Mapping[str, Any], key: str) -> str:
    """What stands under a key of ``report:``; of authors their names and affiliations."""
    value = report.get(key) or ""
    return (
        value
        if isinstance(value, str)
        else " ".join(f"{author['name']} {author.get('affiliation') or ''}" for author in value)
    )


def known(files: Iterable[Path]) -> frozenset[int]:
    """The characters that the embedded fonts and these can show."""
    return frozenset(
        code
        for path in (_shipped("DejaVuSansMono"), *files)
        for code in _characters(path)
        if code >= 32
    )


def _choose(text: str) -> tuple[list[Path], list[str]]:
    """Font files that show ``text``, as few as are found in order, and the characters that none of
    them can.
    """
    rest = {ord(character) for character in text if ord(character) >= ALWAYS}
    if not rest:
        return [], []
    rest -= _characters(_shipped("DejaVuSansMono"))
    chosen = []
    for path in (_shipped("DejaVuSans"), *_installed()) if rest else ():
        covered = rest & _characters(path)
        if covered:
            chosen.append(path)
            rest -= covered
        if not rest:
            break
    return chosen, [chr(code) for code in sorted(rest)]


def _shipped(name: str) -> Path:
    from matplotlib import get_data_path

    return Path(get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"


def _installed() -> list[Path]:
    """Font files of this machine and this user, in the order of their names."""
    own = [Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "fonts", Path("~/.fonts")]
    folders = [*FOLDERS]
    for folder in own:
        with suppress(RuntimeError):  # a user without a home directory
            folders.append(folder.expanduser())
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in KINDS
    ]


@functools.cache
def _characters(path: Path) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(str(path)).get_charmap())
    except (OSError, RuntimeError):  # no font, or one of pictures without outlines
        return frozenset()


def _package(character: str) -> str:
    script = unicodedata.name(character, "").partition(" ")[0]
    return PACKAGES.get(script, SYMBOLS if unicodedata.category(character) == "So" else OTHERS)
