"""In-memory copy of a store's ACLs: the last read of each znode, and an image of all ACLs (AclAuthorizer.aclCache)."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from uuid import UUID

from attrs import define, field

from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acl_records import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.overlay_changes import Change
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.zkstore.acl_store import ResourceAcls, absent, acls_at
from aclog.zkstore.znodes.acl_json import AclEntry
from aclog.zkstore.znodes.paths import paths_of

_MERGE_AT = 16_384
"""Size of an image's overlay at which it is merged into the base."""


@define(eq=False)
class AclCache:
    """ACLs by znode path, and their image. One thread at a time may change it; any thread may read `image`."""

    image: AclsImage = field(factory=AclsImage.empty, init=False)
    _resources: dict[str, ResourceAcls] = field(factory=dict, init=False)
    _complete: bool = field(default=False, init=False)
    """Whether a path that is not in the cache did not exist in the store either."""

    def get(self, path: str) -> ResourceAcls | None:
        """Return the last read of a znode; None if it did not exist or was never read."""
        return self._resources.get(path)

    def known(self, path: str) -> ResourceAcls | None:
        """Return the last read of a znode, empty if it did not exist; None if nothing is known about it."""
        found = self._resources.get(path)
        return absent(path) if found is None and self._complete else found

    def replace(self, resources: Mapping[str, ResourceAcls], *, keep: Iterable[str] = ()) -> None:
        """Replace everything, except for the znodes in `keep`, which stay as they are."""
        kept = {path: self._resources[path] for path in keep if path in self._resources}
        resources = {**resources, **kept}
        patterns = {acls.pattern for acls in resources.values()}
        entries = ((pattern, entry) for pattern in patterns for entry in _union(pattern, resources))
        acls = (StandardAclWithId(id=_id(pattern, entry), acl=entry.on(pattern)) for pattern, entry in entries)
        self.image, self._resources, self._complete = AclsImage.from_acls(acls), resources, True

    def put(self, nodes: Iterable[ResourceAcls]) -> None:
        """Replace the ACLs of some znodes; a znode without ACLs is removed."""
        changes = [change for acls in nodes for change in self._changes(acls)]
        if not changes:
            return
        image = self.image.apply(changes)
        self.image = image.merged() if image.overlay_size > _MERGE_AT else image

    def _changes(self, acls: ResourceAcls) -> Iterator[Change]:
        """Replace a znode's ACLs; yield the records that change the image accordingly."""
        # An ACL may be in a legacy znode as well: it leaves the image only with its last copy.
        pattern = acls.pattern
        before = _union(pattern, self._resources)
        if acls.entries:
            self._resources[acls.path] = acls
        else:
            self._resources.pop(acls.path, None)
        after = _union(pattern, self._resources)
        for entry in before - after:
            yield RemoveAccessControlEntryRecord(id=_id(pattern, entry))
        for entry in after - before:
            yield record_of(entry.on(pattern), _id(pattern, entry))


def _union(pattern: ResourcePattern, resources: Mapping[str, ResourceAcls]) -> frozenset[AclEntry]:
    return frozenset().union(*(acls.entries for acls in acls_at(paths_of(pattern), resources)))


def _id(pattern: ResourcePattern, entry: AclEntry) -> UUID:
    """Return the id of an ACL inside an image, a hash of its fields: ACLs in ZooKeeper have no ids."""
    codes = pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type
    texts = pattern.name, entry.principal, entry.host
    # Each text has its length in front, so that no two ACLs have the same hash input.
    key = "/".join((*(str(int(code)) for code in codes), *(f"{len(text)}:{text}" for text in texts)))
    return UUID(bytes=blake2b(key.encode(), digest_size=16).digest())
