"""Page one: the machine, the score card, and what limits the machine.

``build`` returns one JSON value that the terminal, Markdown, ``summary.json``, PDF and HTML show.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from peakmark.formatting import date, duration, plural, typeset
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.views import score_card
from peakmark.views.report import nodes

MOST = 3
"""Largest number of causes on page one: more cannot be read in a minute."""
CAUSES = ("power-limited", "hot", "throttled", "cpu-quota", "io-limit", "shaped", "below-nominal")
"""Codes of warnings that say why a row stays below its limit."""


def build(frames: CampaignFrames) -> dict[str, Any]:
    """Return page one, as words and numbers without markup.

    Returns:
        A mapping with these keys:

        - ``title``: title of the campaign.
        - ``box``: name and text of each line on the machine.
        - ``card``: lines of the score card, see ``score_card.CardLine``.
        - ``dots``: what each dot of the card stands for: ``runs`` or ``nodes``.
        - ``causes``: sentences on what limits the machine.
    """
    card = score_card.build(frames)
    return {
        "title": frames.campaign["name"],
        "box": [*nodes.box(frames), ["Measured", measured_when(frames)]],
        "card": [asdict(line) for line in card],
        "dots": "nodes" if any("node" in line.place for line in card) else "runs",
        "causes": list(causes(frames))[:MOST],
    }


def measured_when(frames: CampaignFrames) -> str:
    """Return when a campaign was measured, how long it took, and how often each row was measured."""
    times = frames.campaign["times"]
    if not times["records"]:
        return "nothing measured yet"
    first = datetime.fromisoformat(times["first"]).astimezone(UTC)
    own = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    runs = plural(int(own["n"].median()), "run") if len(own) else "no run"
    took = duration(times["elapsed"])
    return f"{date(first)} from {first:%H:%M} UTC, in {took}; {runs} of each row"


# -- what limits it


def causes(frames: CampaignFrames) -> Iterator[str]:
    """Yield sentences on what limits the machine, the most important first."""
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    for text in dict.fromkeys(text for text in measured["limit_finding"] if text):
        yield typeset(schema.message_of(json.loads(text)).full_sentence)
    yield from causes_in_warnings(frames, measured)


def causes_in_warnings(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each warning in ``CAUSES`` that rows have, with the number of these rows."""
    warnings = frames.warnings
    named = warnings[warnings["code"].isin(CAUSES) & warnings["point"].isin(measured["point"])]
    rows = Counter(named.drop_duplicates(["point", "code"])["code"])
    for code, count in rows.most_common():
        line = next(schema.lines(named[named["code"].eq(code)]))
        note = schema.message_of_line(line)
        yield typeset(f"In {count} of {len(measured)} rows {note.fact}.")
