"""Tables, figures and words -> the report, as PDF and as one HTML page."""
