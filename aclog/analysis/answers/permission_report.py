"""Permissions as lines of text and as JSON objects."""

from collections.abc import Iterator, Sequence

from aclog.analysis.answers.permissions import SUPER_USER, Permission
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region_json import JsonObject, decided_by_object, region_object, witness_object
from aclog.analysis.regions.region_text import hosts_text
from aclog.analysis.regions.witness import has_legal_name, witness
from aclog.analysis.rows.row import Clause
from aclog.analysis.rows.row_text import what_text
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.origin import NO_ORIGINS, Origins

_SHOWN = 10
"""Rules of one permission as text; the JSON lines have all."""


def permission_object(permission: Permission, origins: Origins = NO_ORIGINS) -> JsonObject:
    """Return the region, an example, and the rules that give it and those that take a part of what these give.

    `covers` is whether the region has all names of the prefixes that were asked about, or some.
    """
    region = permission.region
    return {
        **region_object(region),
        **({} if permission.extent is None else {"covers": "ALL" if permission.extent.is_all else "SOME"}),
        "rules": [decided_by_object(rule, origins) for rule in permission.rules],
        "denies": [decided_by_object(rule, origins) for rule in permission.denies],
        **witness_object(witness(region), legal=has_legal_name(region)),
    }


def permission_lines(permission: Permission, origins: Origins = NO_ORIGINS) -> Iterator[str]:
    """Yield who may do what from where, on all names of a prefix or on some; then the rules that allow and deny it."""
    region = permission.region
    clause = Clause(resource_type=region.resource_type, operations=region.operations, names=region.names)
    legal = "" if has_legal_name(region) else " (no topic can have such a name)"
    extent = "" if permission.extent is None else f" ({permission.extent.text})"
    yield f"{all_of(region.principals)}: {what_text([clause])}, from {hosts_text(region.hosts)}{extent}{legal}"
    if permission.rules != (SUPER_USER,):
        yield from _rules("by", permission.rules, origins)
    yield from _rules("less", permission.denies, origins)


def all_of(principals: Principals) -> str:
    """Return all principals by name."""
    named = ", ".join(principals.named)
    if not principals.complement:
        return named
    return f"anyone but {named}" if named else "anyone"


def _rules(word: str, rules: Sequence[StandardAcl | str], origins: Origins) -> Iterator[str]:
    for rule in rules[:_SHOWN]:
        yield f"  {word} {rule if isinstance(rule, str) else located_text(rule, origins)}"
    if len(rules) > _SHOWN:
        yield f"  {word} {len(rules) - _SHOWN:,} more"
