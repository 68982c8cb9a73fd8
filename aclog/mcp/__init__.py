"""The Model Context Protocol for assistants: read-only tools, each of which runs a command and returns its rows.

A question runs in a process of its own, which can be killed at its time limit; the server itself holds no state.
Begin with `tools.py` and `server.py`.
"""
