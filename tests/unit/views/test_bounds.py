"""How a bound, which stands where no limit is known, is printed."""

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
