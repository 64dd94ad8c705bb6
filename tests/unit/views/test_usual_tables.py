"""Tables as printed: their columns, units and digits, the notes below them and their captions."""

from tests.unit import campaign_data as make
from tests.unit.views.test_table_files import shown

from peakmark.messages import captions
from peakmark.tools.tables import BY_NAME
from peakmark.views import layout_tables, sections, table_files, usual_tables
from peakmark.views.pictures import case_of, pictures_of
from peakmark.views.table import rows_of


def test_a_missing_tool_has_a_sentence_instead_of_an_empty_column(tmp_path):
    absent = {"instrument": "iozone", "executable": "iozone", "path": None, "package": "iozone3"}
    absent["reason"] = "iozone not found on PATH"
    found = make.frames(tmp_path / "c", make.runs("diskbench", "RS", 1e9), references=[absent])
    table, grid = BY_NAME["disk_throughput"], shown(found, "disk_throughput")
    measured = [column.label for column in grid.columns if column.group.startswith("Measured")]
    assert measured == ["MyDiskBench"]
    # The plan asks for no cell of fio, so that nobody misses its column.
    (of_iozone,) = [remark for remark in grid.general if "has no values" in remark]
    assert "IOZone" in of_iozone and "`apt install iozone3`" in of_iozone
    columns = table_files.table_frame(table, found, rows_of(found, table)).columns
    measured = usual_tables.of_quantity(table, "Measured")
    assert {f"{program.heading} {measured}" for program in table.references} <= set(columns)


def test_what_is_the_same_in_all_rows_is_said_once_and_empty_columns_go(tmp_path):
    context = make.reached("lo", address="127.0.0.1")
    records = []
    for threads, block in ((1, 1024), (2, 32768)):
        records += make.runs("diskbench", "RS", 1e9, variant="io_uring", concurrency=threads)
        records += make.runs("netbench", "TCP", 1e9, block=block, context=context)
    found = make.frames(tmp_path / "c", records)
    grid = shown(found, "disk_throughput")
    labels = {column.label for column in grid.columns}
    assert not {"Engine", "n", "Standard Deviation", "Theoretical Throughput (MB/sec)"} & labels
    assert "Engine: io_uring." in grid.below
    assert all(len(line) == len(grid.columns) for line in grid.body)
    network = shown(found, "network_throughput")
    assert sum("loopback" in remark for remark in network.below if "Every line" in remark) == 1
    assert not any("loopback" in cell for line in network.body for cell in line)


def test_points_that_no_node_measured_are_a_table_without_lines(tmp_path):
    planned = [make.cell("cpubench", "DP", subsystem="cpu", node=node) for node in ("a", "b")]
    frames = make.frames(tmp_path / "c", [], planned=planned)
    arranged = layout_tables.arrange(frames, None)
    grid = usual_tables.nodes_table(arranged, BY_NAME["cpu"], frames.rows)
    assert grid.body == [] and "are wrong on all nodes: 1 of 1" in grid.below[-1]
    assert grid.page()["body"] == []


def test_the_runs_of_a_row_are_in_the_unit_of_their_table(tmp_path):
    frames = make.frames(tmp_path / "c", make.runs("diskbench", "RS", 2.7e9, 3.183e9, 3.275e9))
    (chapter,) = sections.build(layout_tables.for_print(frames, None), None)
    (runs,) = chapter["parts"][0]["table"]["runs"]
    assert runs["text"] == "2.700, 3.183, 3.275"  # GB/s; the headings of the CSV file are in MB/s


def test_every_figure_has_a_caption(tmp_path):
    frames = make.frames(tmp_path / "c", [])
    drawn = set()
    for table in BY_NAME.values():
        drawn |= {case_of(picture) for picture in pictures_of(frames, table, None)}
    of_others = {"fleet", "nodes", "panels", "together", "bars"}
    assert set(captions()) == of_others | drawn
