"""Controllers: the quorum's voters and the active controller, over a log in files or in a topic."""
