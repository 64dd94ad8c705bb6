"""The remarks of a row: few words, and no more of them than a reader takes in."""

from tests.unit import campaign_data as make

from peakmark.messages import message
from peakmark.tools.tables import BY_NAME
from peakmark.views import printed, remarks
from peakmark.views.points import Point, rows_of
from peakmark.views.report import document


def test_a_row_shows_three_remarks_and_counts_more():
    assert remarks.cell_of(["a", "b", "c"]) == "a; b; c"
    assert remarks.cell_of(["a", "b", "c", "d"]) == "a; b; 2 more remarks"
    assert remarks.cell_of(["a", "b", "c", "d"], everywhere=["a"]) == "b; c; d"


def test_what_befell_client_and_server_is_one_remark():
    often = message("often", where=message("server", hosts=("node2",)), count=1, n=3)
    notes = (message("steal", share=0.02, often=""), message("steal", share=0.03, often=often))
    point = Point(own=None, measured={}, notes=notes)
    texts = remarks.texts_of([point], BY_NAME["network_throughput"], {"netbench"})
    assert texts == ["hypervisor took 2 to 3\u00a0%"]


def disk(folder):
    """Two programs that measured a file system in memory."""
    facts = {"disk": {"filesystem": "tmpfs"}, "storage": {"filesystem": "tmpfs"}}
    records = make.runs("diskbench", "RS", 1e9, 1e9) + make.runs("fio", "RS", 1e9, 1e9)
    records += make.runs("diskbench", "RR", 1e9, 1e9)
    return make.frames(folder, records, facts=facts)


def test_what_kernel_and_reference_share_is_one_remark(tmp_path):
    frames = disk(tmp_path / "c")
    table = BY_NAME["disk_throughput"]
    grid = printed.table(frames, table, rows_of(frames, table))
    assert "wrong: tmpfs is memory" in " ".join(grid.remarks)
    assert not any("tmpfs" in cell for line in grid.body for cell in line)


def test_a_note_that_no_row_shows_names_its_rows(tmp_path):
    found = document.list_remarks(disk(tmp_path / "c"), None)
    assert all(short for short, _, _ in found["remarks"])
    names = [rows for rows, _ in found["row_notes"]]
    assert names and all("RS" in name or "RR" in name or name == "All rows" for name in names)


def lossy(streams, share):
    """Three runs of UDP that lose a share of the messages."""
    details = {"sent": 1000, "received": 1000 * (1 - share), "lost": 1000 * share}
    place = {"concurrency": streams, "details": details}
    return make.runs("netbench", "UDP", 1e9, 1e9, 1e9, **place)


def test_an_explanation_has_the_numbers_of_all_its_rows_though_their_advice_differs(tmp_path):
    """With one stream, the advice does not ask for fewer streams."""
    records = [*lossy(1, 0.6), *lossy(2, 0.8), *lossy(4, 0.9)]
    frames = make.frames(tmp_path / "c", records)
    explained = remarks.explain(frames, {"network_throughput": {"netbench"}})
    (lost,) = (remark for remark in explained if "lost" in remark.short)
    assert (lost.short, len(lost.rows)) == ("60 to 90\u00a0% lost", 3)
    assert lost.text.startswith("Up to 90.00\u00a0% of the messages")
