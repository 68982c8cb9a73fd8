"""Authorization in bulk, by all ACLs that were ever in force: pure, run by Spark's workers."""
