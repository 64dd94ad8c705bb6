"""The remarks of a row: few words, and no more of them than a reader takes in."""

import pandas as pd
from tests.unit import campaign_data as make

from peakmark.tools.tables import BY_NAME
from peakmark.views import document, layout_tables, table


def test_remarks_that_differ_only_in_numbers_are_one():
    lines = [
        ("steal", 0.02, "hypervisor took 2%"),
        ("steal", 0.03, "hypervisor took 3%"),
        ("waited", 0.9, "lost up to 90%"),
        ("waited", 0.1, "lost up to 10%"),
        ("few", -0.5, "iperf3 ran 2 times"),
        ("few", -0.75, "iperf3 ran 3 times"),
    ]
    notes = pd.DataFrame(lines, columns=["code", "amount", "short"])
    merged = table.merge(notes, ["code"], "short")
    assert list(merged["short"]) == [
        "hypervisor took up to 3%",
        "lost up to 90%",
        "iperf3 ran 2 times",
    ]


def disk(folder):
    """Two programs that measured a file system in memory."""
    facts = {"disk": {"filesystem": "tmpfs"}, "storage": {"filesystem": "tmpfs"}}
    records = make.runs("diskbench", "RS", 1e9, 1e9) + make.runs("fio", "RS", 1e9, 1e9)
    records += make.runs("diskbench", "RR", 1e9, 1e9)
    return make.frames(folder, records, facts=facts)


def test_what_kernel_and_reference_share_is_one_remark(tmp_path):
    frames = disk(tmp_path / "c")
    arranged = layout_tables.arrange(frames, None)
    (shown,) = layout_tables.shown_tables(arranged, BY_NAME["disk_throughput"], None)
    assert "no: tmpfs is memory" in " ".join(shown.below)
    assert not any("tmpfs" in cell for line in shown.body for cell in line)


def test_a_line_names_a_reference_that_is_above_its_limit_as_peakmark_is(tmp_path):
    records = []
    for threads, value in ((1, 1e12), (2, 1e9)):
        for program in ("cpubench", "likwid-bench"):
            records += make.runs(program, "FP32", value, value, value, concurrency=threads)
    frames = make.frames(tmp_path / "c", records, facts=make.ZEN3)
    arranged = layout_tables.arrange(frames, None)
    (shown,) = layout_tables.shown_tables(arranged, BY_NAME["cpu"], None)
    assert sum(cell.count("above the limit") for cell in shown.body[0]) == 2


def test_of_a_value_that_must_not_be_used_only_the_reasons_are_shown(tmp_path):
    records = make.runs("diskbench", "RS", 1e9, 2e9, 3e9)
    facts = {"disk": {"filesystem": "tmpfs"}, "storage": {"filesystem": "tmpfs"}}
    frames = make.frames(tmp_path / "c", records, facts=facts)
    row = frames.rows[frames.rows["table"].eq("disk_throughput")].iloc[0]
    assert "spread" in row["warnings"] and row["trust"] == "no"
    assert [short for short, _, _ in document.list_remarks(frames, None)] == ["tmpfs is memory"]


def test_a_disturbance_that_the_other_runs_outweigh_is_no_remark(tmp_path):
    records = []
    for number, share in enumerate((0.9, 1.0, 1.0)):
        place = {"repetition": number, "details": {"cpu_share": share}}
        records += make.runs("cpubench", "DP", 5e10, **place)
    frames = make.frames(tmp_path / "c", records)
    assert frames.warnings["code"].tolist() == ["waited"]
    assert document.list_remarks(frames, None) == []


def test_remarks_count_the_rows_that_nothing_measured(tmp_path):
    records = make.runs("cpubench", "DP", 5e10, 5e10, 5e10)
    holes = [make.cell("cpubench", name, subsystem="cpu") for name in ("SP", "HP")]
    frames = make.frames(tmp_path / "c", records, planned=holes)
    ((short, count, _),) = document.list_remarks(frames, None)
    assert (short, count) == ("not measured", "2")


def lossy(streams, share, program="netbench"):
    """Three runs of UDP that lose a share of the messages."""
    details = {"sent": 1000, "received": 1000 * (1 - share), "lost": 1000 * share}
    place = {"concurrency": streams, "details": details}
    return make.runs(program, "UDP", 1e9, 1e9, 1e9, **place)


def test_an_explanation_says_how_often_only_if_it_is_so_in_all_its_rows(tmp_path):
    records = []
    for number, (of_one, of_two) in enumerate([(0.8, 0.8), (0.8, 0.8), (1.0, 0.8)]):
        for threads, share in ((1, of_one), (2, of_two)):
            place = {"repetition": number, "concurrency": threads, "details": {"cpu_share": share}}
            records += make.runs("cpubench", "DP", 5e10, **place)
    arranged = layout_tables.arrange(make.frames(tmp_path / "c", records), None)
    texts = [text for _, _, text in table.explain(arranged, {"cpu": {"cpubench"}})]
    (lost,) = (text for text in texts if "Threads lost" in text)
    assert "of 3 repetitions" not in lost


def test_an_explanation_has_the_numbers_of_all_its_rows_though_their_advice_differs(tmp_path):
    """With one stream, the advice does not ask for fewer streams."""
    records = [*lossy(1, 0.6), *lossy(2, 0.8), *lossy(4, 0.9), *lossy(4, 0.7, "iperf3")]
    frames = make.frames(tmp_path / "c", records)
    arranged = layout_tables.arrange(frames, None)
    explained = table.explain(arranged, {"network_throughput": {"netbench", "iperf3"}})
    (lost,) = (remark for remark in explained if "lost" in remark[0])
    assert lost[:2] == ["up to 90\u00a0% lost", "3, 1 of references"]
    assert lost[2].startswith("Up to 90.00\u00a0% of the messages")
