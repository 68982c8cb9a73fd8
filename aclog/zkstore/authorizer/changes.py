"""Requests to create or delete rules in ZooKeeper: which nodes they touch, and what became of each rule."""

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
)
from aclog.authorizer.control import INVALID_REQUEST, creation_errors, filter_error
from aclog.authorizer.errors import AclRequestError
from aclog.authorizer.index.filters import takes
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.metalog.errors import MetadataError
from aclog.zkstore.acl_json import AclEntry, entry_of, entry_problem
from aclog.zkstore.authorizer.rules import StoredRules
from aclog.zkstore.paths import name_problem, paths_of, pattern_of, resource_path
from aclog.zkstore.store import Change, ResourceRules, ZkStore

Shown: TypeAlias = Callable[[Sequence[ResourceRules]], None]
"""Called with what nodes hold after a change."""


@define(eq=False, kw_only=True)
class StoreChanges:
    """Changes the rules of a store, and those in memory with them; from one thread at a time.

    `lock` keeps a reading of a node that is under way elsewhere from undoing what is shown here.
    """

    store: ZkStore
    rules: StoredRules
    shown: Shown
    lock: threading.RLock

    def create(self, acls: Sequence[StandardAcl]) -> list[AclCreateResult]:
        """One result a rule, in order; the rules of a resource come to stand together, or none of them."""
        errors: list[MetadataError | None] = [
            error or _store_error(acl) for acl, error in zip(acls, creation_errors(acls), strict=True)
        ]
        for pattern, numbers in _by_pattern(acls, errors).items():
            try:
                self._update(resource_path(pattern), _adding(entry_of(acls[number]) for number in numbers))
            except MetadataError as e:
                for number in numbers:
                    errors[number] = e
        return [AclCreateResult(error=error) for error in errors]

    def delete(self, filters: Sequence[AclBindingFilter]) -> list[AclDeleteResult]:
        """One result a filter, in order; a rule is told under the first filter that takes it."""
        errors: list[MetadataError | None] = [filter_error(wanted) for wanted in filters]
        deleted: list[list[StandardAclWithId]] = [[] for _ in filters]
        for path, numbers in self._touched(filters, errors).items():
            removal = _Removal(pattern=pattern_of(path), filters=[(number, filters[number]) for number in numbers])
            try:
                self._update(path, removal)
            except MetadataError as e:
                for number in numbers:
                    errors[number] = e
                continue
            for number, acl in removal.gone():
                deleted[number].append(StandardAclWithId(id=None, acl=acl))
        return [
            AclDeleteResult(deleted=tuple(rules), error=error) for rules, error in zip(deleted, errors, strict=True)
        ]

    def _update(self, path: str, change: Change) -> None:
        with self.lock:
            self.shown([self.store.update(path, change, known=self.rules.known(path))])

    def _touched(
        self, filters: Sequence[AclBindingFilter], errors: Sequence[MetadataError | None]
    ) -> dict[str, list[int]]:
        """The nodes in which filters may find rules, and the filters' numbers.

        Those where rules are known to be, and those that a filter names, whatever is known of them.
        """
        found: dict[str, dict[int, None]] = {}
        for number, wanted in enumerate(filters):
            if errors[number] is None:
                for path in (*self._known(wanted), *_named(wanted)):
                    found.setdefault(path, {})[number] = None
        return {path: list(numbers) for path, numbers in found.items()}

    def _known(self, wanted: AclBindingFilter) -> Iterator[str]:
        patterns = {_pattern(rule.acl): None for rule in self.rules.image.matching(wanted)}
        for pattern in patterns:
            yield from (path for path in paths_of(pattern) if self.rules.get(path) is not None)


@define(eq=False, kw_only=True)
class _Removal:
    """Takes from a resource's rules those that filters take; called again with each attempt."""

    pattern: ResourcePattern
    filters: Sequence[tuple[int, AclBindingFilter]]
    _gone: dict[AclEntry, int] | None = None

    def __call__(self, held: frozenset[AclEntry]) -> frozenset[AclEntry]:
        gone = self._gone = {} if self._gone is None else self._gone
        taken = set()
        for entry in held:
            acl = entry.on(self.pattern)
            number = next((number for number, wanted in self.filters if takes(wanted, acl)), None)
            if number is not None:
                gone.setdefault(entry, number)
                taken.add(entry)
        return held - taken

    def gone(self) -> Iterator[tuple[int, StandardAcl]]:
        """Every rule that was taken, and the number of the filter that did; an answer may have been lost in between."""
        for entry, number in sorted((self._gone or {}).items()):
            yield number, entry.on(self.pattern)


def _adding(entries: Iterable[AclEntry]) -> Change:
    more = frozenset(entries)
    return lambda held: held | more


def _by_pattern(
    acls: Sequence[StandardAcl], errors: Sequence[MetadataError | None]
) -> dict[ResourcePattern, list[int]]:
    """The numbers of the good rules, by their resources."""
    found: dict[ResourcePattern, list[int]] = {}
    for number, (acl, error) in enumerate(zip(acls, errors, strict=True)):
        if error is None:
            found.setdefault(_pattern(acl), []).append(number)
    return found


def _pattern(acl: StandardAcl) -> ResourcePattern:
    return ResourcePattern(resource_type=acl.resource_type, name=acl.resource_name, pattern_type=acl.pattern_type)


def _named(wanted: AclBindingFilter) -> Iterator[str]:
    """The nodes of the one or two resources that a filter names (ResourcePatternFilter.matchesAtMostOne, and ANY)."""
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
    """Why ZooKeeper cannot hold a rule that is good otherwise."""
    problem = name_problem(acl.resource_name)
    if problem is not None:
        return AclRequestError(INVALID_REQUEST, f"Invalid resource name {acl.resource_name!r}: {problem}")
    problem = entry_problem(entry_of(acl))
    return None if problem is None else AclRequestError(INVALID_REQUEST, problem)
