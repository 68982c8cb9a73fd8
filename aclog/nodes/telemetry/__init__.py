"""Metrics, health checks and logs of a node."""
