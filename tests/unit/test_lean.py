"""What stands in for the standard library in a cell's process does what the standard library does."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from peakmark import lean


def classes(where: ModuleType) -> tuple[Any, Any]:
    """The same two classes by ``peakmark.lean`` and by ``dataclasses``."""

    @where.dataclass(frozen=True)
    class Point:
        """Where."""

        x: int
        y: int = 2
        words: dict[str, int] = where.field(default_factory=dict, hash=False)
        hidden: list[int] = where.field(default_factory=list, hash=False, repr=False)

        @property
        def total(self) -> int:
            return self.x + self.y

    @where.dataclass
    class Pair:
        first: Point
        rest: tuple[Point, ...] = ()
        table: dict[str, list[Point]] = where.field(default_factory=dict)

    return Point, Pair


POINT, PAIR = classes(lean)  # type: ignore[arg-type]
TRUE_POINT, TRUE_PAIR = classes(dataclasses)

DONE: dict[str, Callable[[Any, Any], Any]] = {
    "defaults": lambda point, _: (point(1).x, point(1).y, point(1).words, point(1).total),
    "by place and by name": lambda point, _: point(1, words={"a": 1}, y=5).__dict__,
    "equal": lambda point, _: (point(1) == point(1, 2), point(1) == point(2), point(1) == (1, 2, {}, [])),
    "hash": lambda point, _: hash(point(1, words={"a": 1})) == hash(point(1)),
    "makers": lambda point, _: point(1).words is point(1).words,
    "docstring": lambda point, _: point.__doc__,
    "places": lambda point, pair: (point.__match_args__, pair.__match_args__),
}
WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda point, _: point(),
    "one too many": lambda point, _: point(1, 2, {}, [], 5),
    "unknown": lambda point, _: point(1, z=3),
    "twice": lambda point, _: point(1, x=1),
    "twice, the last": lambda point, _: point(1, 2, {}, [], hidden=[]),
    "no hash": lambda point, pair: hash(pair(point(1))),
}


@pytest.mark.parametrize("name", DONE)
def test_a_class_is_that_of_dataclasses(name: str) -> None:
    assert DONE[name](POINT, PAIR) == DONE[name](TRUE_POINT, TRUE_PAIR)


@pytest.mark.parametrize("name", WRONG)
def test_it_refuses_what_dataclasses_refuses(name: str) -> None:
    for pair in ((POINT, PAIR), (TRUE_POINT, TRUE_PAIR)):
        with pytest.raises(TypeError):
            WRONG[name](*pair)


def test_what_is_frozen_stays() -> None:
    point = POINT(1)
    with pytest.raises(AttributeError):
        point.x = 2
    with pytest.raises(AttributeError):
        del point.x
    pair = PAIR(point)
    pair.first = POINT(3)
    assert point.x == 1 and pair.first.x == 3


def test_it_shows_itself_without_what_is_hidden() -> None:
    assert repr(POINT(1)) == "Point(x=1, y=2, words={})"


@pytest.mark.parametrize("replace", [lean.replace, dataclasses.replace])
@pytest.mark.parametrize("asdict", [lean.asdict, dataclasses.asdict])
def test_the_functions_of_both_take_its_objects(replace: Any, asdict: Any) -> None:
    given = {"a": 1}
    pair = PAIR(POINT(1), (POINT(2),), {"all": [replace(POINT(3), words=given)]})
    plain = asdict(pair)
    true = TRUE_PAIR(TRUE_POINT(1), (TRUE_POINT(2),), {"all": [TRUE_POINT(3, words=given)]})
    assert plain == dataclasses.asdict(true)
    plain["table"]["all"][0]["words"]["a"] = 2
    assert given == {"a": 1}
    with pytest.raises(TypeError):
        replace(POINT(1), z=1)


def test_dataclasses_knows_it() -> None:
    assert dataclasses.is_dataclass(POINT)
    assert [one.name for one in dataclasses.fields(POINT)] == ["x", "y", "words", "hidden"]


@pytest.mark.parametrize("loaded", ["", "import hashlib"])
def test_checksum(loaded: str) -> None:
    code = f"{loaded}\nfrom peakmark import lean; print(lean.sha256(b'abc' * 999))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(b"abc" * 999).hexdigest()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_time(zone: str) -> None:
    code = "from peakmark import lean; print(lean.now())"
    before = datetime.datetime.now(datetime.UTC)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=True
    )
    after = datetime.datetime.now(datetime.UTC)
    text = done.stdout.strip()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", text)
    said = datetime.datetime.fromisoformat(text)
    assert before - datetime.timedelta(milliseconds=1) <= said <= after
    assert said.isoformat(timespec="milliseconds") == text


def test_host_name() -> None:
    assert lean.host_name() == socket.gethostname()


def test_a_folder_comes_and_goes_and_links_are_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("here")
    made = lean.new_folder(tmp_path, "peakmark-")
    assert made.parent == tmp_path and made.stat().st_mode & 0o777 == 0o700
    assert lean.new_folder(tmp_path, "peakmark-") != made
    (made / "deep" / "er").mkdir(parents=True)
    (made / "deep" / "file").write_text("gone")
    (made / "to a folder").symlink_to(kept)
    (made / "to nowhere").symlink_to(tmp_path / "nowhere")
    (made / "deep" / "to a file").symlink_to(kept / "file")
    lean.remove_tree(made)
    assert not made.exists() and (kept / "file").read_text() == "here"
    link = tmp_path / "link"
    link.symlink_to(kept)
    lean.remove_tree(link)
    lean.remove_tree(tmp_path / "nowhere")
    assert link.is_symlink() and (kept / "file").exists()
