"""The SCRAM credentials of an image: immutable, keyed by user and mechanism (org.apache.kafka.image.ScramImage)."""

from collections.abc import Iterable, Iterator, Sized
from enum import IntEnum
from itertools import groupby
from typing import ClassVar, Self, TypeAlias

from attrs import evolve, field, frozen
from immutables import Map

from aclog.metalog.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

ScramChange: TypeAlias = UserScramCredentialRecord | RemoveUserScramCredentialRecord
_Credentials: TypeAlias = Map[tuple[str, int], UserScramCredentialRecord]


class ScramMechanism(IntEnum):
    """The mechanisms that Kafka knows (org.apache.kafka.clients.admin.ScramMechanism)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name that SASL uses: `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")


@frozen(kw_only=True)
class CredentialInfo:
    """What may be told of a credential: its mechanism's raw code and its iterations (ScramCredentialInfo)."""

    mechanism: int
    iterations: int


@frozen(kw_only=True)
class UserCredentials:
    """A user and what may be told of each of its credentials, by mechanism (UserScramCredentialsDescription)."""

    user: str
    credential_infos: tuple[CredentialInfo, ...]


def _number(values: Sized) -> str:
    return str(len(values))


@frozen(kw_only=True)
class ScramImage:
    """All SCRAM credentials at one offset. Its repr shows their number only: they hold secrets.

    `keyless` are those of which a source tells no more than DescribeUserScramCredentials does: nobody can log in by
    them, and no record can be made of them. An image out of a log has none.
    """

    EMPTY: ClassVar["ScramImage"]

    _credentials: Map[tuple[str, int], UserScramCredentialRecord] = field(
        factory=Map, alias="credentials", repr=_number
    )
    keyless: tuple[UserCredentials, ...] = field(default=(), repr=_number)

    def __len__(self) -> int:
        return len(self._credentials) + sum(len(user.credential_infos) for user in self.keyless)

    def get(self, user: str, mechanism: int) -> UserScramCredentialRecord | None:
        """The user's credential for this mechanism, or None."""
        return self._credentials.get((user, mechanism))

    def describe(self) -> Iterator[UserCredentials]:
        """Every user in order of name, as DescribeUserScramCredentials answers for all."""
        for user, records in groupby(self.records(), key=lambda record: record.name):
            infos = tuple(CredentialInfo(mechanism=r.mechanism, iterations=r.iterations) for r in records)
            yield UserCredentials(user=user, credential_infos=infos)
        yield from self.keyless

    def records(self) -> Iterator[UserScramCredentialRecord]:
        """The records that make this image, by user, then mechanism; `keyless` has none."""
        return (self._credentials[key] for key in sorted(self._credentials))

    def apply(self, changes: Iterable[ScramChange]) -> Self:
        """The image after these changes, in order. Removing what is not there is nothing: Kafka writes such logs."""
        credentials = self._credentials.mutate()
        for change in changes:
            key = (change.name, change.mechanism)
            if isinstance(change, UserScramCredentialRecord):
                credentials[key] = change
            else:
                credentials.pop(key, None)
        return evolve(self, credentials=credentials.finish())


ScramImage.EMPTY = ScramImage()
