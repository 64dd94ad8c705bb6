"""The unit of a table on a page: one in which its values read well. Files keep the unit of their
headings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from peakmark.tools.tables import Table

UNITS = {
    ("B/s", 1e-6): "MB/s",
    ("B/s", 1e-9): "GB/s",
    ("bit/s", 1e-6): "Mb/s",
    ("bit/s", 1e-9): "Gb/s",
    ("s", 1e3): "ms",
    ("s", 1e6): "µs",
    ("s", 1e9): "ns",
    ("op/s", 1e-9): "GigaOPS",
    ("1/s", 1.0): "IOPS",
}
_TIMES = (1e3, 1e6, 1e9)


def fitted(table: Table, values: Iterable[float]) -> Table:
    """The table with the unit in which ``values`` (SI) are printed: times in the largest that
    leaves none below 1.
    """
    least = min(values, default=0.0)
    factor = table.factor
    if table.unit == "s" and least > 0:
        factor = next((scale for scale in _TIMES if least * scale >= 1), _TIMES[-1])
    unit = UNITS[table.unit, factor]
    return replace(table, factor=factor, shown="" if unit == table.quantity else unit)
