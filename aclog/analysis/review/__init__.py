"""A review of a change: what it gives and takes, what it breaks, and whether that is acceptable; pure."""
