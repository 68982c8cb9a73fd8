"""Files of passwords: a line for each principal, `User:alice:$argon2id$...`."""

import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError
from attrs import field, frozen

from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.console.private_file import check_private
from aclog.metalog.errors import ConfigError

MOST_CHARACTERS = 1024
"""Of a name or a password."""
LEAST_CHARACTERS = 8
"""Of a password that is hashed here."""
_MARK = ":$argon2"
_MOST_KIB, _MOST_TIME = 1 << 20, 100
_HASHER = PasswordHasher()


@frozen(eq=False)
class Passwords:
    """The hashes of a file, by principal. Verifying one takes some 50 ms and 64 MiB, more if its hash says so."""

    _hashes: Mapping[str, str] = field(repr=False)
    _decoys: tuple[str, ...] = field(repr=False)
    """Hashes that nothing matches, with the costs of the real ones."""
    _key: bytes = field(repr=False, factory=lambda: secrets.token_bytes(32))

    def principal(self, name: str) -> str | None:
        """Return the principal of a name as typed, which is the principal or what follows its `User:`."""
        for each in (f"User:{name}", name):
            if each in self._hashes:
                return each
        return None

    def verify(self, name: str, password: str) -> str | None:
        """Return the principal of a name if this is its password; None takes as long for a name that is not there."""
        principal = self.principal(name)
        known = self._decoy(name) if principal is None else self._hashes[principal]
        try:
            _HASHER.verify(known, password.encode("utf-8", "surrogatepass"))
        except (VerificationError, InvalidHashError):
            return None
        return principal

    def proof(self, principal: str) -> bytes | None:
        """Return what changes with a principal's line; None if it has none."""
        known = self._hashes.get(principal)
        return None if known is None else sha256(self._key + known.encode()).digest()

    def renewed(self, other: "Passwords") -> "Passwords":
        """Return another reading of the file whose proofs compare with those of this one."""
        return Passwords(other._hashes, other._decoys, self._key)

    def _decoy(self, name: str) -> str:
        # Which costs a name's decoy has is as random as the costs of the names that are there, and stays.
        drawn = sha256(self._key + name.encode("utf-8", "surrogatepass")).digest()
        return self._decoys[int.from_bytes(drawn[:8]) % len(self._decoys)]


def password_line(principal: str, password: str) -> str:
    """Return the line of a file for a principal, hashed by argon2id with RFC 9106's low-memory costs.

    Raises:
        ConfigError: not a principal that can log in, or a password that is short or long.

    """
    _check_principal(principal, "the principal")
    if not LEAST_CHARACTERS <= len(password) <= MOST_CHARACTERS:
        raise ConfigError(f"a password has {LEAST_CHARACTERS} to {MOST_CHARACTERS:,} characters")
    return f"{principal}:{_HASHER.hash(password.encode('utf-8', 'surrogatepass'))}"


def read_passwords(path: Path) -> Passwords:
    """Return the passwords of a file; blank lines and those that begin with # are none.

    Raises:
        ConfigError: no line is in it, one is malformed or costs too much, a principal is there twice, or others may
            read the file.
        OSError: the file cannot be read.

    """
    check_private(path, ", and try to guess the passwords")
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8") from None
    hashes = dict[str, str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{path}:{number}"
        principal, known = _parsed(line.strip(), where)
        if principal in hashes:
            raise ConfigError(f"{where}: {principal!r} is there twice")
        hashes[principal] = known
    if not hashes:
        raise ConfigError(f"{path}: nobody in it: expected a line PRINCIPAL:HASH for each viewer")
    return Passwords(hashes, _decoys(hashes))


def _parsed(line: str, where: str) -> tuple[str, str]:
    """Return principal and hash. Raises ConfigError, which does not repeat the line: it may hold a password."""
    principal, mark, rest = line.rpartition(_MARK)
    if not mark:
        raise ConfigError(f"{where}: expected PRINCIPAL:HASH with a hash of argon2")
    _check_principal(principal, where)
    known = _MARK[1:] + rest
    try:
        costs = extract_parameters(known)
    except (InvalidHashError, ValueError):
        raise ConfigError(f"{where}: the hash of {principal!r} is not one of argon2") from None
    if costs.type is not Type.ID:
        raise ConfigError(f"{where}: the hash of {principal!r}: expected argon2id")
    if costs.memory_cost > _MOST_KIB or costs.time_cost > _MOST_TIME:
        raise ConfigError(f"{where}: the hash of {principal!r} costs more than 1 GiB, or more than {_MOST_TIME} passes")
    return principal, known


def _check_principal(principal: str, where: str) -> None:
    kind, colon, name = principal.partition(":")
    if not colon or not kind or not name:
        raise ConfigError(f"{where}: {principal!r}: expected a principal such as User:alice")
    if principal == WILDCARD_PRINCIPAL or not principal.isprintable() or len(principal) > MOST_CHARACTERS:
        raise ConfigError(f"{where}: {principal[:80]!r} cannot log in")


def _decoys(hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Return a hash of nothing known for each hash, with its costs; equal costs share one."""
    made, found = dict[str, str](), list[str]()
    for known in hashes.values():
        costs = extract_parameters(known)
        key = repr(costs)
        if key not in made:
            made[key] = PasswordHasher.from_parameters(costs).hash(secrets.token_bytes(32))
        found.append(made[key])
    return tuple(found)
