"""SCRAM control: a request to alter users' credentials becomes records, or the errors that Kafka answers with.

Pure, and in one step with the image it is given: whoever calls it appends the records as one batch and must not let
another change in between (org.apache.kafka.controller.ScramControlManager).
"""

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from attrs import field, frozen

from aclog.credentials import scram_keys
from aclog.credentials.scram import ScramChange, ScramImage, ScramMechanism
from aclog.metalog.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

MAX_ITERATIONS = 16_384
"""More are refused: every login would pay for them (ScramControlManager.MAX_ITERATIONS)."""

UNKNOWN_SERVER_ERROR, UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION = -1, 33, 35
RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE, UNACCEPTABLE_CREDENTIAL = 91, 92, 93


@frozen(kw_only=True)
class ScramDeletion:
    """A credential to be deleted; `mechanism` is the code of the request, known or not."""

    name: str
    mechanism: int


@frozen(kw_only=True)
class ScramUpsertion:
    """A credential to be made or replaced. The client has salted the password; it never sends the password itself."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


@frozen(kw_only=True)
class ScramResult:
    """What becomes of one user: code 0, or the error (protocol.Errors) with its text."""

    user: str
    error_code: int = 0
    error_message: str | None = None


@frozen(kw_only=True)
class ScramAlteration:
    """What to append, as one atomic batch, and one result a user: the deleted, the upserted, the refused."""

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
    """The records of all users that may be altered so, and what becomes of each user of the request.

    A user that stands in the request twice is not altered at all, whatever the mechanisms; of several errors the
    first counts, deletions before upsertions. `supported`: whether the metadata.version has SCRAM (3.5-IV2).
    """
    accepted: dict[str, _Alteration] = {}
    refused: dict[str, ScramResult] = {}
    for alteration in chain[_Alteration](deletions, upsertions):
        user = alteration.name
        if user in refused:
            continue
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
    """Why this alteration is refused; None if it is not."""
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
        return UNKNOWN_SERVER_ERROR, None  # Java has no empty keys
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
    """The record of a user whose password was salted so (scram_keys.salted_password)."""
    client_key = scram_keys.client_key(mechanism, salted_password)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=scram_keys.stored_key(mechanism, client_key),
        server_key=scram_keys.server_key(mechanism, salted_password),
        iterations=iterations,
    )
