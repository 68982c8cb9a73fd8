"""`aclog revoke`."""
