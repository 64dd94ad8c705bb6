"""One name for one thing: no class name stands twice, and no name that was given up comes back."""

import ast
from collections import Counter

from peakmark.resources import ROOT

SOURCES = (ROOT / "src").rglob("*.py")
GONE = {
    "JobReason", "Judged", "Mistake", "Naming", "Note", "Phrase", "Quoted", "Remark", "Seat",
    "Sheet", "Side", "Spot", "Together", "Unlike", "Wording", "around", "before_cell",
    "before_job", "ear", "headline_spot", "is_turned", "keeping", "lift_limit", "mouth", "no_heir",
    "or_sentence", "plan_there", "refusals", "seats", "settled", "stand_aside", "surely",
    "survive_hangup", "what_failed", "worded",
}  # fmt: skip
"""Names outside the vocabulary of the field, each replaced by a term that users know."""


def defined():
    """(name, place, whether it is a class) of all that the sources define."""
    for path in SOURCES:
        yield path.stem, str(path), False
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield node.name.lstrip("_"), place, isinstance(node, ast.ClassDef)
            elif isinstance(node, ast.arg):
                yield node.arg, place, False
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, place, False


def test_names_are_those_of_the_field_and_each_class_has_its_own():
    names = list(defined())
    assert [(name, place) for name, place, _ in names if name in GONE] == []
    classes = Counter(name for name, _, is_class in names if is_class)
    assert [name for name, count in classes.items() if count > 1] == []
