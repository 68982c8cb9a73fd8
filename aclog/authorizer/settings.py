"""What decides besides the ACLs: two properties of the broker, and aclog's own semantics."""

from collections.abc import Collection
from typing import Self

from attrs import evolve, frozen

from aclog.authorizer.config import parse_allow_everyone, parse_super_users
from aclog.authorizer.generation import Generation


@frozen(kw_only=True)
class Settings:
    """The settings of an authorizer."""

    super_users: frozenset[str] = frozenset()
    """Principals such as `User:admin` (super.users)."""
    allow_everyone: bool = False
    """allow.everyone.if.no.acl.found."""
    documented: bool = False
    """Whether LITERAL `*` also covers longer names that begin with `*`; in Kafka 4.3.1 it does not."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range (KIP-1276): the generation of Kafka that decides."""
    is_kafka_stated: bool = True
    """Whether `cidr` is what a person or a configuration states; if not, a state may state another
    (aclog.snapshots.deciding_kafka.settled)."""

    @property
    def generation(self) -> Generation | None:
        """The generation of Kafka that decides; None if it is not stated."""
        if not self.is_kafka_stated:
            return None
        return Generation.V4_4 if self.cidr else Generation.V4_3

    def by_generation(self, generations: Collection[Generation]) -> "dict[Generation | None, Settings]":
        """Return the same for each of these generations of Kafka; under None, if it is one, or none is named."""
        if len(generations) <= 1:
            return {None: self.of_generation(*generations) if generations else self}
        return {each: self.of_generation(each) for each in generations}

    def of_generation(self, generation: Generation) -> Self:
        """Return the same for a Kafka of this generation."""
        return evolve(self, cidr=generation.has_ranges, is_kafka_stated=True)

    @classmethod
    def of_texts(
        cls, super_users: str | None, allow_everyone: str | None, *, documented: bool = False, cidr: bool = False
    ) -> Self:
        """Parse the values of `super.users` and `allow.everyone.if.no.acl.found`.

        Raises:
            ConfigError: `super.users` has an entry without a colon.

        """
        return cls(
            super_users=parse_super_users(super_users),
            allow_everyone=parse_allow_everyone(allow_everyone),
            documented=documented,
            cidr=cidr,
        )
