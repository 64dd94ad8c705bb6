"""Rows -> figures."""
