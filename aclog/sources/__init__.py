"""State sources: the places from which commands and the library read a state."""
