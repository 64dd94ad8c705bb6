"""What two sides did not have alike is said, and rows that it changes get no verdict."""

from dataclasses import replace

import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import VM

from peakmark.errors import ConfigError
from peakmark.views import compare
from peakmark.views.compare import dataset_of


def side(folder, records, **more):
    return dataset_of(folder.name, make.frames(folder, records, **more))


def lines(before, after, **more):
    found, _, _ = compare.compare(before, after, compare.Rules(**more))
    return list(found.itertuples())


def differences(comparison):
    return [*comparison.differ.values()]


def of_all(folder, factor, facts, details, **context):
    """A row of each subsystem by the own kernel, and one of the memory by another program."""
    records = []
    workloads = {"cpubench": "DP", "netbench": "TCP"}
    for instrument in ("cpubench", "rambench", "likwid-bench", "diskbench", "netbench"):
        workload = workloads.get(instrument, "RS")
        subsystem = {"subsystem": "memory"} if instrument == "likwid-bench" else {}
        records += make.runs(
            instrument, workload, *make.near(1e9 * factor), details=details, context=context,
            **subsystem, **({"variant": "pool", "block": 1 << 20} if subsystem else {}),
        )  # fmt: skip
    return side(folder, records, facts=facts)


def changed(facts, name, value):
    """The facts of a real machine, of which one is another."""
    part, _, key = name.partition(".")
    return facts | {part: facts.get(part, {}) | {key: value}}


AT_FIRST = {
    "cpu.governor": "performance", "cpu.smt": False, "storage.model": "A disk",
    "build.compiler": "gcc 12", "os.unheard_of": "old",
}  # fmt: skip
"""What the virtual machine does not tell."""
DETAILS, CONTEXT = {"isa": "avx512"}, {"peakmark": "1.0"}
"""Of all records before the change."""
KERNEL_ROWS = {"cpubench", "rambench"}
COMPUTING = KERNEL_ROWS | {"likwid-bench"}
INPUT = {"diskbench", "netbench"}


@pytest.fixture(scope="module")
def at_first():
    facts = VM
    for name, value in AT_FIRST.items():
        facts = changed(facts, name, value)
    return facts


@pytest.fixture(scope="module")
def before(at_first, tmp_path_factory):
    return of_all(tmp_path_factory.mktemp("before") / "a", 1.0, at_first, DETAILS, **CONTEXT)


@pytest.mark.parametrize(("name", "value", "title", "stopped"), [
    ("cpu.model_name", "another", "CPU", COMPUTING | INPUT),
    ("cpu.microcode", "0x2", "microcode", COMPUTING),
    ("cpu.mitigations", {"spectre_v2": "Vulnerable"}, "mitigation spectre_v2", {"rambench", "likwid-bench"} | INPUT),
    ("cpu.smt", True, "SMT", COMPUTING | INPUT),
    ("cpu.governor", "powersave", "governor", COMPUTING | INPUT),
    ("os.kernel", "6.99", "kernel", INPUT),
    ("build.compiler", "gcc 99", "compiler", KERNEL_ROWS),
    ("storage.model", "Another disk", "disk model", {"diskbench"}),
    ("storage.device", "nvme9n1", "disk", {"diskbench"}),
    ("os.distribution", "another", "distribution", set()),
    ("os.unheard_of", "new", "os.unheard_of", set()),
    ("storage.scratch", "/x", "", set()),
    ("details.isa", "avx2", "instruction set", COMPUTING),
    ("context.peakmark", "9.9", "peakmark", set()),
    ("context.tool", {"name": "x", "path": "/x", "version": "9"}, "version of the program", COMPUTING | INPUT),
])  # fmt: skip
def test_a_fact_that_differs_stops_the_rows_of_it(
    before, at_first, tmp_path, name, value, title, stopped
):
    part, _, key = name.partition(".")
    facts, details, context = at_first, DETAILS, CONTEXT
    if part == "details":
        details = details | {key: value}
    elif part == "context":
        context = context | {key: value}
    else:
        facts = changed(at_first, name, value)
    after = of_all(tmp_path / "b", 0.8, facts, details, **context)
    found = lines(before, after)
    assert {one.instrument for one in found if one.verdict == "not comparable"} == stopped
    assert {one.verdict for one in found} <= {"worse", "not comparable"}
    text = compare.report(compare.judge(before, after))
    assert (f"{title}: A has" in text.partition("\nA is ")[0]) == bool(title)
    if title:
        found = lines(before, after, changed=[title])
        assert {one.verdict for one in found} == {"worse"}


def test_a_fact_that_does_not_differ_cannot_be_the_change(tmp_path):
    before = of_all(tmp_path / "a", 1.0, VM, {})
    after = of_all(tmp_path / "b", 1.0, changed(VM, "os.kernel", "6.99"), {})
    with pytest.raises(ConfigError, match="kernel"):
        compare.judge(before, after, compare.Rules(changed=["microcode"]))


def linked(folder, loopback):
    """A row of the CPU and one over a link."""
    context = make.reached("lo" if loopback else "eth1")
    records = make.runs("cpubench", "DP", *make.near(1e10))
    return side(folder, records + make.runs("netbench", "TCP", *make.near(1e9), context=context))


def test_another_link_is_not_judged(tmp_path):
    before, after = linked(tmp_path / "a", True), linked(tmp_path / "b", False)
    whole = compare.judge(before, after)
    text, counts = compare.report(whole), whole.counts
    assert counts == {"not comparable": 1, "no difference shown": 1}
    assert "link: A has lo, B has eth1" in text.splitlines()[3]
    assert "A has" not in compare.report(compare.judge(before, before))


CHOICES = [
    ("cpubench", "DP", "isa", ("auto", "scalar"), ("instruction set", "auto", "scalar")),
    ("cpubench", "SP", "placement", ("compact", "scatter"), ("placement", "compact", "scatter")),
    ("rambench", "RS", "pool", (1 << 28, 1 << 30), ("pool", "256 MiB", "1 GiB")),
    ("rambench", "WS", "huge_pages", ("try", "never"), ("huge pages", "try", "never")),
    ("diskbench", "RS", "size", (1 << 26, 1 << 28), ("file size", "64 MiB", "256 MiB")),
    ("diskbench", "RR", "engine", ("psync", "io_uring"), ("engine", "psync", "io_uring")),
    ("diskbench", "WS", "depth", (1, 8), ("queue depth", "1", "8")),
    ("netbench", "TCP", "interface", ("eth0", "eth1"), ("interface", "eth0", "eth1")),
]
"""Kernel, workload and an option; its values in A and B, and how the comparison calls them."""


def test_each_choice_that_differs_is_said(tmp_path):
    records = {"a": [], "b": []}
    for kernel, workload, option, settings, _ in CHOICES:
        for name, value, setting in zip("ab", (1e9, 5e8), settings, strict=True):
            more = {option: setting}
            records[name] += make.runs(kernel, workload, *make.near(value), **more)
    before, after = (side(tmp_path / name, of_side) for name, of_side in records.items())
    found = {(one.instrument, one.workload): one for one in lines(before, after)}
    assert len(found) == len(CHOICES)
    for kernel, workload, *_, difference in CHOICES:
        row = found[kernel, workload]
        said = "{}: A has {}, B has {}".format(*difference)
        assert (row.verdict, differences(row)) == ("not comparable", [said])


def test_a_word_that_meant_another_number_is_not_comparable(tmp_path):
    before = side(tmp_path / "a", make.runs("cpubench", "DP", *make.near(1e9)))
    one, other = (
        replace(before, rows=before.rows.assign(facts=[{"threads of cores": count}]))
        for count in "24"
    )
    (found,) = lines(one, other)
    assert found.verdict == "not comparable"
    assert differences(found) == ["threads of cores: A has 2, B has 4"]


@pytest.mark.parametrize(
    ("kernel", "verdict"), [("6.1.0-1", "better"), ("6.1.0-2", "not comparable")]
)
def test_only_a_row_that_mixes_unequal_nodes_gets_no_verdict(tmp_path, kernel, verdict):
    before = side(tmp_path / "a", make.runs("cpubench", "DP", *make.near(1e9)))
    machines = {
        host: VM | {"host": host, "os": VM["os"] | {"kernel": release}}
        for host, release in (("a", "6.1.0-1"), ("b", kernel))
    }
    records = make.runs("cpubench", "DP", *make.near(2e9))
    for number, each in enumerate(records):
        each["context"]["host"] = "ab"[number % 2]
    after = side(tmp_path / "b", records, machines=machines)
    (found,) = lines(before, after)
    assert found.verdict == verdict
    assert ("6.1.0-2 on b" in compare.report(compare.judge(before, after))) == (
        verdict == "not comparable"
    )


def test_campaigns_that_write_otherwise_are_not_alike_though_one_did_not_ask(tmp_path):
    sides = []
    for name, options in (("a", {}), ("b", {"sync": "each"})):
        place = {"metric": "iops", "block": 4096, **options}
        records = make.runs("diskbench", "WR", *[1e4] * 6, **place)
        records += make.runs("diskbench", "RR", *[1e4] * 6, **place)
        sides.append(side(tmp_path / name, records))
    found = lines(*sides)
    (different,) = [one for one in found if one.verdict == "not comparable"]
    assert different.workload == "WR"
    assert differences(different) == ["sync: A has end, B has each"]
