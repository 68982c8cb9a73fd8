"""Targets of a migration from ZooKeeper: the interface, and what its implementations share."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.codec import encode_record
from aclog.metalog.uuids import RandomIds
from aclog.nodes.storage.feature_levels import feature_levels
from aclog.snapshots.image import Image
from aclog.zkstore.migration.access_state import AccessState, StateChange, state_of_image


@frozen(kw_only=True)
class TargetContents:
    """What a target holds: the access state, and an image of its ACLs for decisions."""

    state: AccessState
    acls: AclsImage = field(repr=False)


class TargetWriter(Protocol):
    """An open target; one migration owns it.

    `state` is what the target holds after `commit` if nothing else is written.
    """

    state: AccessState

    def write(self, wanted: AccessState) -> StateChange:
        """Write the changes from `state` to `wanted`; if the target can do so, invisible until `commit`."""
        ...

    def commit(self) -> None:
        """Make everything that was written visible, atomically and durably."""
        ...

    def abort(self) -> None:
        """Discard what was written since the last commit."""
        ...


class Target(Protocol):
    """A metadata log, directly or as part of a Kafka node. It is read, written, and read again for the comparison."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def limitation(self) -> str:
        """What it cannot hold, and why; empty if it can hold everything."""
        ...

    def supported(self, state: AccessState) -> AccessState:
        """Return the part of a state that it can hold."""
        ...

    def contents(self) -> TargetContents:
        """Read what it holds now. Raises MetadataError."""
        ...

    def open(self) -> AbstractContextManager[TargetWriter]:
        """Open it for writing. Raises MetadataError."""
        ...


def contents_of(image: Image) -> TargetContents:
    """Return the contents of an image."""
    return TargetContents(state=state_of_image(image), acls=image.acls)


def default_features() -> list[bytes]:
    """Return the feature records with which `aclog format` begins a log."""
    return [encode_record(record) for record in feature_levels(None, (), dynamic_quorum=False).records]


@define
class AclIds:
    """Ids of the ACLs in a target; a new ACL gets a new id."""

    _ids: dict[StandardAcl, UUID]
    _new_id: Callable[[], UUID] = field(factory=RandomIds)

    def of(self, change: StateChange) -> dict[StandardAcl, UUID]:
        """Return the ids of the added and removed ACLs."""
        removed = {acl: self._ids.pop(acl) for acl in change.removed_acls}
        added = {acl: self._new_id() for acl in change.added_acls}
        self._ids |= added
        return removed | added
