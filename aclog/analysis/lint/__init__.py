"""Lint: rules that do not do what they seem to do, or that do nothing."""
