"""The changes of one or more whole batches to an image (org.apache.kafka.image.MetadataDelta)."""

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.credentials.scram import ScramChange
from aclog.credentials.tokens import TokenChange
from aclog.metalog.errors import DecodeError, ReplayError
from aclog.metalog.records import (
    AccessControlEntryRecord,
    BrokerRecord,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from aclog.snapshots.image import Image
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.opaque_records import OpaqueChange
from aclog.snapshots.provenance import Provenance, error_in_value
from aclog.snapshots.record_subjects import effect_of, removed_controller

AclChange: TypeAlias = AccessControlEntryRecord | RemoveAccessControlEntryRecord

_ACL_CHANGES = frozenset((AccessControlEntryRecord, RemoveAccessControlEntryRecord))


@define(kw_only=True)
class Delta:
    """Changes in offset order, grouped by what they change; owned by the applier that makes the next image."""

    newer: NewerKafka
    acls: list[AclChange] = field(factory=list)
    _acl_offsets: list[int] = field(factory=list, init=False)
    _scram: list[ScramChange] = field(factory=list, init=False)
    _tokens: list[TokenChange] = field(factory=list, init=False)
    _features: list[FeatureLevelRecord] = field(factory=list, init=False)
    _cluster: list[tuple[int, BrokerRecord]] = field(factory=list, init=False)
    _opaque: list[OpaqueChange] = field(factory=list, init=False)

    def replay(self, record: MetadataRecord, offset: int) -> None:
        """Add a record that is not a transaction marker; records must be added in offset order.

        Raises:
            ReplayError: a newer Kafka wrote it, and the policy is to stop.
            DecodeError: an uninterpreted record whose subject cannot be read.

        """
        match record:
            case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                self.acls.append(record)
                self._acl_offsets.append(offset)
            # Kafka's idle heartbeat (KIP-835) changes nothing but the offset.
            case NoOpRecord():
                pass
            case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
                self._scram.append(record)
            case DelegationTokenRecord() | RemoveDelegationTokenRecord():
                self._tokens.append(record)
            case FeatureLevelRecord():
                self.newer.check_feature(record, offset)
                self._features.append(record)
            case (
                RegisterBrokerRecord()
                | UnregisterBrokerRecord()
                | FenceBrokerRecord()
                | UnfenceBrokerRecord()
                | BrokerRegistrationChangeRecord()
            ):
                self._cluster.append((offset, record))
            case UnregisterControllerRecord():
                # Registrations of controllers are not interpreted; what was undone is not kept.
                self._opaque.append(OpaqueChange(effect=removed_controller(record.controller_id), value=b""))
            case OpaqueRecord():
                self.newer.check_opaque(record, offset)
                self._opaque.append(_opaque_change(record, offset))
            case _:
                raise ReplayError(f"{type(record).__name__} does not change state", offset=offset)

    def apply(self, image: Image, provenance: Provenance) -> Image:
        """Return the image after these changes; `provenance` says how far it reaches.

        Raises:
            ReplayError: an ACL is added that exists, or removed that does not exist, or a broker's registration is
                changed that does not exist, with its offset.

        """
        try:
            acls = apply_acls(image.acls, self.acls, self._acl_offsets) if self.acls else image.acls
        except ReplayError as error:
            # Of two wrong records, the first one is reported.
            image.cluster.apply(change for change in self._cluster if change[0] < (error.offset or 0))
            raise
        return self.apply_all_but_acls(image, acls, provenance)

    def apply_all_but_acls(self, image: Image, acls: AclsImage, provenance: Provenance) -> Image:
        """Do the same, with `acls` instead of the result of the ACL changes. Raises as `apply`, but not for ACLs."""
        return Image(
            acls=acls,
            scram=image.scram.apply(self._scram) if self._scram else image.scram,
            tokens=image.tokens.apply(self._tokens) if self._tokens else image.tokens,
            features=image.features.apply(self._features) if self._features else image.features,
            cluster=image.cluster.apply(self._cluster) if self._cluster else image.cluster,
            opaque=image.opaque.apply(self._opaque) if self._opaque else image.opaque,
            provenance=provenance,
        )


def apply_acls(acls: AclsImage, changes: Sequence[AclChange], offsets: Sequence[int]) -> AclsImage:
    """Return the ACLs after these changes, which have these offsets.

    Raises:
        ReplayError: an ACL is added that exists, or removed that does not exist, with its offset.

    """
    try:
        return acls.apply(changes)
    except ReplayError:
        # Applying all at once is faster but does not say which change failed; applying them one by one does.
        for change, offset in zip(changes, offsets, strict=True):
            try:
                acls = acls.apply((change,))
            except ReplayError as e:
                raise e.at(offset=offset) from None
        raise


def only_acls(records: list[MetadataRecord]) -> TypeGuard[list[AclChange]]:
    """Return whether all of these records are ACL changes."""
    return _ACL_CHANGES.issuperset(map(type, records))


def _opaque_change(record: OpaqueRecord, offset: int) -> OpaqueChange:
    try:
        return OpaqueChange(effect=effect_of(record), value=record.value)
    except DecodeError as e:
        raise error_in_value(e, offset) from None
