"""Access logs as input, without Spark: kafka-authorizer.log, JSON lines, Parquet, and events of several kinds."""
