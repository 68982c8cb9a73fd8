"""The metadata log: record codec, record batches, the Log protocol, and its implementations on files and on a topic."""
