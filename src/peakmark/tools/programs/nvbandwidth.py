"""nvbandwidth: NVIDIA's program for copies within a GPU, between GPU and host, and between GPUs."""

from __future__ import annotations

from typing import Any

from peakmark.catalogue import metrics
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Instrument,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.common import Output

_TESTS = {
    "RWS": "device_local_copy",
    "to": "host_to_device_memcpy_ce",
    "from": "device_to_host_memcpy_ce",
}
"""Workload, or variant of LINK -> testcase. Those of both directions tell the bandwidth of one."""
_SECONDS = 5.0
"""Seconds of a testcase, which measures all GPUs one after the other."""


class NvBandwidth(Instrument):
    """gpu RWS and LINK in B/s of the first GPU; it measures GPUs one after the other."""

    name = "nvbandwidth"
    place = 3
    rows = (
        Coverage("gpu", ("RWS",), per_concurrency=False),
        Coverage("gpu", ("LINK",), variants=("to", "from"), per_concurrency=False),
    )
    version = ("--help", r"nvbandwidth (?:Version: )?v?([0-9]\S*)")
    build = (
        "git clone https://github.com/NVIDIA/nvbandwidth && cd nvbandwidth && cmake . && make"
        " (needs CUDA's toolkit)"
    )
    homes = ("https://github.com/NVIDIA/nvbandwidth",)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        argv = (tool.path, "--json", "--testcase", _test_of(cell))
        # The sentence on an error, with exit code 1, is in the JSON.
        return Invocation(self.command(cell, argv, ok_codes=(0, 1)))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = Output.of_tool(self.name, done.stdout)
        version = str(output["nvbandwidth.version"]).removeprefix("v")
        name = _test_of(cell)
        tests = {test["name"]: test for test in _tests(output)}
        test = tests.get(name, {"status": "Not Found"})
        if test["status"] == "Waived":
            raise Unavailable(f"nvbandwidth waives {name} on this machine")
        if test["status"] != "Passed":
            why = output.get("nvbandwidth.error") or test.get("error") or test["status"]
            raise ParseError(f"nvbandwidth: {name} did not pass: {why}")
        bandwidths = []
        for text in test["bandwidth_matrix"][0]:
            bandwidths.append(Output(self.name, {"bandwidth": text}).number("bandwidth"))
        whole = Output(self.name, {"sum": test.get("sum")}).number("sum")
        common.agree(sum(bandwidths), whole, 1e-3, "nvbandwidth: sum")
        value = 1e9 * bandwidths[0]
        if cell.workload == "RWS":
            value *= 2  # it counts what was copied, a row what was read and written
        (metric,) = metrics(cell.subsystem, cell.workload)
        details: dict[str, Any] = {"testcase": name}
        return Parsed((Measurement.of(cell, metric, value, details),), version)

    def estimate(self, cell: Cell) -> Cost:
        return Cost(_SECONDS, memory_bytes=2 << 30)


def _test_of(cell: Cell) -> str:
    return _TESTS[cell.variant or cell.workload]


def _tests(output: Output) -> list[dict[str, Any]]:
    """Return the testcases of the output; raise ParseError where one is not whole."""
    tests = output["nvbandwidth.testcases"]
    if not isinstance(tests, list):
        raise ParseError("nvbandwidth: testcases is no list")
    for test in tests:
        is_whole = isinstance(test, dict) and {"name", "status"} <= test.keys()
        if is_whole and test["status"] == "Passed":
            matrix = test.get("bandwidth_matrix")
            is_whole = isinstance(matrix, list) and bool(matrix) and isinstance(matrix[0], list)
            is_whole = is_whole and bool(matrix[0])
        if not is_whole:
            raise ParseError("nvbandwidth: a testcase lacks its name, status or bandwidth_matrix")
    return tests


INSTRUMENT = NvBandwidth()
