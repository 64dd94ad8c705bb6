"""Site files: those that come with the project, and what is said about wrong ones."""

import re
from pathlib import Path

import pytest
import yaml

from peakmark import limits
from peakmark.config import site
from peakmark.errors import ConfigError
from peakmark.planning import jobs
from peakmark.resources import ROOT

SITES = ROOT / "config" / "sites"


@pytest.mark.parametrize("path", sorted(SITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_site_file_is_valid(path: Path) -> None:
    assert site.load(path)["name"] == path.stem
    for name in site.load(path).get("formulas", {}):
        assert site.load(path, name)["formula_set"] == name


# Name of the site file, set of formulas, row (subsystem, workload, block, concurrency, metric),
# value in the published table and its unit in SI base units.
PUBLISHED = [
    ("hyperion", "report-1", ("cpu", "QP", None, 1, "rate"), 588.8, 1e9),
    ("hyperion", "report-1", ("cpu", "HP", None, 2, "rate"), 294.4, 1e9),
    ("hyperion", "report-1", ("cpu", "SP", None, 4, "rate"), 147.2, 1e9),
    ("hyperion", "report-1", ("cpu", "DP", None, 1, "rate"), 73.6, 1e9),
    ("hyperion", "report-1", ("memory", "RWS", 1024, 1, "throughput"), 63.56835, 1e9),
    ("hyperion", "report-1", ("memory", "LAT", 1, 1, "latency"), 0.01406, 1e-6),
    ("hyperion", "report-1", ("disk", "RR", 1 << 20, 1, "throughput"), 600, 1e6),
    ("hyperion", "report-1", ("disk", "RR", 1024, 8, "latency"), 4.16, 1e-3),
    ("hyperion", "report-1", ("disk", "WR", 1024, 128, "iops"), 5782.4991, 1),
    ("hyperion", "report-1", ("network", "TCP", 1024, 1, "throughput"), 56000, 1e6),
    ("hyperion", "report-1", ("network", "LAT-UDP", 1, 8, "latency"), 0.0007, 1e-3),
    ("hyperion", "report-2", ("cpu", "QP", None, 4, "rate"), 588.8, 1e9),
    ("hyperion", "report-2", ("cpu", "HP", None, 1, "rate"), 294.4, 1e9),
    ("hyperion", "report-2", ("cpu", "SP", None, 1, "rate"), 147.2, 1e9),
    ("hyperion", "report-2", ("cpu", "DP", None, 1, "rate"), 73.6, 1e9),
    ("hyperion", "report-2", ("memory", "RWR", 10_000_000, 4, "throughput"), 68.256, 1e9),
    ("hyperion", "report-2", ("memory", "LAT", 1, 1, "latency"), 0.015, 1e-6),
    ("hyperion", "report-2", ("network", "UDP", 32768, 8, "throughput"), 10000, 1e6),
    ("hyperion", "report-2", ("network", "LAT-TCP", 1, 1, "latency"), 0.0007, 1e-3),
    ("prometheus", "report-2", ("disk", "RS", 1 << 20, 1, "throughput"), 372, 1e6),
    ("prometheus", "report-2", ("disk", "RS", 1 << 20, 4, "throughput"), 1488, 1e6),
    ("prometheus", "report-2", ("disk", "RR", 1 << 20, 2, "throughput"), 1080, 1e6),
    ("prometheus", "report-2", ("disk", "WS", 1 << 20, 4, "throughput"), 688, 1e6),
    ("prometheus", "report-2", ("disk", "WR", 1 << 20, 4, "throughput"), 1640, 1e6),
    ("prometheus", "report-2", ("disk", "WR", 1024, 1, "iops"), 363281.25, 1),
    ("prometheus", "report-2", ("disk", "WR", 1024, 128, "iops"), 46_500_000, 1),
    ("prometheus", "report-2", ("disk", "RR", 1024, 1, "iops"), 167968.75, 1),
    ("prometheus", "report-2", ("disk", "WR", 1024, 64, "latency"), 0.5, 1e-3),
    ("chameleon-skylake-ssd", "report-3", ("disk", "WS", 65536, 48, "throughput"), 510, 1e6),
    ("chameleon-skylake-ssd", "report-3", ("disk", "RR", 4096, 1, "iops"), 90000, 1),
    ("chameleon-skylake-ssd", "report-3", ("disk", "WR", 4096, 1, "iops"), 10000, 1),
]


@pytest.mark.parametrize(("name", "formulas", "row", "value", "scale"), PUBLISHED)
def test_published_theoretical_values_come_out(
    name: str, formulas: str, row: tuple[str, str, int | None, int, str], value: float, scale: float
) -> None:
    facts = site.load(SITES / f"{name}.yaml", formulas)
    subsystem, workload, block, concurrency, metric = row
    limit = limits.for_row(subsystem, workload, "", block, concurrency, metric, {}, facts)
    assert limit.value is not None
    # The published figures are rounded, the least precise to four digits.
    digits = len(f"{value:.12g}".replace(".", "").strip("0"))
    assert limit.value / scale == pytest.approx(
        value, rel=0.6 * 10 ** (1 - min(digits, 8)) if digits > 3 else 1e-9
    )
    assert formulas in limit.source
    assert limit.remarks


def test_the_mixed_units_are_named() -> None:
    facts = site.load(SITES / "hyperion.yaml", "report-1")
    iops = limits.for_row("disk", "RR", "", 1024, 1, "iops", {}, facts)
    assert "1/s^2" in str(iops.remarks)
    memory = limits.for_row("memory", "RWS", "pool", 1024, 1, "throughput", {}, facts)
    assert "GiB/s printed as GB/s" in str(memory.remarks)
    other = site.load(SITES / "prometheus.yaml", "report-2")
    for workload in ("RR", "WS"):
        swapped = limits.for_row("disk", workload, "", 1 << 20, 1, "throughput", {}, other)
        assert "changed places" in str(swapped.remarks)


def test_without_formulas_the_limits_of_the_same_machine_are_computed() -> None:
    facts = site.load(SITES / "hyperion.yaml")
    double = limits.for_row("cpu", "DP", "", None, 4, "rate", {}, facts)
    assert double.value == pytest.approx(73.6e9)
    assert limits.for_row("cpu", "DP", "", None, 1, "rate", {}, facts).value == pytest.approx(
        36.8e9
    )
    integers = limits.for_row("cpu", "SP", "", None, 2, "rate", {}, facts)
    assert integers.value == pytest.approx(2 * 2.3e9 * 8)
    assert limits.for_row(
        "memory", "RWS", "pool", 1024, 1, "throughput", {}, facts
    ).value == pytest.approx(68.256e9)
    tcp = limits.for_row("network", "TCP", "", 1024, 1, "throughput", {}, facts)
    assert tcp.value == pytest.approx(10e9 * 1448 / 1538)
    assert limits.for_row("disk", "RR", "", 1024, 1, "iops", {}, facts).value is None


def test_a_row_the_report_has_no_formula_for_gets_the_computed_limit() -> None:
    facts = site.load(SITES / "hyperion.yaml", "report-2")
    fp32 = limits.for_row("cpu", "FP32", "", None, 2, "rate", {}, facts)
    assert fp32.value == pytest.approx(2 * 2.3e9 * 32)
    assert "report-2" not in fp32.source


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        (
            "2e9 * (concurrency - 2)",
            r"formula set r: 2e9 \* \(concurrency - 2\) is 0 here, which is no limit",
        ),
        (
            "1 / (concurrency - 2)",
            r"formula set r: formula '1 / \(concurrency - 2\)' divides by zero",
        ),
        ("2e9 * block", r"formula set r: formula '2e9 \* block': block is not defined"),
    ],
)
def test_a_formula_that_gives_a_row_no_limit_leaves_it_unknown(
    tmp_path: Path, formula: str, reason: str
) -> None:
    entry = {
        "subsystem": "cpu",
        "workloads": ["DP"],
        "metric": "rate",
        "unit": "op/s",
        "formula": formula,
    }
    path = tmp_path / "site.yaml"
    path.write_text(
        yaml.safe_dump({"schema": 1, "name": "s", "formula_set": "r", "formulas": {"r": [entry]}})
    )
    limit = limits.for_row("cpu", "DP", "", None, 2, "rate", {}, site.load(path))
    assert limit.value is None and re.fullmatch(f"{reason}.*", limit.reason or "")
    assert limits.efficiency(1e9, limit) is None


def test_nodes_lie_over_the_rest() -> None:
    facts = site.load(SITES / "example.yaml")
    assert site.for_host(facts, "fat-3")["memory"]["channels"] == 16
    assert site.for_host(facts, "fat-3")["memory"]["speed_mts"] == 3200
    assert site.for_host(facts, "thin-3")["memory"]["channels"] == 8
    assert site.for_host({}, "any") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "schema: 1\nname: x\nmemory: {channels: six}",
            r'memory\.channels is "six": allowed is a whole number',
        ),
        (
            "schema: 1\nname: x\nmemory: {chanels: 6}",
            r"memory has the unknown key chanels: allowed are .*channels.*type",
        ),
        (
            "schema: 1\nname: x\ncpu: {clock: turbo}",
            r'cpu\.clock is "turbo": allowed are "observed", "nominal", "maximum"',
        ),
        (
            "schema: 1\nname: x\ncpu: {nominal_hz: 2.3e9}",
            r'cpu\.nominal_hz is "2\.3e9": allowed is a number.*2.3e\+9',
        ),
        (
            "schema: 1\nname: x\ndisk: {throughput: {RS: 0}}",
            r"disk\.throughput\.RS is 0, which is not plausible: allowed is B/s",
        ),
        ("name: x", r"the top level lacks schema"),
        ("- 1", r"must hold keys and values"),
        ("schema: 1\nname: [x", r"line 2 is not valid YAML"),
        (
            "schema: 1\nname: x\nformula_set: y",
            r"formula_set is 'y' but the formulas there are none",
        ),
    ],
)
def test_wrong_site_files_get_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        site.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("a * (2", "is not arithmetic"),
        ("a * missing", "missing is not defined; known are a, block, concurrency"),
        ("__import__('os')", "allowed are numbers"),
        ("a ** 9", "allowed are numbers"),
        ("a / (1 - 1)", "divides by zero"),
        ("a if a else 1", "allowed are numbers"),
    ],
)
def test_wrong_formulas_are_found_when_the_file_is_read(
    tmp_path: Path, formula: str, message: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        "schema: 1\nname: x\nformulas:\n  r:\n    - subsystem: cpu\n      workloads: [DP]\n      metric: rate\n"
        f'      unit: op/s\n      formula: "{formula}"\n      where: {{a: 1}}\n'
    )
    with pytest.raises(ConfigError, match=message):
        site.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml cannot be read: No such file"):
        site.load(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("key", ["partition", "account", "qos", "constraint", "extra"])
@pytest.mark.parametrize(
    "word",
    ["a; id", "$(id)", "`id`", "a'b", 'a"b', "a\nb", "a\n", "--x=$(id)", "-x; id", "-x id", ""],
)
def test_what_jobs_tell_slurm_is_no_shell(tmp_path: Path, key: str, word: str) -> None:
    """The plugin hands `extra` to a shell as it is."""
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "name": "s", "slurm": {key: word}}))
    with pytest.raises(ConfigError, match=rf"slurm\.{key}"):
        site.load(path)


def test_what_clusters_use_is_allowed(tmp_path: Path) -> None:
    slurm = {
        "partition": "main,long",
        "account": "project-1",
        "qos": "normal",
        "constraint": "(skylake|zen3)&ib*2",
        "extra": "--reservation=acceptance  --nice=100 --mail-user=a@b.c",
    }
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "name": "s", "slurm": slurm}))
    assert site.load(path)["slurm"] == slurm


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        *(
            ("--mem=0", "slurm.memory_factor"),
            ("--partition=a", "slurm.partition"),
            ("--nodes=3", "for each job"),
        ),
        *(
            ("--part=a", "slurm.partition"),
            ("-pa", "slurm.partition"),
            ("-t5", "slurm.runtime_factor"),
        ),
        *(
            ("--array=1-3", "for each job"),
            ("--dep=none", "for each job"),
            ("-wnode1", "for each job"),
        ),
    ],
)
def test_an_option_that_would_be_refused_for_each_job_is_refused_at_once(
    tmp_path: Path, word: str, instead: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(
        yaml.safe_dump({"schema": 1, "name": "s", "slurm": {"extra": f"--nice=100 {word}"}})
    )
    with pytest.raises(
        ConfigError, match=rf"slurm\.extra has {word}, which cannot be given there: .*{instead}"
    ):
        site.load(path)


def test_every_option_that_peakmark_sets_is_refused() -> None:
    size = jobs.Size(threads=1, cpus=1, megabytes=512)
    options = {"partition": "a", "account": "a", "qos": "a", "constraint": "a"}
    shapes = ({"memory": "per_cpu"}, {"exclusive": False})
    named = {
        name
        for shape in shapes
        for name in jobs.site_options({**options, **shape}, 1, 2, lambda: size)
    }
    # Jobs are submitted with --no-requeue and --exclusive, which a site may say otherwise.
    assert named - {"exclusive", "no-requeue"} <= set(site.MANAGED)


@pytest.mark.parametrize(
    "word", ["--gres=gpu:1", "--gpus=1", "-G1", "--export=NONE", "--exclusive=user"]
)
def test_an_option_that_peakmark_does_not_set_is_taken(tmp_path: Path, word: str) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "name": "s", "slurm": {"extra": word}}))
    assert site.load(path)["slurm"]["extra"] == word


def test_several_files_are_laid_over_each_other(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(
        "schema: 1\nname: a\nmemory: {channels: 6, speed_mts: 2400, source: board}\nnodes: [{match: n*, cpu: {cores: 2}}]\n"
    )
    second.write_text(
        "schema: 1\nname: b\nmemory: {channels: 8, source: tender}\nnodes: [{match: n1, cpu: {cores: 4}}]\nformula_set: r\n"
    )
    formulas = tmp_path / "c.yaml"
    formulas.write_text(
        "schema: 1\nname: c\nformulas: {r: [{subsystem: cpu, workloads: [DP], metric: rate, unit: op/s, formula: '1'}]}\n"
    )
    files = [str(first), str(second), str(formulas)]
    merged = site.load(files)
    assert merged["name"] == "a and b and c"
    assert merged["memory"] == {"channels": 8, "speed_mts": 2400, "source": "board; tender"}
    assert [site.for_host(merged, host)["cpu"]["cores"] for host in ("n1", "n2")] == [4, 2]
    (conflict,) = site.conflicts(files)
    assert f"{second} says memory.channels: 8" in conflict and "6" in conflict
    assert site.load(str(first))["memory"]["channels"] == 6
    with pytest.raises(ConfigError, match="formula_set is 'r' but the formulas there are none"):
        site.load(files[:2])


def test_formulas_of_several_files_are_of_one_set() -> None:
    """The second report measured its disk on another cluster than the rest: two files, one set,
    each value the printed one.
    """
    files = [str(SITES / f"{name}.yaml") for name in ("hyperion", "prometheus")]
    for order in (files, files[::-1]):
        merged = site.load(order, "report-2")
        assert limits.for_row("cpu", "QP", "", None, 4, "rate", {}, merged).value == pytest.approx(
            588.8e9
        )
        assert limits.for_row(
            "disk", "RS", "", 1 << 20, 4, "throughput", {}, merged
        ).value == pytest.approx(1488e6)
        assert not any("formulas" in sentence for sentence in site.conflicts(order))


def test_of_two_formulas_for_one_row_the_later_counts(tmp_path: Path) -> None:
    files = []
    for name, formula in (("a", "1"), ("b", "2")):
        entry = {
            "subsystem": "cpu",
            "workloads": ["DP"],
            "metric": "rate",
            "unit": "op/s",
            "formula": formula,
        }
        files.append(str(tmp_path / f"{name}.yaml"))
        Path(files[-1]).write_text(
            yaml.safe_dump(
                {"schema": 1, "name": name, "formula_set": "r", "formulas": {"r": [entry]}}
            )
        )
    assert limits.for_row("cpu", "DP", "", None, 1, "rate", {}, site.load(files)).value == 2
    (conflict,) = site.conflicts(files)
    assert f"{files[1]} says formulas.r of cpu rate DP" in conflict


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("disk.throughput.RS", "3.2", "B/s.*3.2e.9 for 3.2 GB/s"),
        ("memory.bandwidth", "204.8", "B/s.*204.8 GB/s"),
        ("memory.latency", "90", "seconds"),
        ("memory.speed_mts", "3200.0e+6", "MT/s"),
        ("memory.channels", "3200", "channels"),
        ("cpu.nominal_hz", "2.45", "Hz.*GHz"),
        ("network.speed_bps", "100", "bit/s"),
        ("network.latency.TCP", "12", "seconds"),
        ("disk.iops.RR", "0", "operations per second"),
    ],
)
def test_values_in_another_unit_are_told_by_what_is_plausible(
    tmp_path: Path, key: str, value: str, words: str
) -> None:
    path = tmp_path / "site.yaml"
    for text in ("{}", "nodes: [{{match: n1, {}}}]"):
        part = value
        for step in reversed(key.split(".")):
            part = f"{{{step}: {part}}}"
        path.write_text("schema: 1\nname: s\n" + text.format(part[1:-1]) + "\n")
        with pytest.raises(
            ConfigError, match=rf"{key} is .*, which is not plausible: allowed is .*{words}"
        ):
            site.load(path)
