"""SCRAM credentials (KIP-554): their keys, their image, and requests that alter them."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence, Sized
from enum import IntEnum
from itertools import chain, groupby
from typing import ClassVar, Self, TypeAlias

from attrs import evolve, field

from aclog.metalog.persistent_map import Map
from aclog.metalog.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from aclog.metalog.values import frozen

# The SCRAM credentials of an image: immutable, keyed by user and mechanism (org.apache.kafka.image.ScramImage).


ScramChange: TypeAlias = UserScramCredentialRecord | RemoveUserScramCredentialRecord


class ScramMechanism(IntEnum):
    """The SCRAM mechanisms of Kafka (org.apache.kafka.clients.admin.ScramMechanism)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The SASL mechanism name, such as `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")


@frozen(kw_only=True)
class CredentialInfo:
    """The public part of a credential: its mechanism's raw code and its iterations (ScramCredentialInfo)."""

    mechanism: int
    iterations: int


@frozen(kw_only=True)
class UserCredentials:
    """A user with the public part of each credential, by mechanism (UserScramCredentialsDescription)."""

    user: str
    credential_infos: tuple[CredentialInfo, ...]


def _number(values: Sized) -> str:
    return str(len(values))


@frozen(kw_only=True)
class ScramImage:
    """All SCRAM credentials at one offset. Its repr shows only their number, because they contain secrets.

    `keyless` are credentials of which the source reveals only the result of DescribeUserScramCredentials: they have no
    keys, so they permit no login and have no record. An image replayed from a log has none.
    """

    EMPTY: ClassVar["ScramImage"]

    _credentials: Map[tuple[str, int], UserScramCredentialRecord] = field(
        factory=Map, alias="credentials", repr=_number
    )
    keyless: tuple[UserCredentials, ...] = field(default=(), repr=_number)

    def __len__(self) -> int:
        return len(self._credentials) + sum(len(user.credential_infos) for user in self.keyless)

    def get(self, user: str, mechanism: int) -> UserScramCredentialRecord | None:
        """Return the user's credential for this mechanism, or None."""
        return self._credentials.get((user, mechanism))

    def describe(self) -> Iterator[UserCredentials]:
        """Yield every user sorted by name, as DescribeUserScramCredentials does for all users."""
        for user, records in groupby(self.records(), key=lambda record: record.name):
            infos = tuple(CredentialInfo(mechanism=r.mechanism, iterations=r.iterations) for r in records)
            yield UserCredentials(user=user, credential_infos=infos)
        yield from self.keyless

    def records(self) -> Iterator[UserScramCredentialRecord]:
        """Yield the records of this image, sorted by user, then mechanism; `keyless` ones have none."""
        return (self._credentials[key] for key in sorted(self._credentials))

    def apply(self, changes: Iterable[ScramChange]) -> Self:
        """Return the image after these changes, in order."""
        credentials = self._credentials.mutate()
        for change in changes:
            key = (change.name, change.mechanism)
            if isinstance(change, UserScramCredentialRecord):
                credentials[key] = change
            else:
                # No error if it is missing: Kafka itself writes logs that remove an absent credential.
                credentials.pop(key, None)
        return evolve(self, credentials=credentials.finish())


ScramImage.EMPTY = ScramImage()


# The keys of a SCRAM credential, and signatures with them (RFC 5802, section 3; Kafka's ScramFormatter).
#
# A password is used as is, in UTF-8: Kafka's tools and clients do not apply SASLprep, so a prepared password would
# not match the stored keys. Every function takes the mechanism first, which determines the hash.


MIN_ITERATIONS = 4096
"""Lower bound on iterations (ScramMechanism.minIterations, RFC 5802 and RFC 7677)."""

_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}

SALT_BYTES = 17
"""How many random bytes `kafka_salt` needs at least."""

_SALT_BITS, _DIGITS = 130, "0123456789abcdefghijklmnopqrstuvwxyz"


def kafka_salt(random: bytes) -> bytes:
    """Return a salt as Kafka's tools and clients make them: a number of 130 bits, in base 36, as text.

    A salt of another form would distinguish real users from unknown ones.
    """
    number, digits = int.from_bytes(random) >> (8 * len(random) - _SALT_BITS), ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return (digits or "0").encode("ascii")


def key_size(mechanism: ScramMechanism) -> int:
    """Return the size in bytes of every key, signature and proof."""
    return hashlib.new(_HASHES[mechanism]).digest_size


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the value from which keys derive (Hi in the RFC): deliberately slow, about 1 ms for 4,096 iterations."""
    # Hi() of RFC 5802 is PBKDF2 with HMAC and one output block.
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a client proves to possess."""
    return sign(mechanism, salted, b"Client Key")


def stored_key(mechanism: ScramMechanism, client: bytes) -> bytes:
    """Return the hash of the client key: enough to verify a proof, not enough to create one."""
    return hashlib.new(_HASHES[mechanism], client).digest()


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    """Return the key that a server proves to possess."""
    return sign(mechanism, salted, b"Server Key")


def sign(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    """Return the HMAC of a message."""
    return hmac.new(key, message, _HASHES[mechanism]).digest()


# SCRAM control: turns a request to alter users' credentials into records, or into the errors that Kafka returns.
#
# Pure: the caller must append the records as one batch before another change is decided on the same image
# (org.apache.kafka.controller.ScramControlManager).


MAX_ITERATIONS = 16_384
"""Upper bound on iterations, as every login pays for them (ScramControlManager.MAX_ITERATIONS)."""

UNKNOWN_SERVER_ERROR, UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION = -1, 33, 35
RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE, UNACCEPTABLE_CREDENTIAL = 91, 92, 93


@frozen(kw_only=True)
class ScramDeletion:
    """A credential to delete; `mechanism` is the raw code of the request, valid or not."""

    name: str
    mechanism: int


@frozen(kw_only=True)
class ScramUpsertion:
    """A credential to create or replace. The client salts the password and never sends the password itself."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


@frozen(kw_only=True)
class ScramResult:
    """The result for one user: code 0, or the error (protocol.Errors) and its message."""

    user: str
    error_code: int = 0
    error_message: str | None = None


@frozen(kw_only=True)
class ScramAlteration:
    """The records to append as one atomic batch, and one result per user: deleted, upserted, then failed ones."""

    records: tuple[ScramChange, ...]
    results: tuple[ScramResult, ...]


_MECHANISMS = frozenset(map(int, ScramMechanism))
_Alteration: TypeAlias = ScramDeletion | ScramUpsertion
_TWICE = (DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_UNSUPPORTED = (UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")


def alter_credentials(
    image: ScramImage,
    deletions: Sequence[ScramDeletion],
    upsertions: Sequence[ScramUpsertion],
    *,
    supported: bool = True,
) -> ScramAlteration:
    """Return the records for all users that may be altered as requested, and a result for each user in the request.

    A user that occurs twice in the request is not altered at all, for any mechanism; of several errors the first
    counts, deletions before upsertions. `supported`: whether the metadata.version has SCRAM (3.5-IV2).
    """
    accepted: dict[str, _Alteration] = {}
    refused: dict[str, ScramResult] = {}
    for alteration in chain[_Alteration](deletions, upsertions):
        user = alteration.name
        if user in refused:
            continue
        # Kafka fails both alterations of a duplicated user, so an accepted one is withdrawn here.
        error = _TWICE if accepted.pop(user, None) is not None else _error(image, alteration, supported=supported)
        if error is None:
            accepted[user] = alteration
        else:
            refused[user] = ScramResult(user=user, error_code=error[0], error_message=error[1])
    return ScramAlteration(
        records=tuple(_record(alteration) for alteration in accepted.values()),
        results=(*(ScramResult(user=user) for user in accepted), *refused.values()),
    )


def _error(image: ScramImage, alteration: _Alteration, *, supported: bool) -> tuple[int, str | None] | None:
    """Return why this alteration is rejected; None if it is accepted."""
    # In the order of Kafka's checks, because only the first error is returned.
    if not supported:
        return _UNSUPPORTED
    if not alteration.name:
        return UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if alteration.mechanism not in _MECHANISMS:
        return UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(alteration, ScramUpsertion):
        return _upsertion_error(alteration)
    if image.get(alteration.name, alteration.mechanism) is None:
        return RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    return None


def _upsertion_error(upsertion: ScramUpsertion) -> tuple[int, str | None] | None:
    if upsertion.iterations < MIN_ITERATIONS:
        return UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if upsertion.iterations > MAX_ITERATIONS:
        return UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    if not upsertion.salted_password:
        # Java's SecretKeySpec throws on an empty key, which Kafka returns as an unknown server error.
        return UNKNOWN_SERVER_ERROR, None
    return None


def _record(alteration: _Alteration) -> ScramChange:
    if isinstance(alteration, ScramDeletion):
        return RemoveUserScramCredentialRecord(name=alteration.name, mechanism=alteration.mechanism)
    return credential_record(
        alteration.name,
        ScramMechanism(alteration.mechanism),
        salt=alteration.salt,
        salted_password=alteration.salted_password,
        iterations=alteration.iterations,
    )


def credential_record(
    name: str, mechanism: ScramMechanism, *, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """Return the record of a user's credential; `salted_password` is that of scram_keys.salted_password."""
    # Only derived keys are stored: neither the password nor the client key can be computed from the record.
    key = client_key(mechanism, salted_password)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=stored_key(mechanism, key),
        server_key=server_key(mechanism, salted_password),
        iterations=iterations,
    )
