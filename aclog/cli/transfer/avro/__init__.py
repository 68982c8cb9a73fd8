"""Avro for others' eyes: schemas in files, and container files with them."""
