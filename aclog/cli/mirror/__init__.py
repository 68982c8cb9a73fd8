"""`aclog mirror`: a local copy of a quorum's log."""
