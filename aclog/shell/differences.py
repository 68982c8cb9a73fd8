"""The differences between two images: ACLs, SCRAM credentials, delegation tokens, features."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from attrs import frozen

from aclog.authorizer.acl import PatternType, ResourceType, StandardAcl, StandardAclWithId, acl_text, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.codec import decode_record
from aclog.metalog.printable import printable
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.uuids import uuid_text
from aclog.shell.credential_tree import mechanism_name
from aclog.shell.path_names import path_text
from aclog.snapshots.image import Image

K = TypeVar("K")
_ACL = AccessControlEntryRecord


class Sign(StrEnum):
    """The kind of a difference."""

    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"


@frozen(kw_only=True)
class Difference:
    """One object that was added, removed or changed: its paths in the tree, and a line of text."""

    sign: Sign
    paths: tuple[tuple[str, ...], ...]
    text: str
    rule: StandardAclWithId | None = None
    """The ACL after it, or the removed one; None if it is of something else."""

    def to_dict(self) -> dict[str, object]:
        """Return this for JSON: what happened, where, the ACL if it is one, and the line of text."""
        path = next((path for path in self.paths if path[:2] == ("acl", "id")), self.paths[0])
        acl = {} if self.rule is None else {"acl": self.rule.to_dict()}
        return {"change": self.sign.name, "path": path_text(path), **acl, "text": self.text}

    def __str__(self) -> str:
        return f"{self.sign} {printable(self.text)}"


def differences(before: Image, after: Image, touched: Iterable[UUID] | None = None) -> Iterator[Difference]:
    """Yield all differences. `touched`, if given, are the ids of the only ACLs that may differ."""
    if before.acls is not after.acls:
        ids = _differing(before.acls, after.acls) if touched is None else touched
        yield from _rules(before.acls, after.acls, ids)
    if before.scram is not after.scram:
        yield from _scram(before, after)
    if before.tokens is not after.tokens:
        yield from _tokens(before, after)
    if before.features is not after.features:
        yield from _features(before, after)


def _differing(before: AclsImage, after: AclsImage) -> Iterator[UUID]:
    """Yield the ids of the ACLs that differ, found by comparing encoded records, without making ACL objects."""
    # Comparing bytes takes a fraction of the time of comparing a million pairs of objects.
    only_before, only_after = set(before.records()), set[bytes]()
    for value in after.records():
        if value in only_before:
            only_before.remove(value)
        else:
            only_after.add(value)
    found = {record.id for record in map(decode_record, only_before | only_after) if isinstance(record, _ACL)}
    yield from found


def _rules(before: AclsImage, after: AclsImage, ids: Iterable[UUID]) -> Iterator[Difference]:
    """Yield the differences of these ACLs; one that was recreated under another id is one change, not two."""
    removed: dict[UUID, StandardAcl] = {}
    added: dict[UUID, StandardAcl] = {}
    for rule_id in ids:
        old, new = before.get(rule_id), after.get(rule_id)
        if old != new and old is not None:
            removed[rule_id] = old
        if old != new and new is not None:
            added[rule_id] = new
    # By content: an ACL on both sides under different ids was recreated.
    new_ids = {acl: rule_id for rule_id, acl in added.items()}
    found = []
    for rule_id, acl in removed.items():
        renewed = new_ids.get(acl)
        if renewed is not None:
            del added[renewed]
            was = f" (its id was {uuid_text(rule_id)})"
            found.append(_rule(Sign.CHANGED, renewed, acl, was))
        elif rule_id in added:
            was = f" (was {acl_text(acl)})"
            found.append(_rule(Sign.CHANGED, rule_id, added.pop(rule_id), was))
        else:
            found.append(_rule(Sign.REMOVED, rule_id, acl))
    found += (_rule(Sign.ADDED, rule_id, acl) for rule_id, acl in added.items())
    yield from sorted(found, key=lambda difference: difference.paths)


def _rule(sign: Sign, rule_id: UUID, acl: StandardAcl, note: str = "") -> Difference:
    name = uuid_text(rule_id)
    rule = StandardAclWithId(id=rule_id, acl=acl)
    return Difference(sign=sign, paths=rule_paths(rule), text=f"/acl/id/{name} {acl_text(acl)}{note}", rule=rule)


def rule_paths(rule: StandardAclWithId) -> tuple[tuple[str, ...], ...]:
    """Return the paths of an ACL that has an id. The first one is the sort key: by resource."""
    name = uuid_text(rule.id) if rule.id else ""
    resource_type = code_name(ResourceType, rule.acl.resource_type)
    pattern_type = code_name(PatternType, rule.acl.pattern_type)
    return (
        ("acl", "resource", resource_type, pattern_type, rule.acl.resource_name, name),
        ("acl", "principal", rule.acl.principal, name),
        ("acl", "id", name),
        ("image", "acls", "byId", name),
    )


def _scram(before: Image, after: Image) -> Iterator[Difference]:
    old = {(record.name, record.mechanism): record for record in before.scram.records()}
    new = {(record.name, record.mechanism): record for record in after.scram.records()}
    for (user, code), sign in _signs(old, new):
        mechanism = mechanism_name(code)
        yield Difference(
            sign=sign,
            paths=(("scram", user, mechanism), ("image", "scram", mechanism, user)),
            text=path_text(("scram", user, mechanism)),
        )


def _tokens(before: Image, after: Image) -> Iterator[Difference]:
    old = {record.token_id: record for record in before.tokens.records()}
    new = {record.token_id: record for record in after.tokens.records()}
    for name, sign in _signs(old, new):
        record = new.get(name) or old[name]
        yield Difference(
            sign=sign,
            paths=(("delegationToken", name), ("image", "delegationToken", name)),
            text=f"{path_text(('delegationToken', name))} of {record.owner}",
        )


def _features(before: Image, after: Image) -> Iterator[Difference]:
    old = {record.name: record.feature_level for record in before.features.records()}
    new = {record.name: record.feature_level for record in after.features.records()}
    for name, sign in _signs(old, new):
        yield Difference(
            sign=sign,
            paths=(("features", name), ("image", "features", f"finalized_{name}"), ("image", "features", name)),
            text=f"{path_text(('features', name))} {old.get(name, 0)} to {new.get(name, 0)}",
        )


def _signs(old: Mapping[K, object], new: Mapping[K, object]) -> Iterator[tuple[K, Sign]]:
    for key in {**old, **new}:
        if key not in new:
            yield key, Sign.REMOVED
        elif key not in old:
            yield key, Sign.ADDED
        elif old[key] != new[key]:
            yield key, Sign.CHANGED
