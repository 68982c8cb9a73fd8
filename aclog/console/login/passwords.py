"""Login with a name and a password."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError
from attrs import field
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from aclog.authorizer.codes import WILDCARD_PRINCIPAL
from aclog.console.http import check_private
from aclog.console.login.sessions import Entry, Session, Visit, local_path, same_proof
from aclog.console.shared import Budget, RateBudget
from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.server.connection_budget import network_of

# Limits on login attempts: a budget for each address and for each name.


OF_ADDRESS, OF_NAME = Budget(20, 6.0), Budget(10, 30.0)


@define(eq=False, kw_only=True)
class Attempts:
    """The attempts of late; owned by the login. Memory is bounded."""

    clock: Callable[[], float] = elapsed_seconds
    _addresses: RateBudget = field(factory=lambda: RateBudget(OF_ADDRESS), init=False)
    _names: RateBudget = field(factory=lambda: RateBudget(OF_NAME), init=False)

    def begin(self, address: str, name: str) -> float:
        """Take one attempt in advance; return 0, or after how many seconds the next attempt is possible."""
        now, where, who = self.clock(), _network(address), _digest(name)
        wait = max(self._addresses.wait(where, now), self._names.wait(who, now))
        if wait == 0:
            self._addresses.spend(where, now, 1.0)
            self._names.spend(who, now, 1.0)
        return wait

    def succeeded(self, address: str, name: str) -> None:
        """Give an attempt back: it succeeded."""
        now = self.clock()
        self._addresses.spend(_network(address), now, -1.0)
        self._names.spend(_digest(name), now, -1.0)


def _network(address: str) -> bytes:
    return _digest(network_of(address))


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


# Files of passwords: a line for each principal, `User:alice:$argon2id$...`.


MOST_CHARACTERS = 1024
"""The longest name or password."""
LEAST_CHARACTERS = 8
"""The shortest password that is hashed here."""
_MARK = ":$argon2"
_MOST_KIB, _MOST_TIME = 1 << 20, 100
_HASHER = PasswordHasher()


@frozen(eq=False)
class Passwords:
    """The hashes of a file, by principal. Verifying one takes some 50 ms and 64 MiB, or its own higher costs."""

    _hashes: Mapping[str, str] = field(repr=False)
    _decoys: tuple[str, ...] = field(repr=False)
    """Hashes that nothing matches, with the costs of the real ones."""
    _key: bytes = field(repr=False, factory=lambda: secrets.token_bytes(32))

    def principal(self, name: str) -> str | None:
        """Return the principal of a name as typed: the principal itself, or the part after its `User:`."""
        for each in (f"User:{name}", name):
            if each in self._hashes:
                return each
        return None

    def verify(self, name: str, password: str) -> str | None:
        """Return the principal of a name if this is its password; None takes as long for a name that is not there."""
        principal = self.principal(name)
        password_hash = self._decoy(name) if principal is None else self._hashes[principal]
        try:
            _HASHER.verify(password_hash, password.encode("utf-8", "surrogatepass"))
        except (VerificationError, InvalidHashError):
            return None
        return principal

    def proof(self, principal: str) -> bytes | None:
        """Return a digest of a principal's line; None if it has none."""
        password_hash = self._hashes.get(principal)
        return None if password_hash is None else sha256(self._key + password_hash.encode()).digest()

    def renewed(self, other: "Passwords") -> "Passwords":
        """Return another reading of the file whose proofs compare with those of this one."""
        return Passwords(other._hashes, other._decoys, self._key)

    def _decoy(self, name: str) -> str:
        # The decoy's costs are chosen at random among those of the real names, and do not change.
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
    """Return the passwords of a file; blank lines and lines that begin with # are skipped.

    Raises:
        ConfigError: no line is in it, one is malformed or costs too much, a duplicate principal, or others may
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
        principal, password_hash = _parsed(line.strip(), where)
        if principal in hashes:
            raise ConfigError(f"{where}: duplicate principal {principal!r}")
        hashes[principal] = password_hash
    if not hashes:
        raise ConfigError(f"{path}: no principals: expected a line PRINCIPAL:HASH for each viewer")
    return Passwords(hashes, _decoys(hashes))


def _parsed(line: str, where: str) -> tuple[str, str]:
    """Return principal and hash. Raises ConfigError, which does not repeat the line: it may hold a password."""
    principal, mark, rest = line.rpartition(_MARK)
    if not mark:
        raise ConfigError(f"{where}: expected PRINCIPAL:HASH with a hash of argon2")
    _check_principal(principal, where)
    password_hash = _MARK[1:] + rest
    try:
        costs = extract_parameters(password_hash)
    except (InvalidHashError, ValueError):
        raise ConfigError(f"{where}: the hash of {principal!r} is not one of argon2") from None
    if costs.type is not Type.ID:
        raise ConfigError(f"{where}: the hash of {principal!r}: expected argon2id")
    if costs.memory_cost > _MOST_KIB or costs.time_cost > _MOST_TIME:
        raise ConfigError(f"{where}: the hash of {principal!r} costs more than 1 GiB, or more than {_MOST_TIME} passes")
    return principal, password_hash


def _check_principal(principal: str, where: str) -> None:
    kind, colon, name = principal.partition(":")
    if not colon or not kind or not name:
        raise ConfigError(f"{where}: {principal!r}: expected a principal such as User:alice")
    if principal == WILDCARD_PRINCIPAL or not principal.isprintable() or len(principal) > MOST_CHARACTERS:
        raise ConfigError(f"{where}: {principal[:80]!r} cannot log in")


def _decoys(hashes: Mapping[str, str]) -> tuple[str, ...]:
    """Return an unmatchable hash for each hash, with its costs; equal costs share one."""
    by_costs, decoys = dict[str, str](), list[str]()
    for password_hash in hashes.values():
        costs = extract_parameters(password_hash)
        key = repr(costs)
        if key not in by_costs:
            by_costs[key] = PasswordHasher.from_parameters(costs).hash(secrets.token_bytes(32))
        decoys.append(by_costs[key])
    return tuple(decoys)


# Logging in with a name and a password.


_AT_ONCE, _WAITING = 2, 32
"""Passwords that are hashed at the same time, each of which takes memory, and logins that wait for it."""


@define(eq=False, kw_only=True)
class PasswordWay:
    """Logins by a file of passwords."""

    path: Path
    passwords: Passwords
    attempts: Attempts = field(factory=Attempts)
    _limiter: CapacityLimiter | None = field(default=None, init=False)

    @classmethod
    def read(cls, path: Path) -> "PasswordWay":
        """Return the logins of a file. Raises as `read_passwords`."""
        return cls(path=path, passwords=read_passwords(path))

    def routes(self, entry: Entry) -> Sequence[Route]:
        """Return the form, and its handler."""

        async def form(request: Request) -> Response:
            """Show the form."""
            visit = Visit.in_scope(request.scope)
            target = local_path(request.query_params.get("next"))
            return entry.pages.form(visit, target) if visit.session is None else RedirectResponse(target, 303)

        async def log_in(request: Request) -> Response:
            """Read the form."""
            async with request.form(max_files=0, max_fields=10) as fields:
                return await self._answer(entry, Visit.in_scope(request.scope), fields)

        return [Route("/login", form), Route("/login", log_in, methods=["POST"])]

    def still_good(self, session: Session) -> bool:
        """Return whether the line of a viewer is unchanged."""
        return same_proof(session.proof, self.passwords.proof(session.principal))

    def reload(self) -> None:
        """Read the file again. Raises as `read_passwords`."""
        self.passwords = self.passwords.renewed(read_passwords(self.path))

    async def _answer(self, entry: Entry, visit: Visit, fields: FormData) -> Response:
        name, password, address = (_text(fields, key) for key in ("name", "password", "next"))
        target = local_path(address)
        if not name or not password or max(len(name), len(password)) > MOST_CHARACTERS:
            return entry.pages.form(visit, target, status=400, problem="Enter a name and a password.")
        # Names of failed logins are not recorded: people type passwords into the wrong field.
        counted = self.passwords.principal(name) or name
        wait = self.attempts.begin(visit.address, counted)
        if wait > 0:
            return _refused(entry, visit, target, 429, math.ceil(wait))
        limiter = self._limiter = self._limiter or CapacityLimiter(_AT_ONCE)
        if limiter.statistics().tasks_waiting >= _WAITING:
            return _refused(entry, visit, target, 503, 5)
        passwords = self.passwords
        principal = await run_sync(passwords.verify, name, password, limiter=limiter)
        # The file may have been reloaded meanwhile: a principal whose line was removed or changed is refused.
        if principal is None or not same_proof(passwords.proof(principal), self.passwords.proof(principal)):
            return entry.pages.form(visit, target, status=403, problem="Wrong name or password.")
        self.attempts.succeeded(visit.address, counted)
        viewer = principal.removeprefix("User:")
        entry.enter(visit, viewer, principal, passwords.proof(principal))
        return RedirectResponse(target, 303)


def _refused(entry: Entry, visit: Visit, target: str, status: int, seconds: int) -> Response:
    problem = f"Too many attempts. Try again in {seconds} s."
    answer = entry.pages.form(visit, target, status=status, problem=problem)
    answer.headers["Retry-After"] = str(seconds)
    return answer


def _text(fields: FormData, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
