"""`aclog pdp`."""
