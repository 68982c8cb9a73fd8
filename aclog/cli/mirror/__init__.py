"""`aclog mirror`: a quorum's log in a local directory."""
