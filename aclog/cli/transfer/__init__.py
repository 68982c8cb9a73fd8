"""Export of a state or a history as rows, in Avro or JSON lines, and import into a log.

Begin with `transfer.py`.
"""
