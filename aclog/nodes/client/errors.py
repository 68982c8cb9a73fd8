"""Errors of client connections."""

from aclog.metalog.errors import LogError


class UnreachableError(LogError):
    """No connection, or one that was closed or timed out. A retry may help, here or at another server."""


class LoginError(LogError):
    """The server does not accept this client's login, or is not trusted. A retry helps only after a change."""
