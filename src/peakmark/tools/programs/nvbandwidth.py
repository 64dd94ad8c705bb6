"""nvbandwidth, NVIDIA's program that measures copies within a GPU, and between GPU and host."""

from __future__ import annotations

from peakmark.catalogue import metrics
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import common
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Instrument,
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
"""Workload, or variant of LINK -> name of the testcase.

Testcases for both directions are not used, because they report the bandwidth of one direction.
"""
_SECONDS = 5.0
"""Seconds of a testcase, in which all GPUs are measured one after the other."""


class NvBandwidth(Instrument):
    """nvbandwidth. It measures RWS and LINK in B/s. Only the value of the first GPU is used."""

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

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        argv = (tool.path, "--json", "--testcase", _test_of(cell))
        # Errors have exit code 1, and their message is in the JSON.
        return self.command(cell, argv, ok_codes=(0, 1))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        output = Output.of_json(self.name, done.stdout)
        name = _test_of(cell)
        tests = output["nvbandwidth.testcases"]
        if not isinstance(tests, list) or len(tests) != 1 or not isinstance(tests[0], dict):
            raise ParseError(f"nvbandwidth: {name} is incomplete in its output")
        test = Output(self.name, tests[0])
        test.expect({"name": name})
        if test["status"] == "Waived":
            raise Unavailable(f"nvbandwidth waives {name} on this machine")
        if test["status"] != "Passed":
            why = output.get("nvbandwidth.error") or test.get("error") or test["status"]
            raise ParseError(f"nvbandwidth: {name} did not pass: {why}")
        value = 1e9 * self.bandwidth(test)
        if cell.workload == "RWS":
            value *= (
                2  # nvbandwidth counts copied bytes, a row counts bytes read plus bytes written
            )
        (metric,) = metrics(cell.subsystem, cell.workload)
        row = Measurement.of(cell, metric, value, {"testcase": name})
        return Parsed((row,), str(output["nvbandwidth.version"]).removeprefix("v"))

    def bandwidth(self, test: Output) -> float:
        """Return the GB/s of the first GPU, which is the first column of the only row."""
        matrix = test["bandwidth_matrix"]
        if not isinstance(matrix, list) or len(matrix) != 1 or not isinstance(matrix[0], list):
            raise ParseError("nvbandwidth: bandwidth_matrix is not one row")
        row = Output(self.name, {str(gpu): text for gpu, text in enumerate(matrix[0])})
        bandwidths = [row.number(gpu) for gpu in row]
        common.agree(sum(bandwidths), test.number("sum"), 1e-3, "nvbandwidth: sum")
        return bandwidths[0]

    def estimate(self, cell: Cell) -> Cost:
        return Cost(_SECONDS, memory_bytes=2 << 30)


def _test_of(cell: Cell) -> str:
    return _TESTS[cell.variant or cell.workload]


INSTRUMENT = NvBandwidth()
