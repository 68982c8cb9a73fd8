"""Patterns of rules as sets of names; LITERAL `*` has every name here."""

from attrs import evolve

from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern


def covers(outer: ResourcePattern, inner: ResourcePattern) -> bool:
    """Return whether a pattern has every name of another one."""
    if outer.resource_type != inner.resource_type:
        return False
    if is_every_name(outer):
        return True
    if outer.pattern_type == PatternType.PREFIXED:
        return not is_every_name(inner) and inner.name.startswith(outer.name)
    return inner == outer


def is_every_name(pattern: ResourcePattern) -> bool:
    """Return whether a pattern is LITERAL `*`."""
    return pattern.pattern_type == PatternType.LITERAL and pattern.name == WILDCARD


def all_names(pattern: ResourcePattern) -> ResourcePattern:
    """Return the pattern as a query has it: there `*` is just a name."""
    return evolve(pattern, name="", pattern_type=PatternType.PREFIXED) if is_every_name(pattern) else pattern
