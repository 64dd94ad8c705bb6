"""Formulas that a person writes in a site file: plain arithmetic over named numbers, nothing else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from peakmark.errors import ConfigError

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(formula: str, names: Mapping[str, float]) -> float:
    """Value of an arithmetic formula (+ - * / and parentheses). Errors: ConfigError with one
    sentence.
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, names)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"formula {formula!r} is not arithmetic: allowed are numbers, names, + - * / and ( )"
        ) from error
    except ZeroDivisionError as error:
        raise ConfigError(f"formula {formula!r} divides by zero") from error
    except ConfigError as error:
        raise ConfigError(f"formula {formula!r}: {error}") from error


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in names:
            return float(names[name])
        case ast.Name(id=name):
            raise ConfigError(
                f"{name} is not defined; known are {', '.join(sorted(names)) or 'no names'}"
            )
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case _:
            raise ConfigError("allowed are numbers, names, + - * / and ( )")


def names_in(formula: str) -> set[str]:
    """The names an arithmetic formula uses."""
    return {
        node.id for node in ast.walk(ast.parse(formula, mode="eval")) if isinstance(node, ast.Name)
    }
