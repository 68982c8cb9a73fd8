"""Output for people: notices, progress bars, tables, timestamps."""
