"""Whatever is in a file, a cell or a tool's JSON: a result or one sentence, never a traceback."""

import json
import os
import string
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.campaign_data import cell_of
from tests.unit.hostile import changed
from tests.unit.tools import samples
from tests.unit.tools.test_outputs import REFERENCE_CASES

from peakmark import yamlfile
from peakmark.config import campaign as config
from peakmark.config import site
from peakmark.errors import ConfigError, ParseError

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "100"))
"""make fuzz takes many more."""
CHANCES = st.randoms(use_true_random=False)
FOLDER = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def one_sentence(error):
    text = str(error)
    assert text.strip()
    assert "Traceback" not in text


@settings(max_examples=EXAMPLES, suppress_health_check=FOLDER)
@given(
    text=st.one_of(
        st.binary(max_size=200), st.text(alphabet=string.printable, max_size=200).map(str.encode)
    )
)
def test_any_file_as_configuration_or_site(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_bytes(text)
    for read in (lambda: config.complete(yamlfile.read(path)), lambda: site.load(path)):
        try:
            read()
        except ConfigError as error:
            one_sentence(error)


JSON_CASES = [case for case in REFERENCE_CASES if samples.text_of(case).lstrip().startswith("{")]


@settings(max_examples=3 * EXAMPLES)
@given(case=st.sampled_from(JSON_CASES), chance=CHANCES)
def test_a_tools_json_with_a_changed_value(case, chance):
    document = changed(json.loads(samples.text_of(case)), chance)
    try:
        parsed = samples.parse(case, json.dumps(document))
    except ParseError as error:
        one_sentence(error)
    else:
        assert all(row.value > 0 and row.value < float("inf") for row in parsed.measurements)


CELL = samples.cell("fio", "RR", "psync", 4096, 2, size=1 << 20).to_json()


def test_the_spec_does_not_depend_on_the_order_of_options():
    one, other = (
        cell_of({**CELL, "options": options}) for options in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one.spec() == other.spec()


@pytest.mark.parametrize("key", ["subsystem", "block", "options", "repetition"])
def test_an_incomplete_cell_is_refused(key):
    part = {name: value for name, value in CELL.items() if name != key}
    with pytest.raises(msgspec.ValidationError, match=f"required field `{key}`"):
        cell_of(part)


@pytest.mark.parametrize("key", ["subsystem", "instrument", "workload", "variant", "node"])
@pytest.mark.parametrize(
    "word", ["../x", "a/b", "..", ".", "a\0b", "a\nb", "", "-rf", "a b", "$(id)", "é"]
)
def test_no_part_of_a_cell_is_more_than_a_name(key, word):
    if (key, word) != ("variant", ""):
        with pytest.raises(msgspec.ValidationError):
            cell_of({**CELL, key: word})


@settings(max_examples=2 * EXAMPLES)
@given(chance=CHANCES)
def test_a_changed_cell_stays_in_its_campaign(chance):
    try:
        cell = cell_of(changed(CELL, chance))
    except msgspec.ValidationError:
        return
    parts = Path(cell.id).parts
    assert len(parts) == 5 and ".." not in parts
    assert "\n" not in cell.id and "\0" not in cell.id
    assert cell_of(json.loads(cell.spec())) == cell
