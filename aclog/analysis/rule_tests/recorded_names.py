"""Names as a test lists them: `topic:orders.*` less some."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from aclog.analysis.regions.names import Literal, NamePart, Subtree
from aclog.analysis.rows.name_folding import place
from aclog.authorizer.acl import WILDCARD, PatternType, ResourcePattern, ResourceType

Listed: TypeAlias = tuple[ResourcePattern, tuple[ResourcePattern, ...]]
"""A name, or those that begin with a prefix, and which of them are left out."""


def listed_names(kind: ResourceType, names: Iterable[NamePart]) -> Iterator[Listed]:
    """Yield resources that together are some names, each with what is left out of it.

    `topic:*` stands for what LITERAL `*` covers (aclog.analysis.rule_tests.listed_access), so every name takes two.
    """
    parts = set(names)
    for part in sorted(parts, key=place):
        if isinstance(part, Subtree) and not part.prefix:
            yield from _from_every_name(kind, part, star=Literal(name=WILDCARD) in parts)
        elif isinstance(part, Subtree):
            yield _resource(kind, part.prefix), _but(kind, part)
        elif part.name != WILDCARD or Subtree(prefix="") not in map(_without_exceptions, parts):
            yield ResourcePattern(resource_type=kind, name=part.name), ()


def _from_every_name(kind: ResourceType, part: Subtree, *, star: bool) -> Iterator[Listed]:
    """Yield every name but some; `star`: with `*` itself, too."""
    usual, other = _split(part)
    has_star = star or WILDCARD in part
    only_star = ResourcePattern(resource_type=kind, name=WILDCARD)
    yield _resource(kind, ""), (*_but(kind, usual), *(() if has_star else (only_star,)))
    if WILDCARD not in part.except_prefixes:
        yield _resource(kind, WILDCARD), _but(kind, other)


def _split(part: Subtree) -> tuple[Subtree, Subtree]:
    """Return the exceptions among usual names, and among those that begin with `*`."""
    prefixes, literals = part.except_prefixes, part.except_literals
    usual = Subtree(
        prefix="",
        except_prefixes=tuple(each for each in prefixes if not each.startswith(WILDCARD)),
        except_literals=tuple(each for each in literals if not each.startswith(WILDCARD)),
    )
    other = Subtree(
        prefix=WILDCARD,
        except_prefixes=tuple(each for each in prefixes if each.startswith(WILDCARD)),
        except_literals=tuple(each for each in literals if each.startswith(WILDCARD)),
    )
    return usual, other


def _without_exceptions(part: NamePart) -> NamePart:
    return part if isinstance(part, Literal) else Subtree(prefix=part.prefix)


def _but(kind: ResourceType, part: Subtree) -> tuple[ResourcePattern, ...]:
    return (
        *(_resource(kind, prefix) for prefix in part.except_prefixes),
        *(ResourcePattern(resource_type=kind, name=name) for name in part.except_literals),
    )


def _resource(kind: ResourceType, prefix: str) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=prefix, pattern_type=PatternType.PREFIXED)
