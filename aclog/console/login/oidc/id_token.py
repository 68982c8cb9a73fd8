"""ID tokens: who signed one, for whom, for which login, and until when (OpenID Connect Core 3.1.3.7)."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError, SecurityWarning
from joserfc.jwk import Key, KeySet, import_key
from joserfc.jws import JWSRegistry

from aclog.console.login.oidc.errors import LoginError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by the provider's private keys. Neither `none`, nor HMAC: its key would be one that is public here."""
_LEEWAY_S = 60
_MOST = 64 << 10
_KINDS = ("RSA", "EC", "OKP")


class UnknownKeyError(LoginError):
    """The token's key is not among the provider's, as far as they were read."""


def read_keys(found: Any) -> KeySet:
    """Return the keys of a JWKS that may sign tokens. Raises LoginError: there is none."""
    listed = found.get("keys") if isinstance(found, dict) else None
    keys = [key for each in listed if (key := _key(each)) is not None] if isinstance(listed, list) else []
    if not keys:
        raise LoginError("The provider has no keys.", "the provider's JWKS holds no key that can be used", status=502)
    return KeySet(keys)


def claims_of(
    id_token: Any,
    keys: KeySet,
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: Any,
    algorithms: Sequence[str],
    now: int,
) -> Mapping[str, Any]:
    """Return the claims of an ID token that is for this client and this login. `now`: seconds since 1970.

    Raises:
        UnknownKeyError: its key is not there. LoginError: it is not such a token.

    """
    if not isinstance(id_token, str) or len(id_token) > _MOST:
        raise LoginError("The provider sent no ID token.", "the token endpoint's answer holds no id_token")
    registry = JWSRegistry(algorithms=[each for each in ALGORITHMS if each in algorithms], strict_check_header=False)
    try:
        with warnings.catch_warnings():  # `EdDSA` is deprecated (RFC 9864), and what providers have
            warnings.simplefilter("ignore", SecurityWarning)
            token = jwt.decode(id_token, keys, registry=registry)
        claims = CodeIDToken(
            token.claims,
            token.header,
            {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}},
            {"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=now, leeway=_LEEWAY_S)
    except InvalidKeyIdError:
        raise UnknownKeyError("The provider's ID token is signed by an unknown key.") from None
    except (JoseError, ValueError, TypeError) as error:
        # The error names a claim or what is wrong, never the token.
        raise LoginError("The provider's ID token is not good.", f"ID token refused: {_said(error)}") from None
    return dict(claims)


def principal_of(claims: Mapping[str, Any], claim: str, prefix: str) -> str:
    """Return the principal that claims name.

    Raises:
        LoginError: the claim is missing, not text that a name can be, or an address of mail that was not verified.

    """
    value = claims.get(claim)
    if (
        not isinstance(value, str)
        or not value
        or len(value) > 1024
        or not value.isprintable()
        or value.strip() != value
    ):
        raise LoginError(f"The provider does not say who you are: no {claim}.", f"claim {claim} is missing or no name")
    if claim == "email" and claims.get("email_verified") is not True:
        raise LoginError("Your address of mail is not verified.", "claim email without email_verified true")
    if value in {"*", "ANONYMOUS"}:
        raise LoginError("Nobody can be of that name.", f"claim {claim} holds a name that means others")
    return prefix + value


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 1024 and text.isprintable() and text.strip() == text


def _key(given: Any) -> Key | None:
    if not isinstance(given, dict) or given.get("kty") not in _KINDS or given.get("use", "sig") != "sig":
        return None
    try:
        return import_key(given)
    except (JoseError, ValueError, TypeError):
        return None


def _said(error: Exception) -> str:
    text = str(error)
    return text[:200] if text.isprintable() else type(error).__name__
