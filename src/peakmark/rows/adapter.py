"""Temporary: findings from the objects of ``peakmark.analysis``."""

from __future__ import annotations

import json

import pandas as pd

from peakmark.analysis import Analysis
from peakmark.rows import schema


def findings(analysis: Analysis) -> pd.DataFrame:
    """Return the sentences on each table."""
    lines = []
    for name, rows in analysis.rows.items():
        for each in analysis.conclusions(rows):
            values = json.dumps(schema.to_json(each.message)["values"], ensure_ascii=False)
            lines.append({
                "table": name, "topic": each.heading, "code": each.message.code,
                "case": each.message.case, "values": values, "points": "[]", "text": each.text,
            })  # fmt: skip
    return schema.typed("findings", pd.DataFrame(lines))
