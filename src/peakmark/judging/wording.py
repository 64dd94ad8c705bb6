"""The words of notes and of the phrases in them, read from ``data``."""

from __future__ import annotations

from typing import NamedTuple

from peakmark import data


class Words(NamedTuple):
    """What was seen, and what to do about it or what explains it: this paper says once."""

    fact: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.remedy}" if self.remedy else self.fact


NOTES = {line["note"]: Words(line["fact"], line["remedy"]) for line in data.table("notes")}
PARTS = {line["phrase"]: line["words"] for line in data.table("phrases")}
