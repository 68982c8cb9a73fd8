"""`aclog status`: a running cluster at a glance."""
