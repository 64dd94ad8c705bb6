"""How a bound, which stands where no limit is known, is printed."""

import csv
import re

from tests.unit import campaign_data as make

LINK = 3.934e9
"""B/s: to three digits this is nearer to 3930 MB/s, which is no bound of it."""


def beside_link(folder, share):
    """A campaign of a disk at this share of what its link can carry, which is a bound of it."""
    facts = make.VM | {"storage": {"interface": "sata", "interface_limit": LINK}}
    records = make.runs("diskbench", "RS", *make.near(share * LINK))
    return make.write(folder, records, facts=facts)


def numbers_behind(sign, peakmark, folder):
    """The numbers behind a sign in the report of a campaign."""
    done = peakmark("report", folder)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"<[^>]*>", " ", (folder / "report.html").read_text(encoding="utf-8"))
    found = re.findall(rf"{sign}(?:\s|&nbsp;)*(\d+(?:\.\d+)?)", text)
    return [float(number) for number in found]


def test_a_bound_of_which_less_than_half_is_reached_is_not_printed(peakmark, tmp_path):
    assert not numbers_behind("[≤≥]", peakmark, beside_link(tmp_path / "c", 0.45))


def test_an_upper_bound_of_which_half_is_reached_is_printed_rounded_up(peakmark, tmp_path):
    shown = numbers_behind("≤", peakmark, beside_link(tmp_path / "c", 0.6))
    assert shown and all(LINK / 1e9 <= number < 1.01 * LINK / 1e9 for number in shown)


def test_a_lower_bound_is_rounded_down(peakmark, tmp_path):
    """Of a time: memory answers no sooner than the last cache."""
    records = make.runs("rambench", "LAT", *make.near(6e-9), block=256 << 20)
    folder = make.write(tmp_path / "c", records, facts=make.VM)
    shown = numbers_behind("≥", peakmark, folder)
    assert peakmark("tables", folder).returncode == 0
    with (folder / "tables" / "memory_latency.csv").open(encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    (bound,) = (float(row[heading]) for heading in row if heading.startswith("Bound"))
    # In the unit of the table, or a thousandth of it.
    places = [number / unit for number in shown for unit in (bound, 1e3 * bound)]
    assert any(0.99 < place <= 1 for place in places), (bound, shown)
    assert not any(1 < place < 1.01 for place in places), (bound, shown)
