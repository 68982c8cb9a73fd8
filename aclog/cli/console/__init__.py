"""`aclog console`."""
