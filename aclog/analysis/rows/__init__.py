"""Differences folded into verifiable rows."""
