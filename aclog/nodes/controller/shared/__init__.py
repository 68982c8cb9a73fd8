"""Controllers that share one log on a topic: election, standby, leadership terms, fencing."""
