"""Differences folded into rows that a person can check."""
