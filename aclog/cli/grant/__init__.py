"""`aclog grant`."""
