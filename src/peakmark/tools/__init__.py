"""The programs that measure: peakmark's kernels and the reference tools."""

from peakmark.tools.base import Instrument
from peakmark.tools.registry import REFERENCES, REGISTRY, by_product_of, present, references

__all__ = ["REFERENCES", "REGISTRY", "Instrument", "by_product_of", "present", "references"]
