"""The rules of a state in order, with what finds them: kept beside the image, and carried over to the next state."""

import json
import sys
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import TypeAlias, TypeVar, overload
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import WILDCARD, PatternType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Pause, no_pause
from aclog.authorizer.name_notation import name_text
from aclog.console.pages.haystack import Haystack

_MOST_CHANGES = 5_000
"""With more of them a listing is made anew."""
_STEP, _SORTED = 100, 2_000
"""Rules between two pauses; and that are sorted at once."""

Key: TypeAlias = tuple[int, str, int, str, str, int, int]
NameKey: TypeAlias = tuple[int, str, int]
_K = TypeVar("_K", int, str)
_V = TypeVar("_V")
_TYPE, _NAME, _PATTERN, _PRINCIPAL, _HOST, _OPERATION, _PERMISSION = range(7)


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

    def texts(self) -> dict[int, str]:
        """Return the texts that are wanted in lower case, by their places in a key; none for `anything`."""
        asked = {_PRINCIPAL: self.principal, _NAME: self.resource, _HOST: self.host}
        return {place: text.lower() for place, text in asked.items() if text}

    def of(self, keys: Sequence[Key]) -> Sequence[Key]:
        """Return the keys of the rules that are wanted, `anything` aside."""
        codes = {_TYPE: self.resource_type, _PATTERN: self.pattern_type, _OPERATION: self.operation}
        for place, code in {**codes, _PERMISSION: self.permission}.items():
            if code is not None:
                keys = [key for key in keys if key[place] == code]
        for place, text in self.texts().items():
            keys = [key for key in keys if text in str(key[place]).lower()]
        return keys


@frozen(eq=False)
class FoundRules(Sequence[StandardAclWithId]):
    """Rules that were found, in order; each is looked up when it is shown: mostly a few of many are."""

    _keys: Sequence[Key]
    _rules: Mapping[Key, StandardAclWithId]

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> StandardAclWithId: ...
    @overload
    def __getitem__(self, place: slice) -> list[StandardAclWithId]: ...
    def __getitem__(self, place: int | slice) -> StandardAclWithId | list[StandardAclWithId]:
        if isinstance(place, slice):
            return [self._rules[key] for key in self._keys[place]]
        return self._rules[self._keys[place]]


@define(eq=False, slots=False)
class Listing:
    """Rules by resource type, name, pattern, principal, host, operation and permission. Immutable by convention."""

    acls: AclsImage
    _keys: list[Key] = field(factory=list, init=False, repr=False)
    _texts: list[str] = field(factory=list, init=False, repr=False)
    """By the place of a key: what is looked through for any text."""
    _names: list[NameKey] = field(factory=list, init=False, repr=False)
    """Type, name and pattern type of what rules are about, each once, in order."""
    _rules: dict[Key, StandardAclWithId] = field(factory=dict, init=False, repr=False)
    _by_id: dict[int, Key] = field(factory=dict, init=False, repr=False)
    """Those that have ids."""
    principals: dict[str, int] = field(factory=dict, init=False, repr=False)
    """The principals by name, in order, and how many rules each has."""
    types: dict[int, int] = field(factory=dict, init=False, repr=False)
    """The resource types that rules are about, in order, and how many are."""

    @classmethod
    def of(cls, acls: AclsImage, pause: Pause = no_pause) -> "Listing":
        """Return the listing of some rules; `pause` is called again and again."""
        made = cls(acls)
        made._rules = {key_of(rule.acl): rule for rule in _stepped(acls, pause)}
        made._by_id = {rule.id.int: key for key, rule in _stepped(made._rules.items(), pause) if rule.id is not None}
        made._keys = _sorted(made._rules, pause)
        made._texts = [_text(key) for key in _stepped(made._keys, pause)]
        made._names = list(dict.fromkeys(key[:3] for key in _stepped(made._keys, pause)))
        made.principals = _in_order(Counter(key[3] for key in _stepped(made._keys, pause)))
        made.types = _in_order(Counter(key[0] for key in _stepped(made._keys, pause)))
        return made

    def followed_by(self, acls: AclsImage, pause: Pause = no_pause) -> "Listing":
        """Return the listing of a later state; what both have is not read again."""
        if acls is self.acls:
            return self
        if len(self._by_id) < len(self._keys):
            return Listing.of(acls, pause)
        changed = acls.changed_ids(self.acls)
        if changed is None or sum(map(len, changed)) > _MOST_CHANGES:
            return Listing.of(acls, pause)
        gone, come = changed
        later = self._copy(acls)
        for number in gone:
            later._remove(number)
        for number in come:
            acl = acls.get(UUID(int=number))
            if acl is not None:
                later._add(StandardAclWithId(id=UUID(int=number), acl=acl), number)
        later.principals, later.types = _in_order(later.principals), _in_order(later.types)
        return later

    def _copy(self, acls: AclsImage) -> "Listing":
        """Return the same rules as the listing of a later state, to be brought up to it before anybody has it."""
        copy = Listing(acls)
        copy._keys, copy._texts, copy._names = list(self._keys), list(self._texts), list(self._names)
        copy._rules, copy._by_id = dict(self._rules), dict(self._by_id)
        copy.principals, copy.types = dict(self.principals), dict(self.types)
        return copy

    def _remove(self, number: int) -> None:
        key = self._by_id.pop(number)
        place = bisect_left(self._keys, key)
        del self._rules[key], self._keys[place], self._texts[place]
        if not self.count(*key[:3]):
            del self._names[bisect_left(self._names, key[:3])]
        self.principals[key[3]] -= 1
        self.types[key[0]] -= 1

    def _add(self, rule: StandardAclWithId, number: int) -> None:
        key = self._by_id[number] = key_of(rule.acl)
        if not self.count(*key[:3]):
            insort(self._names, key[:3])
        place = bisect_left(self._keys, key)
        self._keys.insert(place, key)
        self._texts.insert(place, _text(key))
        self._rules[key] = rule
        self.principals[key[3]] = self.principals.get(key[3], 0) + 1
        self.types[key[0]] = self.types.get(key[0], 0) + 1

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[StandardAclWithId]:
        return map(self._rules.__getitem__, self._keys)

    def find(self, wanted: Wanted) -> FoundRules:
        """Return the rules that are wanted, in order."""
        anything = wanted.anything.lower()
        longest = max((anything, *wanted.texts().values()), key=len)
        if not longest:
            return FoundRules(wanted.of(self._keys), self._rules)
        # Every text of a rule is in its line of the haystack, which finds in a fraction of the time that keys take.
        places = self._haystack.places(longest)
        if longest != anything:
            places = [place for place in places if anything in self._texts[place]]
        return FoundRules(wanted.of([self._keys[place] for place in places]), self._rules)

    def count_names(self, resource_type: int, prefix: str = "") -> int:
        """Return how many names of a type begin so; a name and a prefix that are spelled alike are two."""
        low, high = _span(self._names, resource_type, prefix)
        return high - low

    def found_names(self, text: str) -> Sequence[NameKey]:
        """Return the names with a text in them, in any case, in order."""
        wanted = text.lower()
        if not wanted:
            return self._names
        keys = (self._keys[place] for place in self._haystack.places(wanted))
        return list(dict.fromkeys(key[:3] for key in keys if wanted in key[1].lower()))

    @cached_property
    def _haystack(self) -> Haystack:
        return Haystack.of(self._texts)

    def count(self, kind: int, name: str, pattern: int) -> int:
        """Return how many rules are about a name, or a prefix."""
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
                rules = self.count(kind, name, pattern)
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


def _stepped(values: Iterable[_V], pause: Pause) -> Iterable[_V]:
    return values if pause is no_pause else _paused(values, pause)


def _paused(values: Iterable[_V], pause: Pause) -> Iterator[_V]:
    for number, value in enumerate(values):
        if number % _STEP == 0:
            pause()
        yield value


def _sorted(keys: Collection[Key], pause: Pause) -> list[Key]:
    """Return keys in order. To sort all of them at once would let nobody else run for a long time."""
    if pause is no_pause:
        return sorted(keys)
    given = iter(keys)
    parts = []
    while part := sorted(islice(given, _SORTED)):
        pause()
        parts.append(part)
    return list(_paused(merge(*parts), pause))


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


def _text(key: Key) -> str:
    return f"{key[3]}\n{key[1]}\n{key[4]}".lower()


def _in_order(counts: Mapping[_K, int]) -> dict[_K, int]:
    return {each: counts[each] for each in sorted(counts) if counts[each]}


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
    """Return what a rule is on for people: a prefix with its star, and another name with a star in JSON quotes.

    LITERAL `*`, which is every name, is as it is.
    """
    if pattern_type == PatternType.PREFIXED:
        return name_text(name, PatternType.PREFIXED)
    return json.dumps(name, ensure_ascii=False) if WILDCARD in name and name != WILDCARD else name


def _cut(name: str, start: int, separators: str) -> int:
    """Return where the first part of a name ends that begins at `start`: behind the separator that ends it."""
    found = [place for each in separators if (place := name.find(each, start)) >= 0]
    return min(found) + 1 if found else len(name)
