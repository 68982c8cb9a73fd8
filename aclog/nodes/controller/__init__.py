"""Controllers: the single writer of a metadata log, alone on files or one of several on a topic."""
