"""Who is refused what in an access log, and what would allow it."""
