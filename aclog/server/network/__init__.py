"""Sockets: listeners, connections, limits (kafka.network)."""
