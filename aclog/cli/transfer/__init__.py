"""Rows of an export and of a history, in Avro and JSON lines, and back into a log."""
