"""Page one: the machine, the score card, what limits the machine, and what to do next.

``build`` returns one JSON value that the terminal, Markdown, ``summary.json``, PDF and HTML show.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from peakmark.errors import PeakmarkError
from peakmark.formatting import date, duration, listed, percent, plural, quantity, typeset
from peakmark.rows import schema
from peakmark.rows.names import DISTURBANCES, FOLDER
from peakmark.rows.schema import CampaignFrames
from peakmark.statistics import ENOUGH
from peakmark.views import score_card
from peakmark.views.report import nodes
from peakmark.views.score_card import CardLine, Trust

MOST = 3
"""Largest number of causes, and of commands, on page one: more cannot be read in a minute."""
CAUSES = ("power-limited", "hot", "throttled", "cpu-quota", "io-limit", "shaped", "below-nominal")
"""Codes of warnings that say why a row stays below its limit."""
SATURATED = 0.8
"""DRAM, not the cores, is the limit if one thread reaches at least this share of all threads' rate."""
WAKING = 2.0
"""A wake-up shows if a lone round trip takes at least this many times as long as one of several at once."""
LEVEL = 0.05
"""Largest change of a headline since the last run, as a share, that is not mentioned."""
FIRST_RUN = "No earlier run of these rows on this machine."


def build(frames: CampaignFrames, earlier: CampaignFrames | None = None) -> dict[str, Any]:
    """Return page one, as words and numbers without markup.

    Args:
        frames: the campaign.
        earlier: the previous campaign on the same machine; None if there is none.

    Returns:
        A mapping with these keys:

        - ``title``: title of the campaign.
        - ``box``: name and text of each line on the machine.
        - ``card``: lines of the score card, see ``score_card.CardLine``.
        - ``dots``: what each dot of the card stands for: ``runs`` or ``nodes``.
        - ``causes``: sentences on what limits the machine.
        - ``steps``: commands for the next steps, each with its purpose.
        - ``since``: a sentence on the changes since the last run.
    """
    card = score_card.build(frames)
    return {
        "title": frames.campaign["name"],
        "box": [*nodes.box(frames), ["Measured", measured_when(frames)]],
        "card": [asdict(line) for line in card],
        "dots": "nodes" if any("node" in line.place for line in card) else "runs",
        "causes": list(causes(frames))[:MOST],
        "steps": list(steps(frames))[:MOST],
        "since": since(card, earlier),
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
    findings = frames.findings
    yield from findings.loc[findings["topic"].isin(["Two states", "Warm-up"]), "text"]
    own = frames.rows[frames.rows["is_own"]]
    measured = own[own["n"].gt(0)]
    for text in dict.fromkeys(text for text in measured["limit_finding"] if text):
        yield typeset(schema.message_of(json.loads(text)).full_sentence)
    yield from causes_in_warnings(frames, measured)
    is_disturbance = frames.warnings["code"].isin(DISTURBANCES)
    calm = measured[~measured["point"].isin(frames.warnings.loc[is_disturbance, "point"])]
    yield from saturation(calm)
    yield from waking(calm)


def causes_in_warnings(frames: CampaignFrames, measured: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each warning in ``CAUSES`` that rows have, with the number of these rows."""
    warnings = frames.warnings
    named = warnings[warnings["code"].isin(CAUSES) & warnings["point"].isin(measured["point"])]
    rows = Counter(named.drop_duplicates(["point", "code"])["code"])
    for code, count in rows.most_common():
        line = next(schema.lines(named[named["code"].eq(code)]))
        note = schema.message_of_line(line)
        yield typeset(f"In {count} of {len(measured)} rows {note.fact}.")


def saturation(measured: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if one thread reaches most of the rate at which all threads read DRAM."""
    reads = measured[measured["cache_level"].eq("DRAM") & measured["workload"].eq("RS")]
    reads = reads[reads["block_bytes"].eq(reads["block_bytes"].max())]
    if reads["concurrency"].nunique() < 2 or reads["node"].nunique() > 1:
        return
    ordered = reads.sort_values("concurrency", kind="stable")
    first, last = ordered.iloc[0], ordered.iloc[-1]
    if first["concurrency"] == 1 and first["value"] >= SATURATED * last["value"]:
        alone, together = (quantity(row["value"], "B/s", 3) for row in (first, last))
        yield (
            f"Memory, not the cores, limits reads from DRAM: one thread reads {alone},"
            f" {last['concurrency']} threads read {together}."
        )


def waking(measured: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if a lone round trip is clearly longer, because it wakes an idle CPU."""
    trips = measured[measured["workload"].eq("LAT-TCP")]
    if trips["concurrency"].nunique() < 2 or trips["node"].nunique() > 1:
        return
    ordered = trips.sort_values("concurrency", kind="stable")
    first, last = ordered.iloc[0], ordered.iloc[-1]
    if first["concurrency"] == 1 and first["value"] >= WAKING * last["value"]:
        alone, busy = (typeset(quantity(row["value"], "s", 2)) for row in (first, last))
        yield (
            f"A TCP round trip takes {alone} with 1 stream and {busy} with {last['concurrency']}: most of"
            " a lone round trip is likely the time to wake an idle CPU."
        )


# -- what to do next


def steps(frames: CampaignFrames) -> Iterator[tuple[str, str]]:
    """Yield commands that fit this campaign, each with its purpose, the most useful first."""
    campaign = frames.campaign
    folder = f"results/{campaign['name']}"
    command = f"peakmark run {campaign['preset'] or f'{folder}/config.json'}"
    if campaign["missing"]:
        yield command, f"measures the {plural(campaign['missing'], 'cell')} that are missing"
    own = frames.rows[frames.rows["is_own"] & frames.rows["n"].gt(0)]
    disturbed = frames.warnings[schema.is_disturbance(frames.warnings)]
    if 2 * own["point"].isin(disturbed["point"]).sum() > len(own):
        yield (
            f"{command} -- --config campaign=again",
            "measures everything again: do it when nothing else uses the machine",
        )
    if own["loopback"].any() and not campaign["on_cluster"]:
        yield f"{command} --slurm", "measures the network between two nodes of a cluster"
    if len(own) and own["n"].max() < ENOUGH and campaign["preset"]:
        yield "peakmark run", f"measures the default campaign, {ENOUGH} runs of each row"
    unknown = own[own["limit"].isna() & ~own["loopback"]]["subsystem"].unique()
    wanted = [name for name in ("memory", "disk", "network") if name in unknown]
    if wanted and not campaign["config"].get("site"):
        yield "peakmark init", f"writes a site file: state the limits of {listed(wanted)} there"
    yield (
        f"peakmark compare {folder} results/NEXT",
        "tells which rows differ after a change of the machine",
    )


# -- since the last run


def find_earlier(frames: CampaignFrames, folder: Path) -> CampaignFrames | None:
    """Return the newest earlier campaign in the same results folder with the same settings and hosts.

    Campaigns whose files were written by another version are ignored.
    """
    own_settings, own_newest = settings_and_time(frames.campaign)
    found: list[tuple[str, Path]] = []
    for path in folder.parent.glob(f"*/{FOLDER}/campaign.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            settings, newest = settings_and_time(json.loads(path.read_text(encoding="utf-8")))
            if settings == own_settings and newest < own_newest:
                found.append((newest, path.parents[1]))
    for _, place in sorted(found, reverse=True):
        with suppress(PeakmarkError):
            earlier = schema.read(place)
            if set(earlier.facts["host"]) == set(frames.facts["host"]):
                return earlier
    return None


def settings_and_time(campaign: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the settings of a campaign without its name, and the time of its newest record."""
    settings = {name: value for name, value in campaign["settings"].items() if name != "campaign"}
    return settings, campaign["times"]["newest"]


def since(card: Sequence[CardLine], earlier: CampaignFrames | None) -> str:
    """Return a sentence on the headlines that changed since the previous campaign on the same machine."""
    if earlier is None:
        return FIRST_RUN
    before = {line.point: line for line in score_card.build(earlier)}
    changed, level = [], 0
    for line in card:
        other = before.get(line.point)
        if other is None or Trust.NO in (line.trust, other.trust):
            continue
        text = change_of(line, other)
        if text:
            changed.append(text)
        else:
            level += 1
    newest = datetime.fromisoformat(earlier.campaign["times"]["newest"])
    when = f"Since {date(newest)} ({earlier.campaign['name']})"
    if level:
        changed.append(f"{plural(level, 'headline')} level")
    if not changed:
        changed = ["no headline can be compared"]
    return typeset(f"{when}: {listed(changed)}.")


def change_of(line: CardLine, before: CardLine) -> str:
    """Return the change of a headline, such as ``DRAM copy 12 % lower``.

    Return an empty text if the runs overlap or the medians are close.
    """
    if line.value is None or before.value is None:
        return ""
    change = line.value / before.value - 1
    is_apart = min(line.runs) > max(before.runs) or max(line.runs) < min(before.runs)
    if abs(change) <= LEVEL or not is_apart:
        return ""
    way = "higher" if change > 0 else "lower"
    return f"{line.title} {percent(abs(change))}% {way}"
