"""The rules of a state in order, with what finds them: kept beside the image, and carried over to the next state."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import PatternType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage

_LAST = "\U0010ffff"
_MOST_CHANGES = 5_000
"""With more of them a listing is made anew."""

Key = tuple[int, str, int, str, str, int, int]


@frozen(kw_only=True)
class Name:
    """A name, or a prefix, that rules are about, and how many are."""

    name: str
    pattern_type: int
    rules: int


@frozen(kw_only=True)
class Branch:
    """What begins with a text: how many rules, and names if it is more than one."""

    text: str
    rules: int
    names: int
    is_name: bool
    """Whether it is itself a name, or a prefix, that rules are about."""


@frozen(kw_only=True)
class Wanted:
    """Which rules are listed; texts are found anywhere, in any case."""

    anything: str = ""
    principal: str = ""
    resource: str = ""
    host: str = ""
    resource_type: int | None = None
    pattern_type: int | None = None
    operation: int | None = None
    permission: int | None = None

    def matches(self, acl: StandardAcl) -> bool:
        """Return whether a rule is wanted, `anything` aside."""
        return (
            (self.resource_type is None or acl.resource_type == self.resource_type)
            and (self.operation is None or acl.operation == self.operation)
            and (self.permission is None or acl.permission_type == self.permission)
            and (self.pattern_type is None or acl.pattern_type == self.pattern_type)
            and (not self.principal or self.principal.lower() in acl.principal.lower())
            and (not self.resource or self.resource.lower() in acl.resource_name.lower())
            and (not self.host or self.host.lower() in acl.host.lower())
        )

    @property
    def is_all(self) -> bool:
        """Whether nothing but `anything` narrows it."""
        return self == Wanted(anything=self.anything)


@define(eq=False, slots=False)
class Listing:
    """Rules by resource type, name, pattern, principal, host, operation and permission. Immutable by convention."""

    acls: AclsImage
    _keys: list[Key] = field(repr=False)
    _rules: dict[Key, StandardAclWithId] = field(repr=False)
    _by_id: dict[int, Key] = field(repr=False)
    """Those that have ids."""

    @classmethod
    def of(cls, acls: AclsImage) -> "Listing":
        """Return the listing of some rules."""
        rules = {key_of(rule.acl): rule for rule in acls}
        by_id = {rule.id.int: key for key, rule in rules.items() if rule.id is not None}
        return cls(acls, sorted(rules), rules, by_id)

    def followed_by(self, acls: AclsImage) -> "Listing":
        """Return the listing of a later state; what both have is not read again."""
        if acls is self.acls:
            return self
        if len(self._by_id) < len(self._keys):
            return Listing.of(acls)
        changed = acls.changed_ids(self.acls)
        if changed is None or sum(map(len, changed)) > _MOST_CHANGES:
            return Listing.of(acls)
        gone, come = changed
        keys, rules, by_id = list(self._keys), dict(self._rules), dict(self._by_id)
        for number in gone:
            key = by_id.pop(number)
            del rules[key], keys[bisect_left(keys, key)]
        for number in come:
            acl = acls.get(UUID(int=number))
            if acl is not None:
                key = by_id[number] = key_of(acl)
                rules[key] = StandardAclWithId(id=UUID(int=number), acl=acl)
                insort(keys, key)
        return Listing(acls, keys, rules, by_id)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[StandardAclWithId]:
        return map(self._rules.__getitem__, self._keys)

    @cached_property
    def principals(self) -> dict[str, int]:
        """The principals by name, and how many rules each has."""
        return dict(sorted(Counter(key[3] for key in self._keys).items()))

    @cached_property
    def types(self) -> dict[int, int]:
        """The resource types that rules are about, and how many are."""
        return dict(sorted(Counter(key[0] for key in self._keys).items()))

    @cached_property
    def _texts(self) -> list[str]:
        return [f"{key[3]}\n{key[1]}\n{key[4]}".lower() for key in self._keys]

    def find(self, wanted: Wanted) -> list[StandardAclWithId]:
        """Return the rules that are wanted, in order."""
        keys: Iterable[Key] = self._keys
        if wanted.anything:
            text = wanted.anything.lower()
            keys = [key for key, known in zip(self._keys, self._texts, strict=True) if text in known]
        if wanted.is_all:
            return [self._rules[key] for key in keys]
        return [rule for key in keys if wanted.matches((rule := self._rules[key]).acl)]

    def names(self, resource_type: int, prefix: str = "") -> Iterator[Name]:
        """Yield the names of a type that begin so, in order."""
        for name, pattern, count in self._counted(resource_type, prefix):
            yield Name(name=name, pattern_type=pattern, rules=count)

    def branches(self, resource_type: int, prefix: str, separators: str) -> list[Branch]:
        """Return what names of a type that begin so go on with, up to the next separator; a lone way on is gone."""
        while True:
            found = self._split(resource_type, prefix, separators)
            if len(found) == 1 and not found[0].is_name and found[0].text != prefix:
                prefix = found[0].text
                continue
            return found

    def _split(self, resource_type: int, prefix: str, separators: str) -> list[Branch]:
        counts: dict[str, list[int]] = {}
        whole: set[str] = set()
        for name, _pattern, rules in self._counted(resource_type, prefix):
            end = _cut(name, len(prefix), separators)
            entry = counts.setdefault(name[:end], [0, 0])
            entry[0] += rules
            entry[1] += 1
            if end == len(name):
                whole.add(name)
        return [Branch(text=text, rules=n[0], names=n[1], is_name=text in whole) for text, n in counts.items()]

    def _counted(self, resource_type: int, prefix: str) -> Iterator[tuple[str, int, int]]:
        """Yield name, pattern type and number of rules."""
        keys = self._keys
        low = bisect_left(keys, (resource_type, prefix))
        high = bisect_left(keys, (resource_type, prefix + _LAST)) if prefix else bisect_left(keys, (resource_type + 1,))
        place = low
        while place < high:
            _, name, pattern, *_rest = keys[place]
            end = bisect_left(keys, (resource_type, name, pattern + 1), place, high)
            yield name, pattern, end - place
            place = end


def key_of(acl: StandardAcl) -> Key:
    """Return what a rule is sorted by: all of it."""
    return (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def pattern_text(name: str, pattern_type: int) -> str:
    """Return a name as it is, and a prefix with an asterisk."""
    return f"{name}*" if pattern_type == PatternType.PREFIXED else name


def _cut(name: str, start: int, separators: str) -> int:
    """Return where the first part of a name ends that begins at `start`: after the separators that end it."""
    found = [place for each in separators if (place := name.find(each, start)) >= 0]
    if not found:
        return len(name)
    end = min(found)
    while end < len(name) and name[end] in separators:
        end += 1
    return end
