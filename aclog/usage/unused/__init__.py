"""Which ACLs a window of accesses does not need, and which of them can go together: pure, from what the index holds."""
