"""Read and write lists of node names in Slurm's form, such as ``login,node[1-3]``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable


def hostlist(names: Iterable[str]) -> str:
    """Return names in Slurm's form, such as ``login,node[1-3]`` for node1, node2, node3 and login."""
    return _hostlist(tuple(names))


@functools.lru_cache(maxsize=64)  # ten thousand jobs leave out the same few lists of nodes
def _hostlist(names: tuple[str, ...]) -> str:
    # Group the numbers by the text before them. A name without a number is a group of its own.
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in sorted(set(names), key=lambda name: (len(name), name)):
        stem = name.rstrip("0123456789")
        number = name[len(stem) :]
        groups.setdefault((stem, number != ""), []).append(number)
    # Write each group.
    texts = []
    for (stem, _), numbers in sorted(groups.items()):
        if len(numbers) == 1:
            texts.append(stem + numbers[0])
        else:
            texts.append(f"{stem}[{_spans(numbers)}]")
    return ",".join(texts)


def _spans(numbers: Iterable[str]) -> str:
    """Return rising numbers, with spans of consecutive ones, such as ``1-3,8``."""
    spans: list[list[str]] = []
    last = ""
    for number in numbers:
        if len(last) == len(number) and int(last) + 1 == int(number):
            spans[-1][1:] = [number]
        else:
            spans.append([number])
        last = number
    return ",".join("-".join(span) for span in spans)


def hostnames(text: str) -> list[str]:
    """Return the names of a list in Slurm's form: ``n[1-2,08],login`` has n1, n2, n08 and login."""
    names = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names += _expand(part.strip())
    return names


def _expand(part: str) -> list[str]:
    """Return the names of one pattern. The last bracket changes fastest."""
    head, opened, rest = part.partition("[")
    if not opened:
        return [part]
    inside, _, tail = rest.partition("]")
    names = []
    for span in inside.split(","):
        for number in _span(span):
            names += [head + number + end for end in _expand(tail)]
    return names


def _span(span: str) -> list[str]:
    """Return the numbers of a span, with their zeros: 08, 09, 10 and 11 for ``08-11``."""
    first, _, last = span.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        return [span]
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
