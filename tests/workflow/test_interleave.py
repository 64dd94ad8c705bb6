"""Two configurations measured in turn: real cells, in pairs, of which the first alternates; only
what is missing again.
"""

from tests.checkout import TINY

A, B = "tiny-beside-plain", "plain-beside-tiny"


def pairs(checkout):
    """Cell id -> when it was begun in A and in B."""
    one, other = checkout.started(A), checkout.started(B)
    assert one.keys() == other.keys()
    return {name: (one[name], other[name]) for name in one}


def test_two_configurations_are_measured_in_turn_and_compared(checkout):
    values = {**TINY, "repetitions": 6, "cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
    values |= {"memory": [], "disk": [], "network": []}
    first = checkout.write_config("tiny.yaml", values)
    second = checkout.write_config("plain.yaml", {"isa": "scalar", "campaign": "plain"})
    told = checkout.peakmark("compare", "--interleave", str(first), str(second))
    assert told.returncode == 0, told.stderr
    first_line = told.stdout.splitlines()[0]
    assert first_line.startswith("instruction set") and first_line.endswith("B has scalar")
    assert "measured in turn" in told.stdout
    begun = pairs(checkout)
    assert len(begun) == 6
    # In the order of time each cell of A stands beside the same one of B.
    order = sorted(
        (when, name) for both in begun.items() for name, when in ((both[0], one) for one in both[1])
    )
    assert all(order[place][1] == order[place + 1][1] for place in range(0, len(order), 2))
    for row in {name.rpartition("/")[0] for name in begun}:
        firsts = [begun[f"{row}/{number}"][0] < begun[f"{row}/{number}"][1] for number in range(6)]
        assert firsts in ([True, False] * 3, [False, True] * 3)

    # One half is lost: the pair is measured again, and nothing else.
    lost = next(iter(sorted(begun)))
    (checkout.directory / "results" / B / "cells" / f"{lost}.json").unlink()
    again = checkout.peakmark("compare", "--interleave", str(first), str(second))
    assert again.returncode == 0, again.stderr
    now = pairs(checkout)
    assert {name for name in begun if begun[name] != now[name]} == {lost}
    assert all(one != other for one, other in zip(begun[lost], now[lost], strict=True))

    # Both are ordinary campaigns, and the same comparison can be had again without measuring.
    later = checkout.peakmark("compare", f"results/{A}", f"results/{B}")
    assert later.stdout == again.stdout
    assert checkout.peakmark("status", f"results/{A}").stdout.rstrip().endswith("complete")
