"""`aclog lint`."""
