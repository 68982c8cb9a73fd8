"""SCRAM control: turns a request to alter users' credentials into records, or into the errors that Kafka returns.

Pure: the caller must append the records as one batch before another change is decided on the same image
(org.apache.kafka.controller.ScramControlManager).
"""

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from attrs import field, frozen

from aclog.credentials import scram_keys
from aclog.credentials.scram import ScramChange, ScramImage, ScramMechanism
from aclog.metalog.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

MAX_ITERATIONS = 16_384
"""Upper bound on iterations, as every login pays for them (ScramControlManager.MAX_ITERATIONS)."""

UNKNOWN_SERVER_ERROR, UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION = -1, 33, 35
RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE, UNACCEPTABLE_CREDENTIAL = 91, 92, 93


@frozen(kw_only=True)
class ScramDeletion:
    """A credential to delete; `mechanism` is the raw code of the request, known or not."""

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

    A user that occurs twice in the request is not altered at all, whatever the mechanisms; of several errors the first
    counts, deletions before upsertions. `supported` says whether the metadata.version has SCRAM (3.5-IV2).
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
    if upsertion.iterations < scram_keys.MIN_ITERATIONS:
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
    key = scram_keys.client_key(mechanism, salted_password)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=scram_keys.stored_key(mechanism, key),
        server_key=scram_keys.server_key(mechanism, salted_password),
        iterations=iterations,
    )
