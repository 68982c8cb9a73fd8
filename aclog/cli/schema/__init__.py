"""`aclog schema`: JSON schemas of what commands print."""
