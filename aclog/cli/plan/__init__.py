"""`aclog plan`."""
