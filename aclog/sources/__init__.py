"""State sources, from which commands and the library read a state."""
