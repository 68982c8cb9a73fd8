"""How a login fails."""

from aclog.metalog.errors import MetadataError


class AuthenticationError(MetadataError):
    """A login that failed for good; its text is fit for the client (SASL_AUTHENTICATION_FAILED, code 58)."""


class AuthenticationNotReadyError(MetadataError):
    """A login that cannot be judged yet, as this node has not replayed the credentials: the client is to try again."""


def invalid_credentials(mechanism: str, *, reauthentication: bool = False) -> AuthenticationError:
    """The failure that tells a client nothing about why (SaslServerAuthenticator's answer to a SaslException)."""
    what = "re-authentication" if reauthentication else "authentication"
    return AuthenticationError(
        f"Authentication failed during {what} due to invalid credentials with SASL mechanism {mechanism}"
    )
