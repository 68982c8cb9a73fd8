"""Avro schemas of exports, and container files.

Begin with `image.avsc` and `history.avsc`.
"""
