"""Envoy's external authorization over HTTP: may the one whom a header names ask for this path by this method."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self
from urllib.parse import unquote

from attrs import frozen

from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    StandardAcl,
)
from aclog.console.pdp.decider import Answer, Decider
from aclog.console.pdp.mapping import EnvoyMapping
from aclog.console.pdp.requests import ActionName, Circumstances, Entity, Evaluation

PREFIX = "/ext_authz"
_ODD = ("%25", "%2f", "%3b", "%5c", "%2e", "%23", "%3f", ";", "#", "\\", "//")
"""What some servers read as a path of another name: decoded once more, as a separator, or as what is cut off."""
_ANYBODY = ""
_BROKEN = re.compile("%(?![0-9a-f]{2})")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def envoy_answer(
    mapping: EnvoyMapping | None,
    method: str,
    raw_path: str,
    subjects: Sequence[str],
    state: Callable[[str | None], Decider],
) -> tuple[Answer, int]:
    """Return whether a request may pass, and the offset of the state that says so.

    `raw_path` is as it was sent, `subjects` the values of the header, each byte a character (ISO 8859-1).

    Raises:
        NotReadyError: as AuthZen.evaluation.

    """
    decider = state(None)
    if mapping is None:
        return _no("the mapping has no key envoy"), decider.offset
    if len(subjects) != 1 or not subjects[0]:
        return _no(f"expected the header {mapping.header} once"), decider.offset
    path = raw_path.partition("?")[0].removeprefix(PREFIX)
    if not raw_path.startswith(f"{PREFIX}/"):  # the prefix itself with escapes, or after a host
        return _no("the path has more than one reading"), decider.offset
    try:
        subject, name = subjects[0].encode("latin-1").decode(), unquote(path, errors="strict")
    except UnicodeError:
        return _no("the path or the header is not UTF-8"), decider.offset
    if _is_odd(path.lower(), name):
        return _no("the path has more than one reading"), decider.offset
    asked = Evaluation(
        subject=Entity(type=mapping.subject_type, id=subject),
        action=ActionName(name=method),
        resource=Entity(type=mapping.resource_type, id=name),
        circumstances=Circumstances(),
    )
    return decider.evaluate(asked, exact=True), decider.offset


def path_warning(decider: Decider) -> str | None:
    """Return a warning of DENY rules on single paths that other ways to write them may pass; None if there is none."""
    rules = list(_passable(decider))
    if not rules:
        return None
    count = f"{len(rules):,} DENY rule{'s' * (len(rules) != 1)}"
    name, principal = rules[0].resource_name[:80], rules[0].principal[:80]
    return (
        f"Envoy's paths: {count} on a single path below an allowed prefix, such as that of {principal} on {name}: "
        f"{name}. and {name}%20 and {name}/ and {name.upper()} are other paths, and allowed, though a server may take "
        "them for it: deny the prefix, or allow single paths (docs/decision-point.md)"
    )


def _passable(decider: Decider) -> Iterator[StandardAcl]:
    """Yield LITERAL DENY rules on paths where a longer name, such as with a dot behind, may be allowed."""
    mapping = decider.mapping.envoy
    kind = None if mapping is None else decider.mapping.resource_type(mapping.resource_type)
    if kind is None:
        return
    for resource_type in {case.to.resource_type for case in kind.cases}:
        denies = [
            rule
            for rule in _rules(decider, resource_type, AclPermissionType.DENY, PatternType.LITERAL)
            if any(case.to.template.id_of(rule.resource_name) is not None for case in kind.cases)
            and rule.resource_name != WILDCARD
        ]
        if denies:
            wide = _WideRules.of(decider, resource_type)
            yield from (rule for rule in denies if wide.let_pass(rule))


@frozen(kw_only=True)
class _WideRules:
    """Rules on many paths, by their prefix: that of rules on the resource `*` is empty."""

    allowed: Mapping[tuple[str, str], set[int]]
    """Operations, by prefix and principal; by `_ANYBODY` those of all principals."""
    denied: Mapping[tuple[str, str], set[tuple[int, str]]]
    """Operations and hosts, by prefix and principal."""
    lengths: Sequence[int]
    """Of all prefixes."""
    allow_everyone: bool

    @classmethod
    def of(cls, decider: Decider, resource_type: int) -> Self:
        """Return those of a type of resource."""
        allowed = defaultdict[tuple[str, str], set[int]](set)
        denied = defaultdict[tuple[str, str], set[tuple[int, str]]](set)
        for prefix, rule in _wide(decider, resource_type, AclPermissionType.ALLOW):
            for principal in (rule.principal, _ANYBODY):
                allowed[prefix, principal].add(rule.operation)
        for prefix, rule in _wide(decider, resource_type, AclPermissionType.DENY):
            denied[prefix, rule.principal].add((rule.operation, rule.host))
        lengths = sorted({len(prefix) for prefix, _ in (*allowed, *denied)})
        everyone = decider.policy.settings.allow_everyone
        return cls(allowed=dict(allowed), denied=dict(denied), lengths=lengths, allow_everyone=everyone)

    def let_pass(self, deny: StandardAcl) -> bool:
        """Return whether names beside that of a DENY are allowed: by rules above them, or since there are none."""
        prefixes = [deny.resource_name[:length] for length in self.lengths if length <= len(deny.resource_name)]
        everybody = deny.principal == WILDCARD_PRINCIPAL
        principals = (_ANYBODY,) if everybody else (deny.principal, WILDCARD_PRINCIPAL)
        keys = [(prefix, principal) for prefix in prefixes for principal in (deny.principal, WILDCARD_PRINCIPAL)]
        hidden = {
            (operation, host) for operation in (deny.operation, AclOperation.ALL) for host in (deny.host, WILDCARD)
        }
        if any(not hidden.isdisjoint(self.denied.get(key, ())) for key in keys):
            return False
        return self.allow_everyone or any(
            _meet(deny.operation, self.allowed.get((prefix, principal), set()))
            for prefix in prefixes
            for principal in principals
        )


def _wide(decider: Decider, kind: int, permission: int) -> Iterator[tuple[str, StandardAcl]]:
    """Yield rules on more than one name, with their prefixes."""
    for rule in _rules(decider, kind, permission, PatternType.PREFIXED):
        yield rule.resource_name, rule
    for rule in _rules(decider, kind, permission, PatternType.LITERAL):
        if rule.resource_name == WILDCARD:
            yield "", rule


def _rules(decider: Decider, kind: int, permission: int, pattern: int) -> Iterator[StandardAcl]:
    asked = AclBindingFilter(resource_type=kind, permission_type=permission, pattern_type=pattern)
    return (each.acl for each in decider.acls.matching(asked))


def _meet(denied: int, allowed: set[int]) -> bool:
    """Return whether what is denied may be allowed by one of these operations; READ and others imply DESCRIBE."""
    implied = denied in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    anything = bool(allowed) and (implied or denied == AclOperation.ALL)
    return anything or denied in allowed or AclOperation.ALL in allowed


def _is_odd(path: str, name: str) -> bool:
    """Return whether servers may read a path, in lower case, as another name than it has once it is decoded."""
    is_broken = _BROKEN.search(path) is not None or _CONTROL.search(name) is not None
    return is_broken or any(odd in path for odd in _ODD) or not {"..", "."}.isdisjoint(path.split("/"))


def _no(reason: str) -> Answer:
    return Answer(decision=False, rule=None, reason=reason)
