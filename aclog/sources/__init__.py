"""State sources: where the state that a command or the library reads comes from."""
