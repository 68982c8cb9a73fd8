"""`aclog test`."""
