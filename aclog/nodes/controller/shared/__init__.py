"""Controllers that share one log on a topic: standby, election, term."""
