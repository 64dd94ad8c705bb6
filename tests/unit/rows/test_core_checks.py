"""The checks of cores: their clock, their number, which of them the threads had, who else was on
them.
"""

from dataclasses import replace

from tests.unit.campaign_data import placed
from tests.unit.rows.checked import (
    CALM,
    PLACED,
    VM,
    N,
    U,
    W,
    check_marks,
    limit,
    noise,
    row,
    rows_and_marks,
)


def ghz(*pairs, loaded=None):
    """Details of repetitions with these clocks before and after the work, and under it."""
    under = {} if loaded is None else {"clock_hz_loaded": loaded * 1e9}
    return [
        {"clock_hz_before": before * 1e9, "clock_hz_after": after * 1e9} | under
        for before, after in pairs
    ]


def threads(count, cores=None, quota=None, cpus=4):
    """A row of so many threads, whose jobs were given so much."""
    allowed = placed(1, cores, quota)["allowed"]
    return row(concurrency=count, context={"allowed": allowed, "cpus": list(range(cpus))})


def on_box(isa, idle, loaded=None):
    """A row at its limit, on a CPU that says 2.1 GHz on the box."""
    clock = VM["cpu"]["clock_hz"] | {"nominal": 2.1e9}
    details = ghz((idle, idle), loaded=loaded)[0] | {"isa": isa}
    facts = VM | {"cpu": VM["cpu"] | {"clock_hz": clock}}
    return row([101.4] * 6, details, limit=limit(101.4), facts=facts)


def waited(*shares):
    return row(details=[{"cpu_share": share} for share in shares])


def probed(*pairs, values=None):
    """A row beside whose repetitions DRAM was read at these GB/s before and after."""
    details = [{"probe_before": 1e9 * pair[0], "probe_after": 1e9 * pair[1]} for pair in pairs]
    return row(values, details)


def narrow(isa, best, limit_at=100.0):
    facts = VM | {"cpu": VM["cpu"] | {"isa_best": best}}
    reach = replace(limit(100.0), value=limit_at)
    return row([80.0] * 6, options={"isa": isa}, facts=facts, limit=reach)


def crowded(*held, share=1.0, count=2, slower=0.0, ns=25.0):
    """Threads on two cores, and on how many of them others used the pipes, which slowed them down."""
    times = {"core_to_core_before": 1e-9 * ns, "core_to_core_after": 1e-9 * ns}
    details = [
        times | {"cpu_share": share} | ({} if cores is None else {"held_up": cores})
        for cores in held
    ]
    values = [CALM[number] - bool(cores) * slower for number, cores in enumerate(held)]
    job = placed(1, 2) | {"placed": PLACED | {"cores": 2}}
    facts = {"cpu": {"cores": 2}}
    return row(values, details, job, limit=limit(170.0), facts=facts, concurrency=count)


def disturbed(*contexts, values=None):
    """A row that uses all CPUs: quiet repetitions, but for the last ones."""
    quiet = [noise()] * (len(values or CALM) - len(contexts))
    return row(values, context=[*quiet, *contexts], facts={})


ONCE, BELOW = {"few": U}, {"slowed-down": U}
ELSEWHERE = [{"placed": PLACED | {"cores": cores}} for cores in (1, 1, 2)]
ON_SERVER = noise() | {"server_host": "node2", "server_noise": noise(others=0.9)["noise"]}
COOLING = [100.0 - 2 * number for number in range(8)]
# A row, its marks with their weight, and what the first of them tells.
CASES = [
    # A clock that moves, of which the median stands while fewer than half of the repetitions did.
    (row(details=ghz((3.2, 3.1)) * 6), {}, {}),
    (row(details=ghz((3.2, 2.6)) * 6), {"clock-moved": U}, {"way": "fell", "share": 0.1875, "often": " in 6 of "}),
    (row(context={"clock_hz_before": 3.2e9, "clock_hz_after": None}), {}, {}),
    (row(details=ghz((3.0, 3.0), (3.0, 2.7), (3.0, 3.0))), {"clock-moved": N}, {"way": "fell", "often": " in 1 of 3 repetitions"}),
    (row(details=ghz((3.0, 3.0), (3.0, 2.7), (3.0, 3.3))), {"clock-moved": U}, {"share": 0.1, "often": " in 2 of "}),
    (row(details=ghz((2.7, 3.0))), {"clock-moved": U} | ONCE, {"way": "rose", "share": 1 / 9, "often": ""}),
    # One that differs explains why values do, which are judged themselves.
    (row(details=ghz((3.2, 3.2), (3.2, 3.2), (2.9, 2.9))), {}, {}),
    # Work that lowers it is no doubt: the limit takes the lower one.
    (row(details=ghz((2.94, 2.96), loaded=2.72) * 6), {}, {}),
    # A throttled node does not look perfect: the clock under the work decides.
    (on_box("scalar", 1.2), BELOW, {"nominal": 2.1e9, "clock": 1.2e9}),
    (on_box("scalar", 2.1, 1.2), BELOW, {"clock": 1.2e9}),
    # As wide vectors allow: their base clock is below the one on the box.
    (on_box("avx512", 2.8, 1.9), {}, {}),
    # Nothing but heat or power does that, or it is lower than any design asks for.
    (on_box("sse2", 2.8, 1.9), BELOW, {"clock": 1.9e9}),
    (on_box("avx512", 1.8, 1.7), BELOW, {"clock": 1.8e9}),
    (on_box("avx512", 2.8, 0.8), BELOW, {"clock": 0.8e9}),
    # Threads beyond what the jobs were given.
    (row(concurrency=2), {}, {}),
    (threads(2, 4), {}, {}),
    (threads(3, cpus=2), {"oversubscribed": W}, {"threads": 3, "cpus": 2}),
    (threads(4, 2), {}, {}),
    (threads(2, 2, 1.5), {"cpu-quota": W}, {"quota": 1.5}),
    (row(concurrency=64, subsystem="disk", workload="RR"), {}, {}),
    (row(context=ELSEWHERE), {"placement-differs": U}, {}),
    (row(context={"placed": PLACED}), {}, {}),
    # Threads that waited; what takes less than a quiet machine spreads changes no figure.
    (waited(1.0, 0.99, 1.0), {}, {}),
    # DRAM that others use: held against the median, in a run whose value is another one.
    (probed((19, 20), (20, 18), (17, 19)), {}, {}),
    (probed((20, 12), (20, 20), (20, 20), values=[80.0, 100.0, 101.0]), {"neighbours": N}, {}),
    (probed((20, 12), (20, 20), (20, 20), values=[99.0, 100.0, 101.0]), {}, {}),
    (probed((20, 12), values=[80.0]), ONCE, {}),
    (waited(1.0, 0.861, 1.0), {"waited": N}, {"share": 0.139, "often": " in 1 of 3 repetitions"}),
    (waited(0.94, 0.93, 1.0), {"waited": U}, {"share": 0.07}),
    (waited(0.96, 0.96, 0.96), {"waited": N}, {}),
    (row(details={"cpu_share": 0.5}, subsystem="disk", instrument="diskbench"), {}, {}),
    # A share of narrow instructions that were asked for is theirs.
    (narrow("scalar", "avx512"), {"narrower": N}, {"asked": "plain arithmetic"}),
    (narrow("avx2", "avx512"), {"narrower": N}, {"asked": "AVX2 instructions"}),
    (narrow("auto", "avx512"), {}, {}),
    (narrow("avx2", "avx2"), {}, {}),
    (narrow("scalar", "avx512", limit_at=None), {}, {}),
    # Other load meanwhile: a median stands while most repetitions are calm.
    (disturbed(), {}, {}),
    (disturbed(*[{"noise": noise()["noise"] | {"during": None}}] * 6), {}, {}),
    (disturbed(*[noise(others=0.9, busy=2, users=1)] * 6), {"other-load": U}, {"share": 0.9, "busy": "2 busy processes, of 1 other user", "often": " in 6 of "}),
    (disturbed(*[noise(others=0.9)] * 6), {"other-load": U}, {"busy": "hidden"}),
    (disturbed(noise(others=0.9)), {"other-load": N}, {"often": " in 1 of 6 repetitions"}),
    (disturbed(*[noise(steal=0.08)] * 6), {"steal": U}, {"share": 0.08, "often": " in 6 of "}),
    (disturbed(*[noise(throttled_s=0.3)] * 6), {"cpu-quota": U}, {"share": 0.3}),
    (disturbed(*[noise(hot=2)] * 6), {"slowed-down": U}, {"often": " in 6 of "}),
    (disturbed(*[ON_SERVER] * 6), {"other-load": U}, {"share": 0.9, "often": "node2, where the server ran"}),
    (row(COOLING), {"spread": U}, {}),
    # Seen on a guest: 0.85 of the limit with all of its CPUs' time, and the kernel told no clock.
    (crowded(0, 1, 2, 2, 0, slower=5.0), {"neighbours": U}, {}),
    (crowded(0, 1, 0, 0, 0, slower=5.0), {"neighbours": N}, {}),
    # A run with the value of the undisturbed ones was not disturbed.
    (crowded(0, 1, 2, 2, 0, slower=1.0), {}, {}),
    # Two threads that the host placed on one core hold each other up.
    (crowded(1, 1, 1, 1, 1, ns=10.3), {}, {}),
    (crowded(1, 1, 1, 1, 1), {"neighbours": U}, {}),
    (crowded(None, None, None, None, None), {}, {}),
    # Threads that share a core as asked, or that waited for their CPU, hold each other up.
    (crowded(4, 4, 4, 4, 4, count=4), {}, {}),
    (crowded(1, 1, 1, 1, 1, share=0.5), {"waited": U}, {}),
]  # fmt: skip


@rows_and_marks(CASES)
def test_a_row_has_these_marks(made, weights, first):
    check_marks(made, weights, first)
