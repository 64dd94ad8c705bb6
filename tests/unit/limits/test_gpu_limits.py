"""Limits of GPUs where the golden campaign of an H100 has none: other links, chips and models, and several GPUs."""

import pytest
from tests.unit.cases import cases
from tests.unit.machine import hosts

from peakmark import limits
from peakmark.catalogue import metrics
from peakmark.limits import Question


def question(facts, workload, variant="sustained", clock_hz=1.98e9, isa=None, gpus=1):
    (metric,) = metrics("gpu", workload)
    clock = {"clock_hz": clock_hz, "clock_loaded": True}
    return Question("gpu", workload, variant, None, gpus, metric, facts, isa=isa, **clock)


@pytest.mark.parametrize(("nvlinks", "value", "words"), [
    ([[0, 18], [18, 0]], 900e9, "2 GPUs x 18 NVLinks x 25 GB/s"),
    ([[0, 0], [0, 0]], 126e9, "2 GPUs x PCIe 32 GT/s x 16 lanes"),
])  # fmt: skip
def test_the_link_between_gpus_is_nvlink_or_pci_express(tmp_path, nvlinks, value, words):
    facts = hosts.gpu_facts(tmp_path, 2)
    for one, counts in zip(facts["gpu"]["gpus"], nvlinks, strict=True):
        one["nvlinks"] = counts
    limit = limits.for_row(question(facts, "LINK", "peer", gpus=2))
    assert limit.value == pytest.approx(value, rel=1e-3) and words in limit.formula


def test_several_gpus_have_the_sum(tmp_path):
    facts = hosts.gpu_facts(tmp_path, 4)
    one = limits.for_row(question(facts, "FP64", isa="fma.rn.f64"))
    two = limits.for_row(question(facts, "FP64", isa="fma.rn.f64", gpus=2))
    assert two.value == 2 * one.value


@pytest.mark.parametrize(
    ("workload", "variant"), [("FP64", "sustained"), ("RS", ""), ("LINK", "peer")]
)
def test_rows_over_different_models_have_no_limit(tmp_path, workload, variant):
    facts = hosts.facts_of_two_models(tmp_path)
    limit = limits.for_row(question(facts, workload, variant, isa="fma.rn.f64", gpus=2))
    models = f"of several models ({hosts.NAME}, {hosts.A100['name']})"
    assert limit.value is None and models in limit.reason


@pytest.mark.parametrize(("first", "rate", "memory"), [
    ("H100", 132 * 128 * 1.98e9, 3.352e12), ("A100", 108 * 64 * 1.41e9, 1.555e12),
])  # fmt: skip
def test_one_gpu_beside_another_model_has_its_own_limits(tmp_path, first, rate, memory):
    facts = hosts.facts_of_two_models(tmp_path, first)
    fp64 = limits.for_row(question(facts, "FP64", clock_hz=None, isa="fma.rn.f64"))
    # Without a clock under the work the highest counts.
    assert (fp64.value, fp64.clock, fp64.origin) == (pytest.approx(rate), "maximum", "read")
    read = limits.for_row(question(facts, "RS", ""))
    assert read.value == pytest.approx(memory, rel=1e-3)


@cases("limits")
def test_what_has_no_limit_says_why(tmp_path, changes, workload, variant, isa, words):
    facts = hosts.gpu_facts(tmp_path, **changes)
    limit = limits.for_row(question(facts, workload, variant, isa=isa))
    assert limit.value is None and words in limit.reason


def test_a_machine_without_facts_has_no_limit():
    assert limits.for_row(question({}, "FP64")).value is None


def test_pairs_of_gpus_that_are_connected_differently_have_no_limit(tmp_path):
    facts = hosts.gpu_facts(tmp_path, 3)
    for one, counts in zip(facts["gpu"]["gpus"], ([0, 4, 0], [4, 0, 0], [0, 0, 0]), strict=True):
        one["nvlinks"] = counts
    limit = limits.for_row(question(facts, "LINK", "peer", gpus=3))
    assert limit.value is None and "not all pairs" in limit.reason
