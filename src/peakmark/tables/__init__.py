"""Rows -> tables: their layouts, headings and cells, as CSV, LaTeX, pages and HTML."""
