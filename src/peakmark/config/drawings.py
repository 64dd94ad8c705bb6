"""Figures that a layout asks for, since its report drew them; tables that it names none for keep
their usual ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.errors import ConfigError
from peakmark.tools.tables import BY_NAME, Table

RESERVED = ("overview", "fleet")
HALVES = ("pool", "block")  # of the memory's usual figures


@dataclass(frozen=True)
class Drawing:
    """One figure: which rows of ``table`` it shows, and how.

    kind       panels: a panel for each workload, with every program and the limit; together: a line
               for each workload in one panel, or in one for each block size; bars: a bar for each
               row
    value      measured, efficiency (share of the limit) or deviation (standard deviation of the
               repetitions)
    workloads  which, without any all; so are the variants
    """

    name: str
    table: Table
    title: str
    kind: str
    value: str
    workloads: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()

    def takes(self, workload: str, variant: str) -> bool:
        """Whether rows of this workload and variant are drawn."""
        return (not self.workloads or workload in self.workloads) and (
            not self.variants or variant in self.variants
        )


def _usual(named: Table) -> set[str]:
    """The names of the usual figures of all tables but this one, which has those of the layout
    instead.
    """
    return {
        "_".join(filter(None, (table.name, part)))
        for table in BY_NAME.values()
        if table is not named
        for part in ("", *HALVES, *SUBSYSTEMS[table.subsystem].workloads)
    }


def read(where: str, entries: Sequence[Mapping[str, Any]]) -> tuple[Drawing, ...]:
    """The figures of a layout, ``where`` names it. Errors: ConfigError in one sentence."""
    figures: list[Drawing] = []
    for entry in entries:
        figure = Drawing(
            name=entry["name"],
            table=BY_NAME[entry["of"]],
            title=entry["title"],
            kind=entry.get("kind", "panels"),
            value=entry.get("value", "measured"),
            workloads=tuple(entry.get("workloads", ())),
            variants=tuple(entry.get("variants", ())),
        )
        if figure.kind == "panels" and figure.value != "measured":
            raise ConfigError(
                f"{where}: figure {figure.name!r} has kind panels and value {figure.value}: panels show what was measured; "
                "kind together and bars show the others too"
            )
        if figure.name in (*RESERVED, *(other.name for other in figures), *_usual(figure.table)):
            raise ConfigError(
                f"{where}: two figures are called {figure.name!r}: give this one a name of its own"
            )
        figures.append(figure)
    return tuple(figures)
