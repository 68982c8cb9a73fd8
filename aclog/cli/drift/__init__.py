"""`aclog drift`."""
