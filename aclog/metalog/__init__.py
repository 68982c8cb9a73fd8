"""The metadata log: record codec, record batches, the Log protocol, and its implementations on files and on a topic.

Begin with `records.py`, `batches.py` and `committed_log.py` (the protocol that each log implements).
"""
