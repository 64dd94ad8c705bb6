"""Show a judged campaign: tables, figures, report, comparisons and exports, from ``results/C/rows/``."""
