"""Access logs as input, without Spark."""
