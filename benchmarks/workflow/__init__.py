"""What the workflow itself costs, beside the measuring: planning, jobs, tables, report. See
docs/workflow.md.
"""
