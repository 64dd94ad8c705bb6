"""What a reader must know of a campaign before using its numbers."""

import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import frames, placed, reached, runs

from peakmark.views import score_card

WILD = (1.0, 1.5, 0.5)


def times(value, factors):
    return [value * factor for factor in factors]


def caveats_of(of):
    """The caveats by their codes."""
    found = score_card.build_caveats(of)
    return {f"{each.code} {each.case}".rstrip(): each for each in found}


@pytest.mark.parametrize(("scale", "isa", "cores", "code"), [
    (0.1, "auto", 128, "scaled"), (1, "scalar", 128, "narrower"), (1, "auto", 4, "part-of-node"),
])  # fmt: skip
def test_what_a_reader_must_know_of_a_campaign(tmp_path, scale, isa, cores, code):
    site = {"cpu": {"cores": 128, "operations_per_cycle": {"DP": 32}}}
    clocks = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    place = {"concurrency": cores, "context": placed(cores, 128)}
    records = runs("cpubench", "DP", 3e9, isa=isa, details=clocks, **place)
    of = frames(tmp_path / "c", records, config={"scale": scale, "site_facts": site})
    assert caveats_of(of).keys() & {"scaled", "narrower", "part-of-node"} == {code}


def test_page_one_has_at_most_a_hundred_words_of_caveats(tmp_path):
    records = runs("cpubench", "DP", *times(5e10, WILD), context=placed(1, 2))
    records += runs("netbench", "TCP", 1e10, context=reached("lo"))
    hole = make.cell("rambench", "RS", subsystem="memory")
    of = frames(tmp_path / "c", records, config={"scale": 0.1}, planned=[hole])
    found = caveats_of(of)
    assert {"doubtful care", "part-of-node", "scaled", "holes"} <= set(found)
    assert sum(len(each.text.split()) for each in found.values()) <= 100


def test_rows_for_care_that_were_disturbed_are_counted_once_each(tmp_path):
    records = []
    for threads in range(1, 9):
        details = {"cpu_share": 0.5 if threads > 2 else 1.0}
        values = 5e10 * threads, 5e10 * threads
        records += runs("cpubench", "DP", *values, concurrency=threads, details=details)
    found = caveats_of(frames(tmp_path / "c", records))
    assert found["disturbed-rows"].values["rows"] == 6
    assert found["doubtful care"].values["rows"] == 6


def test_a_row_that_its_other_runs_confirm_is_not_counted_as_disturbed(tmp_path):
    shares = [{"cpu_share": share} for share in (0.9, 1.0, 1.0)]
    records = []
    for number, details in enumerate(shares):
        records += runs("cpubench", "DP", 5e10 + number, repetition=number, details=details)
    of = frames(tmp_path / "c", records)
    assert "waited" in set(of.warnings["code"])
    assert "disturbed-rows" not in caveats_of(of)


def test_a_missing_memory_module_is_a_cause_on_page_one(tmp_path):
    model = {"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 1, "virtualised": None}
    memory = make.VM["memory"] | {"channels": 7, "speed_mts": 3200}
    facts = make.VM | {"host": "node1", "cpu": make.VM["cpu"] | model, "memory": memory}
    of = frames(tmp_path / "c", runs("rambench", "RS", 1e10), facts=facts)
    assert any("7 of 8" in text for text in score_card.build(of)["causes"])
