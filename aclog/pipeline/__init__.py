"""The metadata log and access logs on Spark: tables, history, decisions and usage at any size."""
