"""Bearer tokens of those who may ask: kept as digests, compared in constant time."""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from attrs import field, frozen

from aclog.console.private_file import check_private
from aclog.metalog.errors import ConfigError

_LEAST = 16
"""Characters of a token."""


@frozen
class Tokens:
    """Digests of tokens."""

    _digests: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Tokens":
        """Return the digests of some tokens."""
        return cls(tuple(sha256(token.encode()).digest() for token in tokens))

    def holder(self, authorization: str | None) -> bytes | None:
        """Return which of them the value of an Authorization header is, by its digest; None: none."""
        kind, _, token = (authorization or "").partition(" ")
        digest = sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found = [compare_digest(digest, known) for known in self._digests]  # all of them: the time tells nothing
        return digest if kind.lower() == "bearer" and any(found) else None


def read_tokens(path: Path) -> Tokens:
    """Return the tokens of a file, one a line; blank lines and those that begin with # are none.

    Raises:
        ConfigError: none is in it, one is short, or others may read the file.
        OSError: the file cannot be read.

    """
    check_private(path, ", and so ask in the name of who holds a token")
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8: expected tokens, one a line") from None
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise ConfigError(f"{path}: no token in it: expected one a line")
    if any(len(token) < _LEAST for token in found):
        raise ConfigError(f"{path}: a token with less than {_LEAST} characters can be guessed")
    return Tokens.of(found)
