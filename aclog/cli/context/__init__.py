"""`aclog context`: clusters and logs by name."""
