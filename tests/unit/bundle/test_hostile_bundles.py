"""Bundles made to do harm."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.unit.hostile import Said

from peakmark import files
from peakmark.bundle import unbundle


def zipped(path: Path, content: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, peakmark: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unbundle, "_extract", lambda *_: pytest.fail("it was unpacked"))
    monkeypatch.setattr(files, "free", lambda _: 10)
    done = peakmark("report", zipped(tmp_path / "some.zip", {"cells/a.json": b"a" * 1000}))
    assert done.returncode == 1 and "make room" in done.stderr
