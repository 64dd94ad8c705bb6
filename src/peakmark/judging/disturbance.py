"""What the noise around repetitions means for their row, as notes with the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peakmark.judging.notes import Level, Note

MATTERS = 0.05
"""Share of the CPUs' time that, taken from the measurement, changes a figure by more than a quiet machine's spread."""


def find(
    noises: Sequence[Mapping[str, Any]], others: float, steal: float, where: str = "", spare: float = 0.0
) -> Iterator[Note]:
    """Remarks on the noise of a row's repetitions, as records hold it.

    others  CPUs' worth of time of other programs, steal share of CPU time taken by the hypervisor, from which on a
            repetition counts as disturbed
    where   of which node, where there are two: `` on node2, the server's node``
    spare   CPUs that the measurement leaves to others: what runs there takes nothing from pinned threads

    A median stands while fewer than half of the repetitions are disturbed by more than a twentieth of a CPU or of all
    CPUs' time: then the remark casts no doubt.
    """
    during = [noise["during"] for noise in noises if noise.get("during")]
    yield from _others(during, others, len(noises), where, spare)
    yield from _steal(during, steal, len(noises), where)
    yield from _held_back(during, len(noises), where)
    yield from _limit(noises, where)


def weight(disturbed: int, n: int) -> Level:
    """Of what disturbed so many of ``n`` repetitions enough to change their figure."""
    return Level.UNSURE if 2 * disturbed >= n else Level.NOTE


def _often(where: str, count: int, n: int) -> str:
    """With a blank before it."""
    return f"{where} in {count} of {n} repetitions" if n > 1 else f"{where} meanwhile"


def _others(during: Sequence[Mapping[str, Any]], least: float, n: int, where: str, spare: float) -> Iterator[Note]:
    disturbed = [noise for noise in during if noise["others"] > least]
    if not disturbed:
        return
    worst = max(disturbed, key=lambda noise: float(noise["others"]))
    busy = "short-lived or hidden ones"
    if worst["busy"]:
        busy = f"{worst['busy']} busy process{'es' if worst['busy'] > 1 else ''}"
        busy += f", of {worst['users']} other user{'s' if worst['users'] > 1 else ''}" if worst["users"] else ""
    yield Note(
        "other-load",
        f"other programs used up to {worst['others']:.2g} CPUs{_often(where, len(disturbed), n)} ({busy}): end them,"
        " or have the node to yourself (sbatch --exclusive), and repeat",
        weight(sum(float(noise["others"]) - spare > MATTERS for noise in disturbed), n),
    )


def _steal(during: Sequence[Mapping[str, Any]], least: float, n: int, where: str) -> Iterator[Note]:
    disturbed = [noise["steal"] for noise in during if noise["steal"] is not None and noise["steal"] > least]
    if disturbed:
        yield Note(
            "steal",
            f"the hypervisor took up to {max(disturbed):.1%} of the CPUs' time{_often(where, len(disturbed), n)}"
            " (steal): repeat on a machine whose CPUs are yours alone, or at a calmer time",
            weight(sum(share > MATTERS for share in disturbed), n),
        )


def _held_back(during: Sequence[Mapping[str, Any]], n: int, where: str) -> Iterator[Note]:
    held = [noise["throttled_s"] / noise["seconds"] for noise in during if noise.get("throttled_s")]
    if held and max(held) > 0.01:
        yield Note(
            "throttled",
            f"the CPU quota of the cgroup held the run back for up to {max(held):.0%} of its time"
            f"{_often(where, len(held), n)}: ask for more CPUs or for none to be limited",
            Level.UNSURE,
        )
    hot = [noise for noise in during if noise.get("hot")]
    if hot:
        yield Note(
            "hot",
            f"CPUs slowed themselves down because of heat{_often(where, len(hot), n)}: see to the cooling, or measure"
            " shorter with pauses",
            Level.UNSURE,
        )


def _limit(noises: Sequence[Mapping[str, Any]], where: str) -> Iterator[Note]:
    """The clock that is allowed, not the one just now: CPUs that wait are slow, and that means nothing."""
    limits = [
        float(noise[when]["clock_limit_hz"])
        for noise in noises
        for when in ("before", "after")
        if (noise.get(when) or {}).get("clock_limit_hz")
    ]
    if limits and max(limits) / min(limits) > 1.01:
        yield Note(
            "clock-limit",
            f"the highest clock that is allowed{where} was {min(limits) / 1e9:.3g} GHz at one time and"
            f" {max(limits) / 1e9:.3g} GHz at another: somebody set another governor or power limit; set it back and repeat",
            Level.UNSURE,
        )


def heat(noises: Sequence[Mapping[str, Any]]) -> str:
    """``, 45 °C before the first and 83 °C after the last`` where sensors could be read, else nothing."""
    if not noises:
        return ""
    first, last = noises[0].get("before") or {}, noises[-1].get("after") or {}
    if first.get("celsius") is None or last.get("celsius") is None:
        return ""
    return f", {first['celsius']:.0f} °C before the first and {last['celsius']:.0f} °C after the last"
