"""The programs that measure: peakmark's kernels and the reference tools."""

from peakmark.tools.base import REFERENCES, REGISTRY, Instrument, present, references

__all__ = ["REFERENCES", "REGISTRY", "Instrument", "present", "references"]
