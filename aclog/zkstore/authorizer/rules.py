"""The rules of a store in memory: what each node held when it was read last, and an image of all of them."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from uuid import UUID

from attrs import define, field

from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acl_records import record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.overlay_changes import Change
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.zkstore.acl_json import AclEntry
from aclog.zkstore.paths import paths_of
from aclog.zkstore.store import ResourceRules, absent, rules_at

_MERGE_AT = 16_384
"""Changes beside the base of an image, beyond which they are folded into it."""


@define(eq=False)
class StoredRules:
    """Nodes by path, and the image of their rules; one thread at a time changes it, any may read `image`."""

    image: AclsImage = field(factory=AclsImage.empty, init=False)
    _resources: dict[str, ResourceRules] = field(factory=dict, init=False)

    _complete: bool = field(default=False, init=False)
    """Whether a node that is not here was not there either."""

    def get(self, path: str) -> ResourceRules | None:
        """What a node held when it was read last; None for one that was not there, or was never read."""
        return self._resources.get(path)

    def known(self, path: str) -> ResourceRules | None:
        """The same; None only where nothing is known of it."""
        found = self._resources.get(path)
        return absent(path) if found is None and self._complete else found

    def replace(self, resources: Mapping[str, ResourceRules], *, keep: Iterable[str] = ()) -> None:
        """Hold these instead of what there was, but for the nodes in `keep`, which stay as they were."""
        kept = {path: self._resources[path] for path in keep if path in self._resources}
        resources = {**resources, **kept}
        patterns = {rules.pattern for rules in resources.values()}
        entries = ((pattern, entry) for pattern in patterns for entry in _union(pattern, resources))
        rules = (StandardAclWithId(id=_id(pattern, entry), acl=entry.on(pattern)) for pattern, entry in entries)
        self.image, self._resources, self._complete = AclsImage.from_acls(rules), resources, True

    def put(self, nodes: Iterable[ResourceRules]) -> None:
        """Take in what these nodes hold now; one without rules goes."""
        changes = [change for rules in nodes for change in self._changes(rules)]
        if not changes:
            return
        image = self.image.apply(changes)
        self.image = image.merged() if image.overlay_size > _MERGE_AT else image

    def _changes(self, rules: ResourceRules) -> Iterator[Change]:
        """Hold a node's rules; the records that bring them into the image."""
        pattern = rules.pattern
        before = _union(pattern, self._resources)
        if rules.entries:
            self._resources[rules.path] = rules
        else:
            self._resources.pop(rules.path, None)
        after = _union(pattern, self._resources)
        for entry in before - after:
            yield RemoveAccessControlEntryRecord(id=_id(pattern, entry))
        for entry in after - before:
            yield record_of(entry.on(pattern), _id(pattern, entry))


def _union(pattern: ResourcePattern, resources: Mapping[str, ResourceRules]) -> frozenset[AclEntry]:
    return frozenset().union(*(rules.entries for rules in rules_at(paths_of(pattern), resources)))


def _id(pattern: ResourcePattern, entry: AclEntry) -> UUID:
    """The name of a rule inside an image: rules in ZooKeeper have none. Made of what the rule says, so never two."""
    codes = pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type
    texts = pattern.name, entry.principal, entry.host
    said = "/".join((*(f"{code:d}" for code in codes), *(f"{len(text)}:{text}" for text in texts)))
    return UUID(bytes=blake2b(said.encode(), digest_size=16).digest())
