"""The metadata log: record types and their codec, record batches, the Log protocol, and where a log can live."""
