"""Usage of ACLs by access logs: evaluation, the index of last use, suggestions. No Spark, and no sockets."""
