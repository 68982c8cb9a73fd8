"""Avro schemas of exports, and container files."""
