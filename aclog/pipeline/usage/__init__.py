"""Usage of ACLs on Spark."""
