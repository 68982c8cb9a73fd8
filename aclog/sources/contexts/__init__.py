"""Contexts: clusters and logs with their settings, which a file of the user names once and for all commands."""
