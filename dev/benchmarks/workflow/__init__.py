"""What the workflow itself costs: planning, jobs, tables, report. See docs/performance.md."""
