"""Authentication errors."""

from aclog.metalog.errors import MetadataError


class AuthenticationError(MetadataError):
    """Authentication failed. The text is sent to the client (SASL_AUTHENTICATION_FAILED, code 58)."""


class AuthenticationNotReadyError(MetadataError):
    """The credentials are not replayed yet, so the client should retry later."""


def invalid_credentials(mechanism: str, *, reauthentication: bool = False) -> AuthenticationError:
    """Return the error that does not reveal why (SaslServerAuthenticator's response to a SaslException)."""
    what = "re-authentication" if reauthentication else "authentication"
    return AuthenticationError(
        f"Authentication failed during {what} due to invalid credentials with SASL mechanism {mechanism}"
    )
