"""Site files: those that come with the project, and what is said about wrong ones."""

import re

import msgspec
import pytest
import yaml
from tests.unit.cases import cases
from tests.unit.hostile import refuses

from peakmark import limits
from peakmark.config import site
from peakmark.config.types import Site, SiteSlurm, SiteValues
from peakmark.plan import jobs
from peakmark.resources import ROOT

SITES = ROOT / "config" / "sites"


def written(path, **keys):
    path.write_text(yaml.safe_dump({"schema": 1, "name": path.stem, **keys}))
    return path


@pytest.mark.parametrize("path", sorted(SITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_site_file_is_valid(path):
    assert site.load(path).name == path.stem


@cases("limits")
def test_the_limits_of_a_published_machine_are_computed(row, value):
    limit = limits.for_row(limits.Question(*row, {}, site.load(SITES / "hyperion.yaml")))
    assert limit.value == (value and pytest.approx(value))


def test_the_example_states_nothing_and_its_comments_can_be_taken_in(tmp_path):
    text = (SITES / "example.yaml").read_text()
    assert yaml.safe_load(text) == {"schema": 1, "name": "example"}
    head, name, rest = text.partition("name: example\n")
    path = tmp_path / "mine.yaml"
    path.write_text(head + name + re.sub("^# ", "", rest, flags=re.MULTILINE))
    assert msgspec.to_builtins(site.load(path)).keys() == set(Site.__struct_fields__)


NODES = """
schema: 1
name: two-kinds
memory: {channels: 8, speed_mts: 3200}
nodes: [{match: "fat-[0-9]*", memory: {channels: 16}}]
"""


def test_nodes_override_the_rest(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(NODES)
    facts = site.load(path)
    assert site.for_host(facts, "fat-3").memory.channels == 16
    assert site.for_host(facts, "fat-3").memory.speed_mts == 3200
    assert site.for_host(facts, "fat-3.hpc.example").memory.channels == 16
    assert site.for_host(facts, "thin-3").memory.channels == 8
    assert site.for_host(SiteValues(), "any") == SiteValues()


@cases("configuration")
def test_wrong_site_files_get_one_sentence(tmp_path, text, words):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    refuses(lambda: site.load(path), str(path), *words)


@pytest.mark.parametrize(
    "key", ["partition", "account", "qos", "constraint", "reservation", "extra"]
)
@pytest.mark.parametrize("word", [
    "a; id", "$(id)", "`id`", "a'b", 'a"b', "a\nb", "a\n", "--x=$(id)", "-x; id", "-x id", "",
])  # fmt: skip
def test_what_jobs_tell_slurm_is_no_shell(tmp_path, key, word):
    """The plugin hands `extra` to a shell as it is."""
    path = written(tmp_path / "site.yaml", slurm={key: word})
    refuses(lambda: site.load(path), f"slurm.{key}")


@cases("configuration")
def test_an_option_that_would_be_refused_for_each_job_is_refused_at_once(tmp_path, word, instead):
    path = written(tmp_path / "site.yaml", slurm={"extra": f"--nice=100 {word}"})
    refuses(lambda: site.load(path), f"slurm.extra has {word}", instead)


def test_every_option_that_peakmark_sets_is_refused():
    options = dict.fromkeys(("partition", "account", "qos", "constraint", "reservation"), "a")
    shapes = ({"memory": "per_cpu"}, {"exclusive": False})
    named = {
        name
        for shape in shapes
        for name in jobs.site_options(SiteSlurm(**options, **shape), 1, 2, 1, 512)
    }
    # Jobs are submitted with --no-requeue and --exclusive, which a site may say otherwise.
    assert set(options) <= named and named - {"exclusive", "no-requeue"} <= set(site.MANAGED)


@pytest.mark.parametrize("extra", [
    "--licenses=a:1  --nice=100 --mail-user=a@b.c", "--gres=gpu:1", "--gpus=1",
    "--export=NONE", "--exclusive=user",
])  # fmt: skip
def test_what_clusters_use_is_taken(tmp_path, extra):
    slurm = {"partition": "main,long", "account": "project-1", "qos": "normal"}
    slurm |= {"constraint": "(skylake|zen3)&ib*2", "extra": extra}
    assert site.load(written(tmp_path / "site.yaml", slurm=slurm)).slurm == SiteSlurm(**slurm)


@cases("configuration")
def test_values_in_another_unit_are_told_by_what_is_plausible(tmp_path, key, value, words):
    part = value
    for step in reversed(key.split(".")):
        part = {step: part}
    for keys in (part, {"nodes": [{"match": "n1", **part}]}):
        path = written(tmp_path / "site.yaml", **keys)
        refuses(lambda path=path: site.load(path), f"{key} is ", "allowed is", *words)


@pytest.mark.parametrize(("key", "value"), [
    ("memory", "3 GB/s"), ("ram/RS", "3 GB/s"), ("memory/RS", "3 GiB/s"), ("memory/RS", "at most 3 GB/s"),
    ("memory/LAT", "at least 3 ns"), ("memory/LAT", "3"),
])  # fmt: skip
def test_a_promise_that_cannot_be_compared_is_refused(key, value, tmp_path):
    refuses(lambda: site.load(written(tmp_path / "s.yaml", promise={key: value})), "promise")


@pytest.mark.parametrize(("key", "value", "words"), [
    ("memroy/RS", "3 GB/s", "'memroy': allowed are cpu, memory, disk, network, mpi, gpu; did you mean memory?"),
    ("memory/TRAID/pool", "3 GB/s", "'TRAID': allowed are RS, "), ("memory/TRAID", "3 GB/s", "did you mean TRIAD?"),
    ("memory/LAT", "3 GB/s", "'3 GB/s': allowed are values in ns, us, µs, ms"),
    ("disk/RR", "3 Gb/s", "'3 Gb/s': allowed are values in MB/s, GB/s, TB/s, IOPS, kIOPS, MIOPS, ns, us, µs, ms"),
    ("cpu/LAT", "3 ns", "has 'LAT': allowed are QP"), ("mpi/HPL/4-nodes", "3 ms", "GFLOP/s"),
])  # fmt: skip
def test_a_promise_that_no_row_can_match_is_told_when_the_site_file_is_read(
    key, value, words, tmp_path
):
    path = written(tmp_path / "s.yaml", promise={key: value})
    refuses(lambda: site.load(path), f"site file {path}: promise.{key}", words)


@pytest.mark.parametrize(("key", "value"), [
    ("mpi/HPL/4-nodes", "10 TFLOP/s"), ("mpi/MSGRATE/xcores", "2.5 M messages/s"), ("disk/META/create", "9 kIOPS"),
    ("disk/RR/psync/4KiB", "at most 90 us"), ("memory/RWS/pool/1MiB/xcores", "380 GB/s"), ("gpu/LINK/to", "50 GB/s"),
])  # fmt: skip
def test_a_promise_of_each_metric_of_a_workload_is_taken(key, value, tmp_path):
    assert site.load(written(tmp_path / "s.yaml", promise={key: value})).promise == {key: value}
