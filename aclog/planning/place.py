"""A place: where a plan is made for, and applied."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Protocol

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.premises import Premises
from aclog.authorizer.rule_content import contents_of, image_of
from aclog.authorizer.settings import Settings
from aclog.planning.batching import Batching
from aclog.planning.journal.sent import Made
from aclog.planning.step import Step
from aclog.snapshots.deciding_kafka import DecidingKafka


@define(eq=False, slots=False, kw_only=True)
class PlaceState:
    """What a place held when it was asked. Immutable by convention."""

    contents: AbstractSet[bytes]
    """The ACLs, as aclog.authorizer.rule_content has them."""
    end_offset: int | None = None
    """Of a log; None where there are no offsets."""
    exists: bool = True
    """Whether there is a place; one that is not there holds nothing, and is made by applying a plan."""
    image: AclsImage | None = field(default=None, repr=False)

    @staticmethod
    def of_image(acls: AclsImage, end_offset: int | None = None, *, exists: bool = True) -> "PlaceState":
        """Return the state with these ACLs."""
        return PlaceState(contents=contents_of(acls), end_offset=end_offset, exists=exists, image=acls)

    @cached_property
    def acls(self) -> AclsImage:
        """The ACLs, indexed."""
        return image_of(self.contents) if self.image is None else self.image


class Place(Protocol):
    """An open place, owned by one command."""

    @property
    def name(self) -> str:
        """What was opened, for messages."""
        ...

    @property
    def batching(self) -> Batching:
        """How much of a change becomes visible at once."""
        ...

    def identity(self) -> str | None:
        """Return the cluster id, or the id of a log that belongs to no cluster; None if nothing tells it yet.

        Raises:
            MetadataError: what should tell it is damaged, or nobody answers.

        """
        ...

    def fingerprint(self, end_offset: int) -> str | None:
        """Return what tells a place from others that has no identity: of a log, what it has below an offset.

        None: nothing does yet, it does not reach so far, or such places have an identity. Raises as `read`.
        """
        ...

    def premises(self, given: AbstractSet[str]) -> Premises:
        """Return what decides there and is unknown, for the state and the settings that were read last.

        `given`: the properties whose values are known. Raises as `settings`.
        """
        ...

    def settings(self) -> Settings | None:
        """Return super.users and allow.everyone.if.no.acl.found, if the place tells both; None: they are unknown.

        Raises:
            MetadataError: nobody answers.

        """
        ...

    def kafka(self, ranges: Iterable[str]) -> DecidingKafka:
        """Return what may decide on what `read` returned last; `ranges` are the hosts that matter.

        Raises:
            MetadataError: nobody answers.

        """
        ...

    def made(self, apply: str) -> Made | None:
        """Return what an apply did that may have been killed, if the place keeps a record of its own.

        None: nothing tells, or not all of its steps are made at once.

        Raises:
            MetadataError: the record, or what it is about, is damaged or cannot be read.

        """
        ...

    def check(self, steps: Sequence[Step]) -> None:
        """Check that the place can hold what these steps add, and that each can be made; nothing is asked.

        Raises:
            ConfigError: one cannot; the text says which, and why.

        """
        ...

    def read(self) -> PlaceState:
        """Return what the place holds now.

        Raises:
            MetadataError: it cannot be read whole, or nobody knows that it is up to date.

        """
        ...


@frozen(kw_only=True)
class ApplyNote:
    """What a place that keeps a record of its own is told of an apply."""

    apply: str
    at: str
    """ISO 8601, UTC."""
    who: str
    plan: str
    """The digest of the plan."""
    journal: str | None
    """The id of the journal."""
    git: str | None


class WritablePlace(Place, Protocol):
    """A place that is open for writing."""

    def note_begin(self, note: ApplyNote) -> None:
        """Keep durably that an apply begins, if the place keeps such a record. Raises LogError."""
        ...

    def note_done(self, note: ApplyNote) -> None:
        """Keep durably that it has ended. Raises LogError."""
        ...

    def noted(self, plan: str) -> ApplyNote | None:
        """Return the note that the place has kept of the newest apply of a plan, by its digest. Raises as `was_noted`.

        None: it has kept none, or keeps no notes.
        """
        ...

    def was_noted(self, apply: str) -> bool:
        """Return whether the place has kept a note of this apply. Raises MetadataError: its record is damaged."""
        ...

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield the steps in the runs that are written at once, in order; a batch is never divided."""
        ...

    def write(self, piece: Sequence[Step]) -> None:
        """Make these steps, in order, and wait until they are committed; nothing else is changed.

        Raises:
            MetadataError: some may not have been made; the text says what the place said.

        """
        ...

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs the place has now. Raises as `read`."""
        ...
