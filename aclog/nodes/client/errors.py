"""Errors of client connections."""

from aclog.metalog.errors import LogError


class UnreachableError(LogError):
    """No connection, or one that was closed or timed out. A retry may help, here or at another server."""


class AbsentError(UnreachableError):
    """Nobody takes connections at the address: nothing is to be found out about who does."""


class SilentError(UnreachableError):
    """A server that takes the connection did not respond in time."""


class StrangerError(UnreachableError):
    """What listens is no Kafka listener, or not one of this client's security.protocol."""


class WrongRoleError(LogError):
    """A broker where a controller was expected, or the reverse."""


class LoginError(LogError):
    """The server does not accept this client's login, or is not trusted. A retry helps only after a change."""
