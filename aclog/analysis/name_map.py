"""Names of one cluster as another one has them: rules whose resource names begin otherwise."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from aclog.authorizer.acl import WILDCARD, PatternType, ResourceType, StandardAcl, StandardAclWithId, code_name
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import Origin, Origins
from aclog.metalog.errors import ConfigError

_MAPPED_TYPES = frozenset((ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID))


@frozen(kw_only=True)
class NameMap:
    """Names of topics, groups and transactional ids that begin with `old` begin with `new`."""

    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old}={self.new}"


def parse_name_maps(texts: Iterable[str]) -> tuple[NameMap, ...]:
    """Parse `OLD=NEW` texts; either may be empty.

    Raises:
        ConfigError: no `=`, or the same OLD twice.

    """
    found: dict[str, NameMap] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals:
            raise ConfigError(f"--map-names {text!r}: expected OLD=NEW")
        if old in found:
            raise ConfigError(f"--map-names {text!r}: names that begin with {old!r} are mapped twice")
        found[old] = NameMap(old=old, new=new)
    return tuple(found.values())


def mapped_acls(acls: AclsImage, maps: Sequence[NameMap]) -> AclsImage:
    """Return the ACLs with the names of their resources mapped, without ids; the longest `old` that fits counts.

    LITERAL `*` is no name, and stays.

    Raises:
        ConfigError: a prefix that covers more than the names that are mapped, or two names that become one.

    """
    rules = [rule.acl for rule in acls]
    patterns = {(rule.resource_type, rule.resource_name, rule.pattern_type) for rule in rules}
    names = {pattern: _mapped(*pattern, maps) for pattern in patterns if _is_mappable(*pattern)}
    for kind in _MAPPED_TYPES:
        of_kind = {pattern[1:]: name for pattern, name in names.items() if pattern[0] == kind}
        _check_distinct(kind, of_kind)
    mapped = (
        evolve(
            rule,
            resource_name=names.get((rule.resource_type, rule.resource_name, rule.pattern_type), rule.resource_name),
        )
        for rule in rules
    )
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in mapped)


@frozen
class MappedOrigins:
    """Where rules stand whose names were mapped (aclog.authorizer.origin.Origins)."""

    _before: Origins
    _maps: Sequence[NameMap]

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every place that states the rule as it was before."""
        if not _is_mappable(acl.resource_type, acl.resource_name, acl.pattern_type):
            return self._before.of(acl)
        name = acl.resource_name
        names = [each.old + name[len(each.new) :] for each in self._maps if name.startswith(each.new)]
        found = [self._before.of(evolve(acl, resource_name=old)) for old in dict.fromkeys((*names, name))]
        return next((places for places in found if places), ())


def _is_mappable(kind: int, name: str, pattern: int) -> bool:
    return kind in _MAPPED_TYPES and not (pattern == PatternType.LITERAL and name == WILDCARD)


def _mapped(kind: int, name: str, pattern: int, maps: Sequence[NameMap]) -> str:
    found = max((each for each in maps if name.startswith(each.old)), key=lambda each: len(each.old), default=None)
    if pattern != PatternType.LITERAL:
        for each in maps:
            if each.old != name and each.old.startswith(name):
                raise ConfigError(
                    f"--map-names {each}: {code_name(ResourceType, kind)} PREFIXED {name!r} is shorter than "
                    f"{each.old!r}: it also covers names that stay as they are"
                )
    return name if found is None else found.new + name[len(found.old) :]


def _check_distinct(kind: int, names: dict[tuple[str, int], str]) -> None:
    """Refuse two names that become one, be it under a prefix."""
    came_from: dict[str, str] = {}
    for (old, _), new in names.items():
        if came_from.setdefault(new, old) != old:
            raise _two_names(kind, old, came_from[new], new)
    prefixes = {new: old for (old, pattern), new in names.items() if pattern != PatternType.LITERAL}
    ordered = sorted(came_from)
    for prefix, old_prefix in prefixes.items():
        for new in _beginning(ordered, prefix):
            old = came_from[new]
            if old != old_prefix + new[len(prefix) :]:
                raise _two_names(kind, old, f"{old_prefix}{new[len(prefix) :]}", new)


def _beginning(ordered: Sequence[str], prefix: str) -> Iterator[str]:
    for position in range(bisect_left(ordered, prefix), len(ordered)):
        if not ordered[position].startswith(prefix):
            return
        yield ordered[position]


def _two_names(kind: int, one: str, other: str, new: str) -> ConfigError:
    type_name = code_name(ResourceType, kind)
    return ConfigError(f"--map-names: {type_name} {one!r} and {other!r} would both be {new!r}: two names become one")
