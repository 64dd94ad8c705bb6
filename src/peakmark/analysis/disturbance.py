"""What the noise around repetitions means for their row, as notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peakmark.analysis.measured import DEFAULT
from peakmark.messages import Message, Severity, Value, message

MATTERS = 0.05
"""Share of the CPUs' time that, taken from the measurement, changes a figure by more than a quiet
machine's spread.
"""


def find(
    noises: Sequence[Mapping[str, Any]], server: str = "", spare: float = 0.0
) -> Iterator[Message]:
    """Remarks on the noise of a row's repetitions, as records hold it.

    server  the host of the server, where it is that one's noise
    spare   CPUs that the measurement leaves to others: what runs there takes nothing from pinned
            threads

    A median stands while fewer than half of the repetitions are disturbed by more than a twentieth
    of a CPU or of all CPUs' time: then the remark casts no doubt.
    """
    during = [noise["during"] for noise in noises if noise.get("during")]
    where = message("server", host=server) if server else ""
    yield from _others(during, len(noises), where, spare)
    yield from _steal(during, len(noises), where)
    yield from _held_back(during, len(noises), where)
    yield from _limit(noises, where)


def weight(disturbed: int, n: int) -> Severity:
    """Of what disturbed so many of ``n`` repetitions enough to change their figure."""
    return Severity.UNSURE if 2 * disturbed >= n else Severity.NOTE


def often(count: int, n: int, where: Value = "") -> Value:
    """In how many of ``n`` repetitions; nothing of a single one, of which there is nothing to
    count.
    """
    return message("often", where=where, count=count, n=n) if n > 1 else ""


def _meanwhile(count: int, n: int, where: Value) -> Value:
    return often(count, n, where) or message("meanwhile", where=where)


def _others(
    during: Sequence[Mapping[str, Any]], n: int, where: Value, spare: float
) -> Iterator[Message]:
    disturbed = [noise for noise in during if noise["others"] > DEFAULT.others]
    if not disturbed:
        return
    worst = max(disturbed, key=lambda noise: float(noise["others"]))
    users = message("other-users", users=worst["users"]) if worst["users"] else ""
    yield message(
        "other-load",
        weight(sum(float(noise["others"]) - spare > MATTERS for noise in disturbed), n),
        cpus=worst["others"],
        often=_meanwhile(len(disturbed), n, where),
        busy=message("busy", busy=worst["busy"], users=users)
        if worst["busy"]
        else message("hidden"),
    )


def _steal(during: Sequence[Mapping[str, Any]], n: int, where: Value) -> Iterator[Message]:
    disturbed = [
        noise["steal"]
        for noise in during
        if noise["steal"] is not None and noise["steal"] > DEFAULT.steal
    ]
    if disturbed:
        level = weight(sum(share > MATTERS for share in disturbed), n)
        yield message(
            "steal", level, share=max(disturbed), often=_meanwhile(len(disturbed), n, where)
        )


def _held_back(during: Sequence[Mapping[str, Any]], n: int, where: Value) -> Iterator[Message]:
    held = [noise["throttled_s"] / noise["seconds"] for noise in during if noise.get("throttled_s")]
    if held and max(held) > 0.01:
        yield message(
            "throttled", Severity.UNSURE, share=max(held), often=_meanwhile(len(held), n, where)
        )
    hot = sum(bool(noise.get("hot")) for noise in during)
    if hot:
        yield message("hot", Severity.UNSURE, often=_meanwhile(hot, n, where))


def _limit(noises: Sequence[Mapping[str, Any]], where: Value) -> Iterator[Message]:
    """The clock that is allowed, not the one just now: CPUs that wait are slow, and that means
    nothing.
    """
    limits = [
        float(noise[when]["clock_limit_hz"])
        for noise in noises
        for when in ("before", "after")
        if (noise.get(when) or {}).get("clock_limit_hz")
    ]
    if limits and max(limits) / min(limits) > 1.01:
        yield message(
            "clock-limit",
            Severity.UNSURE,
            where=where,
            low=min(limits) / 1e9,
            high=max(limits) / 1e9,
        )


def heat(noises: Sequence[Mapping[str, Any]]) -> Value:
    """How warm it was before the first and after the last where sensors could be read, else
    nothing.
    """
    if not noises:
        return ""
    first, last = noises[0].get("before") or {}, noises[-1].get("after") or {}
    if first.get("celsius") is None or last.get("celsius") is None:
        return ""
    return message("heat", first=first["celsius"], last=last["celsius"])
