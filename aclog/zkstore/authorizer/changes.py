"""Creation and deletion of ACLs in ZooKeeper, with a result per ACL or filter (AclAuthorizer.updateResourceAcls)."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import define

from aclog.authorizer.acl import (
    AclBindingFilter,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    resource_of,
)
from aclog.authorizer.control import INVALID_REQUEST, creation_errors, filter_error
from aclog.authorizer.errors import AclRequestError
from aclog.authorizer.index.filters import filter_matches
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.metalog.errors import MetadataError
from aclog.zkstore.acl_store import AclStore, Change, ResourceAcls
from aclog.zkstore.authorizer.acl_cache import AclCache
from aclog.zkstore.authorizer.protocol_gate import prefixed_error
from aclog.zkstore.client.retry import retried
from aclog.zkstore.kraft_controller import check_not_owned
from aclog.zkstore.znodes.acl_json import AclEntry, entry_of, entry_problem
from aclog.zkstore.znodes.paths import name_problem, paths_of, pattern_of, resource_path

Updated: TypeAlias = Callable[[Sequence[ResourceAcls]], None]
"""Called with the new ACLs of znodes."""


@define(eq=False, kw_only=True)
class StoreChanges:
    """Changes ACLs in ZooKeeper and in the cache. One thread at a time may use it.

    `lock` keeps a concurrent read of a znode by the follower from overwriting a newer result in the cache. Unless
    `takes_prefixed`, prefixed ACLs can be removed only.
    """

    store: AclStore
    cache: AclCache
    updated: Updated
    lock: threading.RLock
    takes_prefixed: bool

    def create(self, acls: Sequence[StandardAcl]) -> list[AclCreateResult]:
        """Create ACLs, atomically per resource; return one result per ACL, in order."""
        owned = self._owned_error()
        errors: list[MetadataError | None] = [
            self._gate_error(acl) or error or _store_error(acl) or owned
            for acl, error in zip(acls, creation_errors(acls), strict=True)
        ]
        for pattern, numbers in _by_pattern(acls, errors).items():
            try:
                self._update(resource_path(pattern), _adding(entry_of(acls[number]) for number in numbers))
            except MetadataError as e:
                for number in numbers:
                    errors[number] = e
        return [AclCreateResult(error=error) for error in errors]

    def _gate_error(self, acl: StandardAcl) -> AclRequestError | None:
        return prefixed_error() if acl.pattern_type == PatternType.PREFIXED and not self.takes_prefixed else None

    def _owned_error(self) -> MetadataError | None:
        """Return why nothing can be written at all; it waits for a lost connection as AclStore.update does."""
        client = self.store.client
        try:
            retried(client, lambda: check_not_owned(client))
        except MetadataError as error:
            return error
        return None

    def delete(self, filters: Sequence[AclBindingFilter]) -> list[AclDeleteResult]:
        """Delete matching ACLs; return one result per filter, in order. Each ACL is reported for its first filter."""
        owned = self._owned_error()
        errors: list[MetadataError | None] = [filter_error(wanted) or owned for wanted in filters]
        deleted: list[list[StandardAclWithId]] = [[] for _ in filters]
        for path, numbers in self._affected(filters, errors).items():
            removal = _Removal(pattern=pattern_of(path), filters=[(number, filters[number]) for number in numbers])
            try:
                self._update(path, removal)
            except MetadataError as e:
                for number in numbers:
                    errors[number] = e
                continue
            for number, acl in removal.removed():
                deleted[number].append(StandardAclWithId(id=None, acl=acl))
        return [AclDeleteResult(deleted=tuple(acls), error=error) for acls, error in zip(deleted, errors, strict=True)]

    def _update(self, path: str, change: Change) -> None:
        with self.lock:
            self.updated([self.store.update(path, change, known=self.cache.known(path))])

    def _affected(
        self, filters: Sequence[AclBindingFilter], errors: Sequence[MetadataError | None]
    ) -> dict[str, list[int]]:
        """Return the paths at which filters may match, each with the indexes of its filters.

        These are the paths of all matching ACLs in the cache, and the paths that a filter names, since the cache may
        lag behind the store.
        """
        found: dict[str, dict[int, None]] = {}
        for number, wanted in enumerate(filters):
            if errors[number] is None:
                for path in (*self._cached_paths(wanted), *_named_paths(wanted)):
                    found.setdefault(path, {})[number] = None
        return {path: list(numbers) for path, numbers in found.items()}

    def _cached_paths(self, wanted: AclBindingFilter) -> Iterator[str]:
        patterns = {resource_of(found.acl): None for found in self.cache.image.matching(wanted)}
        for pattern in patterns:
            yield from (path for path in paths_of(pattern) if self.cache.get(path) is not None)


@define(eq=False, kw_only=True)
class _Removal:
    """The change that removes the ACLs of a resource that match filters; called again for each attempt."""

    pattern: ResourcePattern
    filters: Sequence[tuple[int, AclBindingFilter]]
    _removed: dict[AclEntry, int] | None = None

    def __call__(self, held: frozenset[AclEntry]) -> frozenset[AclEntry]:
        # Collected over all attempts: if the response to one is lost, the next may find the ACLs already removed.
        removed = self._removed = {} if self._removed is None else self._removed
        matching = set()
        for entry in held:
            acl = entry.on(self.pattern)
            number = next((number for number, wanted in self.filters if filter_matches(wanted, acl)), None)
            if number is not None:
                removed.setdefault(entry, number)
                matching.add(entry)
        return held - matching

    def removed(self) -> Iterator[tuple[int, StandardAcl]]:
        """Yield each removed ACL with the index of its first matching filter."""
        for entry, number in sorted((self._removed or {}).items()):
            yield number, entry.on(self.pattern)


def _adding(entries: Iterable[AclEntry]) -> Change:
    more = frozenset(entries)
    return lambda held: held | more


def _by_pattern(
    acls: Sequence[StandardAcl], errors: Sequence[MetadataError | None]
) -> dict[ResourcePattern, list[int]]:
    """Return the indexes of the valid ACLs by resource."""
    found: dict[ResourcePattern, list[int]] = {}
    for number, (acl, error) in enumerate(zip(acls, errors, strict=True)):
        if error is None:
            found.setdefault(resource_of(acl), []).append(number)
    return found


def _named_paths(wanted: AclBindingFilter) -> Iterator[str]:
    """Yield the paths of the resources that a filter names (ResourcePatternFilter.matchesAtMostOne, and ANY)."""
    kinds = {PatternType.ANY: (PatternType.LITERAL, PatternType.PREFIXED)}.get(
        PatternType(wanted.pattern_type), (wanted.pattern_type,)
    )
    name = wanted.resource_name
    if wanted.resource_type == ResourceType.ANY or wanted.pattern_type == PatternType.MATCH or name is None:
        return
    if name_problem(name) is None:
        for kind in kinds:
            yield from paths_of(ResourcePattern(resource_type=wanted.resource_type, name=name, pattern_type=kind))


def _store_error(acl: StandardAcl) -> AclRequestError | None:
    """Return the error of an ACL that is valid, but cannot be stored in ZooKeeper."""
    problem = name_problem(acl.resource_name)
    if problem is not None:
        return AclRequestError(INVALID_REQUEST, f"Invalid resource name {acl.resource_name!r}: {problem}")
    problem = entry_problem(entry_of(acl))
    return None if problem is None else AclRequestError(INVALID_REQUEST, problem)
