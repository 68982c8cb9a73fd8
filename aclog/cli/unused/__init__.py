"""`aclog unused`: which rules nobody needs, from the index of last use."""
