import subprocess
import sys
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from peakmark import checkers
from peakmark.measuring import build

make = checkers.checker.__wrapped__
"""Without the cache, as another process has it."""


def refuses(check: Any) -> bool:
    try:
        check({"schema": 1})
    except checkers.Unfit:
        return True
    return False


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    assert refuses(make("record", tmp_path))
    (file,) = tmp_path.glob("record_*.py")
    return file


def test_the_next_process_makes_no_checks_again(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastjsonschema, "compile_to_code", lambda *_: pytest.fail("made again"))
    assert refuses(make("record", kept.parent))


@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.9999])
def test_a_file_that_was_cut_is_made_anew(kept: Path, part: float) -> None:
    whole = kept.read_text()
    cut = whole[: int(len(whole) * part)]
    kept.write_text(cut[: cut.rfind("\n") + 1])
    assert refuses(make("record", kept.parent))
    assert kept.read_text() == whole


def test_checks_are_made_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refuses(make("machine", tmp_path / "file" / "checkers"))


def test_a_schema_that_changed_has_checks_of_its_own(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = kept.with_name("other.schema.json")
    other.write_text('{"type": "object"}')
    monkeypatch.setattr(checkers, "schema_path", lambda _: other)
    assert not refuses(make("record", kept.parent))
    assert len(list(kept.parent.glob("record_*.py"))) == 2


LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
import peakmark.__main__, peakmark.measuring.job
ours = [module for name, module in sys.modules.items() if name.startswith("peakmark")]
print("\\n".join(module.__cached__ for module in ours))
"""


def test_all_that_a_cell_loads_is_compiled_before_even_where_python_keeps_nothing(
    tmp_path: Path,
) -> None:
    package = Path(checkers.__file__).parent
    copy = tmp_path / "src" / "peakmark"
    for source in package.rglob("*.py"):
        target = copy / source.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    build.python(copy, tmp_path / "checkers")
    argv = [sys.executable, "-B", "-c", LOADED, str(tmp_path / "src")]
    loaded = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path
    ).stdout.split()
    assert len(loaded) > 20 and all(str(copy) in path for path in loaded)
    assert [path for path in loaded if not Path(path).is_file()] == []
    assert len(list((tmp_path / "checkers").rglob("*.pyc"))) == 2


def test_a_check_fills_nothing_in(tmp_path: Path) -> None:
    config: dict[str, Any] = {"report": {}}
    make("config", tmp_path, partial=True)(config)
    assert config == {"report": {}}
