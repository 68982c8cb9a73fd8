"""Sockets: listeners, connections, limits (kafka.network).

Begin with `listeners.py`, `dispatch.py` and `admission.py`.
"""
