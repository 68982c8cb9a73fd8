"""`aclog shell`: the tree of a state."""
