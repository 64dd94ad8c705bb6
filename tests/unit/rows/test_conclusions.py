"""Published reports, fed with their own numbers: the conclusions of their authors are found, corrected
where the numbers say otherwise, and none is inverted.

What an author says of a graph whose numbers the report does not print can be held against nothing.
"""

import random
import statistics
from functools import cache

import pytest
from tests.unit import campaign_data as make
from tests.unit import published
from tests.unit.campaign_data import PRESETS, planned
from tests.unit.cases import cases

from peakmark.rows import build
from peakmark.storage.results import Results

BEST = "Best and worst"


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """What is found in a report's own numbers, as its preset would measure them.

    Each row has six repetitions that spread by 1 % around the report's median.
    """

    @cache
    def of_report(name):
        lot = random.Random(1)  # noqa: S311

        def values_of(values):
            middle = statistics.median(values)
            return [middle * lot.lognormvariate(0, 0.01) for _ in range(6)]

        records = published.records(name, values_of, definitions=False)
        folder = tmp_path_factory.mktemp("reports") / name
        make.write(folder, records, config=planned(name).to_json()["config"])
        return build.judge(Results.read(folder)).findings

    return of_report


def found(findings, table, better, worse):
    of_table = findings[findings["table"].eq(table)]
    return of_table[of_table["better"].eq(better) & of_table["worse"].eq(worse)]


@cases("rows")
def test_what_the_numbers_carry_is_found(findings, report, table, claim, better, worse, points):
    lines = found(findings(report), table, better, worse)
    counts = [
        text.count(",") + 1 for text in lines["points"].str.replace(r'"[^"]*"', "x", regex=True)
    ]
    assert max(counts, default=0) >= points, claim
    comparisons = lines[lines["topic"].ne(BEST) & lines["certainty"].ne("level")]
    assert comparisons["factor_low"].gt(1.05).all()


@pytest.mark.parametrize("report", PRESETS)
def test_a_conclusion_and_its_reverse_share_no_point(findings, report):
    lines = findings(report)
    compared = lines[lines["certainty"].ne("") & lines["certainty"].ne("level")]
    for line in compared.itertuples():
        reverse = found(
            compared[compared["topic"].eq(line.topic)], line.table, line.worse, line.better
        )
        for other in reverse["points"]:
            assert not set(line.points[1:-1].split(", ")) & set(other[1:-1].split(", "))


def test_sentences_name_where_they_hold_and_no_level_of_the_memory(tmp_path):
    """8 streams are slower than 4 at 1 KB, but level with them at 32 KB."""
    texts = published.frames("four-subsystems-2018-hyperion", tmp_path).findings["text"]
    assert "4 streams are 1.09 times as fast as 8 streams for TCP and UDP at 1KB, as printed." in [
        *texts
    ]
    (best,) = texts[texts.str.startswith("QP: best 24.86")]
    assert "(4 threads)" in best and "1 wrong row left out" in best
    assert not texts.str.contains("In DRAM|In L1").any()
    assert texts.str.startswith("HPL reaches 95.3 to 104 % of the limit").any()
