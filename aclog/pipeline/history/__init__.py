"""The history of ACLs on Spark."""
