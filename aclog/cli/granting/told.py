"""What a grant or a revocation says besides its plan."""

from collections.abc import Iterable, Iterator, Sequence

from aclog.analysis.answers.permission_report import permission_lines
from aclog.analysis.answers.permissions import DEFAULT_ALLOW, SUPER_USER
from aclog.analysis.by_generation import only_on
from aclog.authorizer.acl import (
    WILDCARD_PRINCIPAL,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAcl,
    acl_text,
    code_name,
)
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG
from aclog.authorizer.premises import Premises
from aclog.planning.granting.grant import Grant
from aclog.planning.granting.revoke import Revocation, Still
from aclog.planning.granting.sharing import Shared
from aclog.planning.granting.stranded import Stranded

_SHOWN = 10
"""Lines of one kind; the rest is counted."""
_NAMED = 3
"""Patterns of one principal."""

_REASONS = {
    SUPER_USER: "it is a super user, who may do everything",
    DEFAULT_ALLOW: "no rule covers it, and allow.everyone.if.no.acl.found opens it",
}
_MAY_BE, _NO_RULE = "still allowed if names without ACLs are open", "no rule covers it"


def grant_lines(principal: str, found: Grant, sharing: Sequence[Shared], unknown: Premises) -> Iterator[str]:
    """Yield what a grant uses, what it does not reach, and whom else it touches.

    `unknown`: what could allow what stays denied.
    """
    if principal == WILDCARD_PRINCIPAL and found.added:
        yield f"{WILDCARD_PRINCIPAL} is everyone: every principal is granted this"
    already = [f"already: {_reason(each)}{only_on(found.reused_only.get(each))}" for each in found.reused]
    yield from _cut(already, "already: {} more rules")
    denied = (
        f"{unknown.decided('stays denied')}: {each.region}{only_on(each.only)}: "
        + ("a rule there has a principal without a colon" if each.rule is None else acl_text(each.rule))
        for each in found.overruled
    )
    yield from _cut(list(denied), "stays denied: {} more sets of requests")
    yield from _cut(list(map(_shared_line, sharing)), "shared: {} more")


def revocation_lines(
    principal: str, found: Revocation, stopped: Iterable[Stranded], premises: Premises
) -> Iterator[str]:
    """Yield what still allows what was to be taken away, or may, and what stops that is not part of it.

    `premises`: what is unknown of what decides.
    """
    is_open = ALLOW_EVERYONE_CONFIG not in premises.names
    if principal == WILDCARD_PRINCIPAL and found.removed:
        yield f"{WILDCARD_PRINCIPAL} is everyone: every principal without a rule of its own loses this"
    lines = [line for each in found.still for line in _still_lines(each, is_open=is_open)]
    yield from _cut(lines, "still allowed: {} more lines")
    if unknown := premises.turning(allowed=False):
        yield f"still allowed if {unknown.unless()}"
    yield from map(_stranded_line, stopped)


def _still_lines(still: Still, *, is_open: bool) -> Iterator[str]:
    """Yield what is still allowed; `is_open`: whether names without ACLs are known to be open."""
    permission = still.permission
    if permission.rules == (SUPER_USER,):
        yield f"still allowed: everything: {_REASONS[SUPER_USER]}"
        return
    head, *rules = permission_lines(permission)
    if permission.rules == (DEFAULT_ALLOW,):
        where = f"{head}{only_on(still.only)}"
        yield f"still allowed: {where}: {_REASONS[DEFAULT_ALLOW]}" if is_open else f"{_MAY_BE}: {where}: {_NO_RULE}"
        return
    yield f"still allowed: {head}{only_on(still.only)}"
    yield from rules


def _stranded_line(found: Stranded) -> str:
    kind = code_name(ResourceType, found.gone[0].resource_type)
    return (
        f"also stops: clients that use {kind} {_patterns_text(found.gone)} to {found.operation.name} "
        f"TOPIC {_patterns_text(found.topics)}"
    )


def _shared_line(found: Shared) -> str:
    who = "everyone" if found.principal == WILDCARD_PRINCIPAL else found.principal
    kind = code_name(ResourceType, found.pattern.resource_type)
    return f"shared: {kind} {_pattern_text(found.pattern)}: {who} has rules on {_patterns_text(found.patterns)} there"


def _patterns_text(patterns: Sequence[ResourcePattern]) -> str:
    more = f" and {len(patterns) - _NAMED:,} more" if len(patterns) > _NAMED else ""
    return ", ".join(map(_pattern_text, patterns[:_NAMED])) + more


def _pattern_text(pattern: ResourcePattern) -> str:
    return f"{code_name(PatternType, pattern.pattern_type)} {pattern.name!r}"


def _reason(reason: StandardAcl | str) -> str:
    return acl_text(reason) if isinstance(reason, StandardAcl) else _REASONS.get(reason, reason)


def _cut(lines: Sequence[str], rest: str) -> Iterable[str]:
    if len(lines) <= _SHOWN + 1:
        return lines
    return [*lines[:_SHOWN], rest.format(f"{len(lines) - _SHOWN:,}")]
