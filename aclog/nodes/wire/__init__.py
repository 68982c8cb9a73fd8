"""Kafka's wire protocol without a socket: bytes in, messages out."""
