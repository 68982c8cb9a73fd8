"""`aclog apply`."""
