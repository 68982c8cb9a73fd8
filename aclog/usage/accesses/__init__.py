"""Access logs as input, without Spark: kafka-authorizer.log, JSON lines, Parquet, and events of several kinds.

Begin with `access_log.py` and `lines.py`.
"""
