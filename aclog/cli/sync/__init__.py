"""`aclog sync`: record every change of a cluster's ACLs as a log."""
