"""`aclog serve`: a node."""
