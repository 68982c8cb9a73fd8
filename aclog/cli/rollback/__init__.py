"""`aclog rollback`."""
