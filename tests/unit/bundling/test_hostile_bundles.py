"""Bundles made to do harm."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import pytest
from tests.unit.hostile import Said

from peakmark import files
from peakmark.bundling import unbundle


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


def test_the_names_of_a_large_bundle_are_looked_at_once(tmp_path: Path) -> None:
    """Twice the entries take about twice the steps; comparing each with each would take four times."""

    def steps(count: int) -> int:
        bundle = zipped(
            tmp_path / f"{count}.zip", {f"cells/{number}.json": b"" for number in range(count)}
        )
        taken = 0

        def trace(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal taken
            taken += event == "c_call"

        with zipfile.ZipFile(bundle) as archive:
            sys.setprofile(trace)
            try:
                unbundle._entries(bundle, archive)
            finally:
                sys.setprofile(None)
        return taken

    assert steps(2000) < 2.5 * steps(1000)
