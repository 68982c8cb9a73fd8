"""`aclog diff`."""
