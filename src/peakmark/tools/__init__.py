"""The programs that measure: peakmark's kernels and the reference tools."""

from peakmark.tools.base import Instrument
from peakmark.tools.registry import REFERENCES, REGISTRY, present, references

__all__ = ["REFERENCES", "REGISTRY", "Instrument", "present", "references"]
