"""`aclog check`."""
