"""What the report says, before it is set as PDF or HTML: page one, tables, notes and figures."""

import json
import re

from tests.unit import campaign_data as make

from peakmark.config import layouts
from peakmark.views import document


def judged(folder, records, **more):
    return document.build(make.frames(folder, records, **more))


def test_remarks_and_findings_call_programs_as_the_layout_does(tmp_path):
    records = []
    for tool, rate in (("diskbench", 5e8), ("iozone", 4e8)):
        records += make.runs(tool, "WS", rate, 9e8, 7e8, block=1 << 16)
    data = judged(tmp_path / "lab", records, config={"report": {"tables": "file-io-lab"}})
    text = json.dumps([data["sections"], data["caveats"]])
    assert "spread 57" in text and "IOZone spread 71" in text
    assert "MyDiskBench" not in text
    # The programs' list says which program stands behind the name.
    assert any(line[0] == "diskbench (FileIO)" for line in data["method"]["programs"])


def test_rows_beside_a_layout_have_their_own_title_and_captions(tmp_path):
    """The layout shows copies in DRAM, and neither reads nor copies in caches."""
    records = make.runs("rambench", "RWS", 1e10, block=1024)
    records += make.runs("rambench", "RS", 1e10, block=1 << 20)
    records += make.runs("rambench", "RWS", 1e11, block=1024, variant="block")
    records += make.runs("cpubench", "DP", 4e10) + make.runs("cpubench", "FP32", 8e10)
    # The title of the layout's table of the CPU is the usual one.
    text = layouts.path_of("four-subsystems-2018-hyperion").read_text(encoding="utf-8")
    layout = tmp_path / "mine.yaml"
    text = re.sub(r"(title: Operations per second) on .*", r"\1", text)
    layout.write_text(text, encoding="utf-8")
    config = {"report": {"tables": str(layout)}}
    chapters = judged(tmp_path / "c", records, config=config)["sections"]
    captions = {}
    for chapter in chapters:
        titles = [part["title"] for part in chapter["parts"]]
        assert len(titles) == len(set(titles))
        for part in chapter["parts"]:
            captions |= {figure["name"]: figure["caption"] for figure in part["figures"]}
    assert "Operations per second, other rows" in [part["title"] for part in chapters[0]["parts"]]
    assert captions["memory_throughput_pool_strip"].startswith("Memory: throughput of DRAM.")
    assert captions["memory_throughput_block_strip"].startswith("Memory: throughput of caches.")
