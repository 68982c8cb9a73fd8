"""`aclog snapshot`: checkpoint files."""
