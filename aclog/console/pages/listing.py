"""The rules of a state in order, with what finds them: kept beside the image, and carried over to the next state."""

import sys
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import PatternType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage

_MOST_CHANGES = 5_000
"""With more of them a listing is made anew."""

Key: TypeAlias = tuple[int, str, int, str, str, int, int]
_TYPE, _NAME, _PATTERN, _PRINCIPAL, _HOST, _OPERATION, _PERMISSION = range(7)


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
    pattern_type: int | None = None
    """Of the name, if it is one and nothing else begins so."""


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

    def of(self, keys: Sequence[Key]) -> Sequence[Key]:
        """Return the keys of the rules that are wanted, `anything` aside."""
        codes = {_TYPE: self.resource_type, _PATTERN: self.pattern_type, _OPERATION: self.operation}
        for place, code in {**codes, _PERMISSION: self.permission}.items():
            if code is not None:
                keys = [key for key in keys if key[place] == code]
        for place, text in {_PRINCIPAL: self.principal, _NAME: self.resource, _HOST: self.host}.items():
            if text:
                wanted = text.lower()
                keys = [key for key in keys if wanted in str(key[place]).lower()]
        return keys


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
        keys: Sequence[Key] = self._keys
        if wanted.anything:
            text = wanted.anything.lower()
            keys = [key for key, known in zip(self._keys, self._texts, strict=True) if text in known]
        return [self._rules[key] for key in wanted.of(keys)]

    @cached_property
    def _names(self) -> list[tuple[int, str, int]]:
        """Type, name and pattern type of what rules are about, each once, in order."""
        return list(dict.fromkeys(key[:3] for key in self._keys))

    def names(self, resource_type: int, prefix: str = "") -> Iterator[Name]:
        """Yield the names of a type that begin so, in order."""
        names, keys = self._names, self._keys
        low, high = _span(names, resource_type, prefix)
        place, _ = _span(keys, resource_type, prefix)
        for each in names[low:high]:
            begin = place
            while place < len(keys) and keys[place][:3] == each:
                place += 1
            yield Name(name=each[1], pattern_type=each[2], rules=place - begin)

    def found_names(self, text: str) -> list[tuple[int, Name]]:
        """Return the names with a text in them, in any case, each with its type."""
        wanted = text.lower()
        found = [each for each in self._names if wanted in each[1].lower()]
        return [
            (kind, Name(name=name, pattern_type=pattern, rules=self._count(kind, name, pattern)))
            for kind, name, pattern in found
        ]

    def _count(self, kind: int, name: str, pattern: int) -> int:
        keys = self._keys
        return bisect_left(keys, (kind, name, pattern + 1)) - bisect_left(keys, (kind, name, pattern))

    def sharing(self, resource_type: int, prefix: str) -> Counter[str]:
        """Return the principals with rules on names of a type that begin so, and how many rules each has."""
        low, high = _span(self._keys, resource_type, prefix)
        return Counter(key[3] for key in self._keys[low:high])

    def branches(self, resource_type: int, prefix: str, separators: str) -> list[Branch]:
        """Return what names of a type that begin so go on with, up to the next separator; a lone way on is gone."""
        while True:
            found = self._split(resource_type, prefix, separators)
            if len(found) == 1 and not found[0].is_name and found[0].text != prefix:
                prefix = found[0].text
                continue
            return found

    def _split(self, resource_type: int, prefix: str, separators: str) -> list[Branch]:
        names, keys = self._names, self._keys
        place, high = _span(names, resource_type, prefix)
        found = []
        while place < high:
            kind, name, pattern = names[place]
            if name == prefix:  # and below it nothing: a name and a prefix that are spelled alike are two ends
                rules = self._count(kind, name, pattern)
                found.append(Branch(text=name, rules=rules, names=1, is_name=True, pattern_type=pattern))
                place += 1
                continue
            text = name[: _cut(name, len(prefix), separators)]
            is_name = text == name
            is_end = is_name and text[-1] not in separators
            first, last = _span(names, resource_type, text, is_whole=is_end)
            low, up = _span(keys, resource_type, text, is_whole=is_end)
            alone = pattern if is_name and last - first == 1 else None
            found.append(Branch(text=text, rules=up - low, names=last - first, is_name=is_name, pattern_type=alone))
            place = last
        return found


def _span(
    rows: Sequence[tuple[object, ...]], resource_type: int, text: str, *, is_whole: bool = False
) -> tuple[int, int]:
    """Return where rows, sorted by type and name, begin and end whose name is a text, or begins with it."""
    low = bisect_left(rows, (resource_type, text))
    after = f"{text}\0" if is_whole else _after(text)
    return low, bisect_left(rows, (resource_type + 1,) if after is None else (resource_type, after))


def _after(prefix: str) -> str | None:
    """Return the first text behind all that begin so; None if nothing is behind them."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    return f"{kept[:-1]}{chr(ord(kept[-1]) + 1)}" if kept else None


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
    """Return where the first part of a name ends that begins at `start`: behind the separator that ends it."""
    found = [place for each in separators if (place := name.find(each, start)) >= 0]
    return min(found) + 1 if found else len(name)
