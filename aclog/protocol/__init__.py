"""Kafka's wire protocol, without sockets: framing, headers, messages, error responses, and sessions.

Begin with `headers.py` and `messages.py`.
"""
