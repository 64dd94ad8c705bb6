"""Whatever stands in a file, a cell or a tool's JSON: a result or one sentence, never a traceback.
Any value of any key of a configuration or a site: ``config/test_any_value.py``.
"""

from __future__ import annotations

import copy
import json
import os
import random
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.hostile import places
from tests.unit.tools import samples
from tests.unit.tools.test_outputs import GOOD

from peakmark import yamlfile
from peakmark.cell import Cell
from peakmark.config import campaign as config
from peakmark.config import site
from peakmark.errors import ConfigError, ParseError, RecordError

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "100"))
"""make fuzz takes many more."""
SEEDS = st.integers(0, 2**32)
FOLDER = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
HOSTILE = [
    "$(id)", "`id`", "a b", "a'b", 'a"b', "a\nb", ";id", "-rf", "--help", "é½٣", "../../x",
    "/etc/passwd", "{x}", "",
]  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.sampled_from(HOSTILE),
    st.text(max_size=20),
    st.sampled_from(
        ["1KiB", "0", "-1", "1e99", "1e400", "nan", "inf", "0x10", "1_000", "999999999TiB", "1.5B"]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
)


def one_sentence(error: Exception) -> None:
    text = str(error)
    assert text.strip()
    assert "Traceback" not in text


def changed(value: Any, seed: int, new: Any, grow: bool) -> Any:
    """A copy with one place replaced, removed, or (``grow``) given one more entry."""
    chance = random.Random(seed)  # noqa: S311
    copied = copy.deepcopy(value)
    path = chance.choice(list(places(copied)))
    inner = copied
    for step in path[:-1]:
        inner = inner[step]
    if grow and isinstance(inner[path[-1]], dict):
        inner[path[-1]][chance.choice(["seconds", "x", "blocks", "total", "size"])] = new
    elif grow and isinstance(inner[path[-1]], list):
        inner[path[-1]].append(new)
    elif chance.random() < 0.2:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return copied


def assert_inside(cell: Cell) -> None:
    """A cell's record lies below the campaign, at the depth that all records have."""
    parts = Path(cell.id).parts
    assert len(parts) == 5
    assert ".." not in parts
    assert "\n" not in cell.id and "\0" not in cell.id


@settings(max_examples=EXAMPLES, suppress_health_check=FOLDER)
@given(
    text=st.one_of(
        st.binary(max_size=200), st.text(alphabet=string.printable, max_size=200).map(str.encode)
    )
)
@example(b"campaign: !!python/object/apply:os.system ['id']")
@example(b"a: &a [*a]")
@example(b"\xff\xfe")
@example(b"? [1, 2]\n: 3")
@example(b"2026-11-21: x")
@example(b"campaign: 2026-99-99")
@example(b"scratch: " + b"[" * 3000)
def test_any_file_as_configuration_or_site(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(text)
    for read in (lambda: config.complete(yamlfile.read(path)), lambda: site.load(path)):
        try:
            read()
        except ConfigError as error:
            one_sentence(error)


CELL = samples.cell("fio", "RR", "psync", 4096, 2, size=1 << 20).to_json()


@settings(max_examples=2 * EXAMPLES)
@given(seed=SEEDS, new=VALUES, grow=st.booleans())
@example(seed=0, new="../../../../etc", grow=False)
def test_a_changed_cell_stays_in_its_campaign(seed: int, new: Any, grow: bool) -> None:
    try:
        cell = Cell.from_json(changed(CELL, seed, new, grow))
    except RecordError as error:
        one_sentence(error)
    else:
        assert_inside(cell)
        assert Cell.from_json(json.loads(cell.spec())) == cell


@pytest.mark.parametrize("key", ["subsystem", "instrument", "workload", "variant", "node"])
@pytest.mark.parametrize(
    "word", ["../x", "a/b", "..", ".", "a\0b", "a\nb", "", "-rf", "a b", "$(id)", "é"]
)
def test_no_part_of_a_cell_is_more_than_a_name(key: str, word: str) -> None:
    if (key, word) == ("variant", ""):
        return
    with pytest.raises(RecordError):
        Cell.from_json({**CELL, key: word})


JSON_CASES = [case for case in GOOD if samples.text_of(case).lstrip().startswith("{")]


@settings(max_examples=3 * EXAMPLES)
@given(case=st.sampled_from(sorted(JSON_CASES)), seed=SEEDS, new=VALUES, grow=st.booleans())
def test_a_tools_json_with_a_changed_value(case: str, seed: int, new: Any, grow: bool) -> None:
    document = changed(json.loads(samples.text_of(case)), seed, new, grow)
    try:
        parsed = samples.parse(case, json.dumps(document))
    except ParseError as error:
        one_sentence(error)
    else:
        assert all(row.value > 0 and row.value < float("inf") for row in parsed.measurements)
