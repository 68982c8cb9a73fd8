"""How a connection to a server fails."""

from aclog.metalog.errors import LogError


class UnreachableError(LogError):
    """No connection, or one that was cut or went silent. Trying again may help, here or at another server."""


class LoginError(LogError):
    """The server does not know this client, or is not who it should be. Trying again helps only after a change."""
