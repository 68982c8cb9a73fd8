"""The SCRAM credentials of an image: immutable, keyed by user and mechanism (org.apache.kafka.image.ScramImage)."""

from collections.abc import Iterable, Iterator, Sized
from enum import IntEnum
from itertools import groupby
from typing import ClassVar, Self, TypeAlias

from attrs import evolve, field, frozen

from aclog.metalog.persistent_map import Map
from aclog.metalog.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

ScramChange: TypeAlias = UserScramCredentialRecord | RemoveUserScramCredentialRecord
_Credentials: TypeAlias = Map[tuple[str, int], UserScramCredentialRecord]


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

    `keyless` are credentials of which the source reveals only what DescribeUserScramCredentials returns: they have no
    keys, so nobody can log in with them and no record can be made of them. An image replayed from a log has none.
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
                # No error if there is none: Kafka itself writes logs that remove an absent credential.
                credentials.pop(key, None)
        return evolve(self, credentials=credentials.finish())


ScramImage.EMPTY = ScramImage()
