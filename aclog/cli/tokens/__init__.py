"""`aclog tokens`: delegation tokens."""
