"""Sockets: listeners, connections, limits."""
