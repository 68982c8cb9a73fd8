"""The rules of a state in order, and indexes of their texts, for lists, searches and completions."""

import json
import sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge, nsmallest
from itertools import chain, islice
from typing import TypeAlias, TypeVar, overload
from uuid import UUID

import numpy as np
from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import name_text
from aclog.console.shared import Cache
from aclog.metalog.columns import Int64s

# A text search over many texts at once: one pass over a joined text, fast where few of them match.


_END = "\n\n"
"""The separator of two texts."""
_FEW = 3
"""Up to one match for so many texts, matches are looked up one by one; otherwise the texts are scanned."""


@frozen(eq=False)
class Haystack:
    """Texts in lower case, by index."""

    _texts: Sequence[str]
    _joined: str
    _starts: Int64s
    """The start of each text in the joined one, in characters."""

    @staticmethod
    def of(texts: Sequence[str]) -> "Haystack":
        """Return the haystack of texts in lower case."""
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + len(_END)
        return Haystack(texts, _END.join(texts), np.cumsum(sizes) - sizes)

    def places(self, needle: str) -> list[int]:
        """Return the indexes, in order, of the texts that contain a text, given in lower case."""
        if _END[0] in needle or not needle or self._joined.count(needle) * _FEW > len(self._texts):
            return [place for place, text in enumerate(self._texts) if needle in text]
        positions, at, size, find = list[int](), 0, len(needle), self._joined.find
        while (at := find(needle, at)) >= 0:
            positions.append(at)
            at += size  # matches that overlap are in one text: no more are found than were counted
        places: list[int] = np.unique(
            np.searchsorted(self._starts, np.array(positions, np.int64), "right") - 1
        ).tolist()
        return places


# The rules of a state in order, with a text index: kept beside the image, and carried over to the next state.


_MOST_CHANGES = 5_000
"""With more changes, a listing is made anew."""
_MOST_APART = 2_000
"""With more rules that came or went, they are joined with the others: a dictionary of all is not copied each time."""
_STEP, _SORTED = 100, 2_000
"""Rules between two pauses; and that are sorted at once."""

Key: TypeAlias = tuple[int, str, int, str, str, int, int]
NameKey: TypeAlias = tuple[int, str, int]
_K = TypeVar("_K", int, str)
_V = TypeVar("_V")
_TYPE, _NAME, _PATTERN, _PRINCIPAL, _HOST, _OPERATION, _PERMISSION = range(7)


@frozen(kw_only=True)
class Branch:
    """A prefix: how many rules and names are below it."""

    text: str
    rules: int
    names: int
    is_name: bool
    """Whether it is itself a name, or a prefix, that rules are about."""
    pattern_type: int | None = None
    """The pattern type, if it is a name and the only one with this prefix."""


@frozen(kw_only=True)
class Criteria:
    """A filter of rules; texts match anywhere, in any case."""

    anything: str = ""
    """Words that a rule has, all of them, in any order."""
    principal: str = ""
    resource: str = ""
    host: str = ""
    resource_type: int | None = None
    pattern_type: int | None = None
    operation: int | None = None
    permission: int | None = None

    def texts(self) -> dict[int, str]:
        """Return the texts of the filter in lower case, by their index in a key; none for `anything`."""
        fields = {_PRINCIPAL: self.principal, _NAME: self.resource, _HOST: self.host}
        return {place: text.lower() for place, text in fields.items() if text}

    def of(self, keys: Sequence[Key]) -> Sequence[Key]:
        """Return the keys of the matching rules, ignoring `anything`."""
        codes = {_TYPE: self.resource_type, _PATTERN: self.pattern_type, _OPERATION: self.operation}
        for place, code in {**codes, _PERMISSION: self.permission}.items():
            if code is not None:
                keys = [key for key in keys if key[place] == code]
        for place, text in self.texts().items():
            keys = [key for key in keys if text in str(key[place]).lower()]
        return keys


@frozen(eq=False)
class FoundRules(Sequence[StandardAclWithId]):
    """The matching rules, in order; each is looked up when it is shown, as a page shows only a few."""

    _keys: Sequence[Key]
    _rule: Callable[[Key], StandardAclWithId]

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> StandardAclWithId: ...
    @overload
    def __getitem__(self, place: slice) -> list[StandardAclWithId]: ...
    def __getitem__(self, place: int | slice) -> StandardAclWithId | list[StandardAclWithId]:
        if isinstance(place, slice):
            return [self._rule(key) for key in self._keys[place]]
        return self._rule(self._keys[place])


@define(eq=False, slots=False)
class Listing:
    """Rules by resource type, name, pattern, principal, host, operation and permission. Immutable by convention."""

    acls: AclsImage
    _keys: list[Key] = field(factory=list, init=False, repr=False)
    _names: list[NameKey] = field(factory=list, init=False, repr=False)
    """Type, name and pattern type of the resources in rules, each once, in order."""
    _rules: Mapping[Key, StandardAclWithId] = field(factory=dict, init=False, repr=False)
    """The rules of this listing or of an earlier one, with which it shares them."""
    _later: dict[Key, StandardAclWithId | None] = field(factory=dict, init=False, repr=False)
    """The rules that came or went since; None: it went."""
    _has_ids: bool = field(default=True, init=False, repr=False)
    """Whether all rules have ids."""
    principals: dict[str, int] = field(factory=dict, init=False, repr=False)
    """The principals by name, in order, and how many rules each has."""
    types: dict[int, int] = field(factory=dict, init=False, repr=False)
    """The resource types that rules are about, in order, and how many are."""
    _names_index: "NamesIndex | None" = field(default=None, init=False, repr=False)
    """Made on first use, and carried over to later listings."""
    _rules_index: "RulesIndex | None" = field(default=None, init=False, repr=False)
    """As the index of names."""

    @classmethod
    def of(cls, acls: AclsImage, pause: Pause = no_pause) -> "Listing":
        """Return the listing of some rules; `pause` is called again and again."""
        listing = cls(acls)
        rules = listing._rules = {key_of(rule.acl): rule for rule in _stepped(acls, pause)}
        listing._has_ids = all(rule.id is not None for rule in _stepped(rules.values(), pause))
        listing._keys = _sorted(rules, pause)
        listing._names = list(dict.fromkeys(key[:3] for key in _stepped(listing._keys, pause)))
        listing.principals = _in_order(Counter(key[3] for key in _stepped(listing._keys, pause)))
        listing.types = _in_order(Counter(key[0] for key in _stepped(listing._keys, pause)))
        return listing

    def followed_by(self, acls: AclsImage, pause: Pause = no_pause) -> "Listing":
        """Return the listing of a later state; rules that both have are not read again."""
        if acls is self.acls:
            return self
        if not self._has_ids:
            return Listing.of(acls, pause)
        changed = acls.changed_ids(self.acls)
        if changed is None or sum(map(len, changed)) > _MOST_CHANGES:
            return Listing.of(acls, pause)
        removed, come = changed
        later = self._copy(acls)
        removed_keys = [key_of(acl) for acl in map(self.acls.get, map(_uuid, removed)) if acl is not None]
        for key in removed_keys:
            later._remove(key)
        added = [(key_of(acl), id_, acl) for id_ in map(_uuid, come) if (acl := acls.get(id_)) is not None]
        for key, id_, acl in added:
            later._add(key, StandardAclWithId(id=id_, acl=acl))
        touched = [*(key for key, _, _ in added), *removed_keys]
        if any((key[3] in self.principals) is not bool(later.principals[key[3]]) for key in touched):
            later.principals = _in_order(later.principals)
        later.types = _in_order(later.types)
        if len(later._later) > _MOST_APART:
            later._rules, later._later = {key: later.rule(key) for key in later._keys}, {}
        if self._names_index is not None:
            later._names_index = self._names_index.followed_by(later, touched)
        if self._rules_index is not None:
            later._rules_index = self._rules_index.followed_by(later, touched)
        return later

    def _copy(self, acls: AclsImage) -> "Listing":
        """Return a copy of the listing, to be updated to a later state before it is published."""
        copy = Listing(acls)
        copy._keys, copy._names = list(self._keys), list(self._names)
        copy._rules, copy._later = self._rules, dict(self._later)
        copy.principals, copy.types = dict(self.principals), dict(self.types)
        return copy

    def _remove(self, key: Key) -> None:
        del self._keys[bisect_left(self._keys, key)]
        self._later[key] = None
        if not self.count(*key[:3]):
            del self._names[bisect_left(self._names, key[:3])]
        self.principals[key[3]] -= 1
        self.types[key[0]] -= 1

    def _add(self, key: Key, rule: StandardAclWithId) -> None:
        if not self.count(*key[:3]):
            insort(self._names, key[:3])
        insort(self._keys, key)
        self._later[key] = rule
        self.principals[key[3]] = self.principals.get(key[3], 0) + 1
        self.types[key[0]] = self.types.get(key[0], 0) + 1

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[StandardAclWithId]:
        return map(self.rule, self._keys)

    def find(self, criteria: Criteria) -> FoundRules:
        """Return the matching rules, in order."""
        words = criteria.anything.lower().split()
        longest = max((*words, *criteria.texts().values()), key=len, default="")
        if not longest:
            return FoundRules(criteria.of(self._keys), self.rule)
        # Every text of a rule is in its line of the haystack, which finds in a fraction of the time that keys take.
        keys = self.rules_index.find(longest)
        others = [word for word in words if word != longest]
        if others:
            keys = [key for key in keys for text in (_text(key),) if all(word in text for word in others)]
        return FoundRules(criteria.of(keys), self.rule)

    def count_names(self, resource_type: int, prefix: str = "") -> int:
        """Return how many names of a type begin so; a name and a prefix that are spelled alike are two."""
        low, high = span(self._names, resource_type, prefix)
        return high - low

    def found_names(self, text: str) -> Sequence[NameKey]:
        """Return the names with a text in them, in any case, in order."""
        needle = text.lower()
        if not needle:
            return self._names
        return list(dict.fromkeys(key[:3] for key in self.rules_index.find(needle) if needle in key[1].lower()))

    @property
    def names_index(self) -> "NamesIndex":
        """Return the index of principals and names, for completion."""
        index = self._names_index
        if index is None:
            index = self._names_index = NamesIndex.of(self)
        return index

    def has_short_names_index(self) -> bool:
        """Return whether the index of principals and names is made already, and takes milliseconds to search."""
        return self._names_index is not None and len(self._names_index) <= _SHORT

    @property
    def rules_index(self) -> "RulesIndex":
        """Return the index of the texts of rules."""
        index = self._rules_index
        if index is None:
            keys = list(self._keys)
            index = self._rules_index = RulesIndex(keys, Haystack.of([_text(key) for key in keys]))
        return index

    def has_rule(self, key: Key) -> bool:
        """Return whether the rule of a key is there."""
        return (self._later[key] is not None) if key in self._later else key in self._rules

    def has(self, entry: "Entry") -> bool:
        """Return whether rules have a principal, or a name."""
        return entry in self.principals if isinstance(entry, str) else bool(self.count(*entry))

    def rule(self, key: Key) -> StandardAclWithId:
        """Return the rule of a key."""
        rule = self._later.get(key)
        return self._rules[key] if rule is None else rule

    def on_type(self, resource_type: int) -> Sequence[Key]:
        """Return the keys of the rules on a type."""
        low, high = span(self._keys, resource_type, "")
        return self._keys[low:high]

    def count(self, kind: int, name: str, pattern: int) -> int:
        """Return how many rules are about a name, or a prefix."""
        keys = self._keys
        return bisect_left(keys, (kind, name, pattern + 1)) - bisect_left(keys, (kind, name, pattern))

    def sharing(self, resource_type: int, prefix: str) -> Counter[str]:
        """Return the principals with rules on names of a type that begin so, and how many rules each has."""
        low, high = span(self._keys, resource_type, prefix)
        return Counter(key[3] for key in self._keys[low:high])

    def branches(self, resource_type: int, prefix: str, separators: str) -> list[Branch]:
        """Return the continuations of a prefix up to the next separator; a single continuation is followed further."""
        while True:
            branches = self._split(resource_type, prefix, separators)
            if len(branches) == 1 and not branches[0].is_name and branches[0].text != prefix:
                prefix = branches[0].text
                continue
            return branches

    def _split(self, resource_type: int, prefix: str, separators: str) -> list[Branch]:
        names, keys = self._names, self._keys
        place, high = span(names, resource_type, prefix)
        branches = []
        while place < high:
            kind, name, pattern = names[place]
            if name == prefix:  # and below it nothing: a name and a prefix that are spelled alike are two ends
                rules = self.count(kind, name, pattern)
                branches.append(Branch(text=name, rules=rules, names=1, is_name=True, pattern_type=pattern))
                place += 1
                continue
            text = name[: _cut(name, len(prefix), separators)]
            is_name = text == name
            is_end = is_name and text[-1] not in separators
            first, last = span(names, resource_type, text, is_whole=is_end)
            low, up = span(keys, resource_type, text, is_whole=is_end)
            alone = pattern if is_name and last - first == 1 else None
            branches.append(Branch(text=text, rules=up - low, names=last - first, is_name=is_name, pattern_type=alone))
            place = last
        return branches


_MOST_LATER = 10_000
"""With more entries since it was made, an index is made anew."""
_SHORT = 200_000
"""Entries of an index that is searched in milliseconds."""
_TEXTS = 16
"""Texts whose matches are kept."""
SINGLY = 500
"""Up to so many changes are made one by one in what is in order."""


# Rules by a part of their texts. The texts of all rules are joined once, not again for each state.


@frozen(eq=False)
class RulesIndex:
    """The texts of the rules of a listing, and the rules that came or went since. Immutable."""

    _keys: Sequence[Key]
    _haystack: Haystack
    """The text of each key."""
    _later: Mapping[Key, tuple[str, bool]] = field(factory=dict)
    """The rules that came or went: the text of each, and whether it is there."""
    _matches: Cache[list[Key]] = field(factory=lambda: Cache(_TEXTS))
    """The first keys with a text, by text: open pages look for the same texts in each state."""

    def followed_by(self, listing: Listing, touched: Iterable[Key]) -> "RulesIndex | None":
        """Return the index of a later listing, whose rules with these keys came or went; None: to be made anew."""
        later = {**self._later, **{key: (_text(key), listing.has_rule(key)) for key in touched}}
        return evolve(self, later=later) if len(later) <= _MOST_LATER else None

    def find(self, needle: str) -> list[Key]:
        """Return the keys of the rules with a text in them, given in lower case, in order."""
        keys = self._matches.get(needle, lambda: self._matching(needle))
        changed = [(key, is_there) for key, (text, is_there) in self._later.items() if needle in text]
        if not changed:
            return keys
        if len(changed) > SINGLY:
            removed = {key for key, _ in changed}
            return sorted(
                chain((key for key in keys if key not in removed), (key for key, is_there in changed if is_there))
            )
        keys = list(keys)  # thousands, of which a few are other ones in this state: each costs a search in them
        for key, is_there in changed:
            place = bisect_left(keys, key)
            has_it = place < len(keys) and keys[place] == key
            if is_there and not has_it:
                keys.insert(place, key)
            elif has_it and not is_there:
                del keys[place]
        return keys

    def _matching(self, needle: str) -> list[Key]:
        return [self._keys[place] for place in self._haystack.places(needle)]


# Principals and names by a part of them, for completion at each key that is typed.


Entry: TypeAlias = str | NameKey
"""A principal, or the type, name and pattern type of a resource."""


@frozen(eq=False)
class NamesIndex:
    """The principals and names of rules: ordered when it was made, and what came or went since. Immutable."""

    _entries: Sequence[Entry]
    """The shortest first, so that the first matches are the ones to show."""
    _joined: str
    """Their texts in lower case, each after a separator."""
    _starts: Int64s
    _beginnings: Sequence[str]
    """The texts, and those of principals without their type, in order."""
    _begun: Int64s
    """The place of the entry of each."""
    _come: Mapping[Entry, str] = field(factory=dict)
    """Entries that came since, and their texts in lower case: the shortest first, as thousands may match."""
    _gone: Collection[Entry] = frozenset()
    """Entries that went since."""

    @classmethod
    def of(cls, listing: Listing) -> "NamesIndex":
        """Return the index of a listing."""
        every: list[Entry] = [*listing.principals, *listing._names]
        texts = sorted(((_entry_text(each), number) for number, each in enumerate(every)), key=_by_length)
        beginnings = [(text, place) for place, (text, _) in enumerate(texts)]
        beginnings += [
            (text.partition(":")[2], place)
            for place, (text, number) in enumerate(texts)
            if isinstance(every[number], str) and ":" in text
        ]
        beginnings.sort()
        sizes = np.fromiter((len(text) for text, _ in texts), np.int64, len(texts)) + len(_END)
        return cls(
            entries=[every[number] for _, number in texts],
            joined="".join(f"{_END}{text}" for text, _ in texts),
            starts=np.cumsum(sizes) - sizes,
            beginnings=[text for text, _ in beginnings],
            begun=np.fromiter((place for _, place in beginnings), np.int64, len(beginnings)),
        )

    def followed_by(self, listing: Listing, touched: Iterable[Key]) -> "NamesIndex":
        """Return the index of a later listing, whose rules with these keys came or went."""
        come, gone = dict(self._come), set(self._gone)
        entries: Iterable[Entry] = (entry for key in touched for entry in (key[3], key[:3]))
        for entry in dict.fromkeys(entries):
            if self._had(entry):
                (gone.discard if listing.has(entry) else gone.add)(entry)
            elif listing.has(entry):
                come[entry] = _entry_text(entry)
            else:
                come.pop(entry, None)
        if len(come) + len(gone) > _MOST_LATER:
            return NamesIndex.of(listing)
        return evolve(self, come=dict(sorted(come.items(), key=_by_text)), gone=gone)

    def __len__(self) -> int:
        return len(self._entries) + len(self._come)

    def find(self, text: str, most: int) -> list[Entry]:
        """Return at most so many entries with a text in them, in any case: those that begin with it come first.

        Of each kind the shortest come first.
        """
        needle = text.lower()
        matches: dict[Entry, bool] = {}
        for place in chain(self._beginning(needle, most + len(self._gone)), self._containing(needle)):
            entry = self._entries[place]
            if entry not in self._gone:
                matches.setdefault(entry, True)
                if len(matches) == most:
                    break
        begin: list[Entry] = []
        contain: list[Entry] = []
        for entry, lower in self._come.items():
            if needle in lower:
                (begin if _begins(entry, lower, needle) else contain).append(entry)
                if len(begin) == most:  # the others are longer
                    break
        if not begin and not contain:
            return list(matches)

        def order(entry: Entry) -> tuple[bool, int, str]:
            lower = _entry_text(entry)
            return not _begins(entry, lower, needle), len(lower), lower

        return nsmallest(most, [*matches, *begin, *contain[:most]], key=order)

    def _beginning(self, needle: str, most: int) -> list[int]:
        """Return the first places of entries that begin with a text, in order."""
        after = _after(needle)
        low = bisect_left(self._beginnings, needle)
        high = len(self._beginnings) if after is None else bisect_left(self._beginnings, after)
        places = self._begun[low:high]
        first: list[int] = np.sort(np.partition(places, most)[:most] if most < len(places) else places).tolist()
        return first

    def _had(self, entry: Entry) -> bool:
        """Return whether the entry was there when the index was made."""
        text = _entry_text(entry)
        low, high = bisect_left(self._beginnings, text), bisect_right(self._beginnings, text)
        return any(self._entries[place] == entry for place in self._begun[low:high])

    def _containing(self, needle: str) -> Iterator[int]:
        """Yield the places of entries with a text in them, in order."""
        if _END[0] in needle:  # a name may have line ends
            yield from (place for place, each in enumerate(self._entries) if needle in _entry_text(each))
            return
        at = -1
        while (at := self._joined.find(needle, at + 1)) >= 0:
            place = int(np.searchsorted(self._starts, at, "right")) - 1
            yield place
            at = int(self._starts[place + 1]) if place + 1 < len(self._starts) else len(self._joined)


def _by_text(item: tuple[Entry, str]) -> tuple[int, str]:
    return len(item[1]), item[1]


def _begins(entry: Entry, lower: str, needle: str) -> bool:
    """Return whether an entry begins with a text, a principal also without its type."""
    return lower.startswith(needle) or (isinstance(entry, str) and lower.partition(":")[2].startswith(needle))


def _by_length(text: tuple[str, int]) -> tuple[int, str, int]:
    return len(text[0]), *text


def _entry_text(entry: Entry) -> str:
    return (entry if isinstance(entry, str) else entry[1]).lower()


def _uuid(number: int) -> UUID:
    return UUID(int=number)


def _stepped(values: Iterable[_V], pause: Pause) -> Iterable[_V]:
    return values if pause is no_pause else _paused(values, pause)


def _paused(values: Iterable[_V], pause: Pause) -> Iterator[_V]:
    for number, value in enumerate(values):
        if number % _STEP == 0:
            pause()
        yield value


def _sorted(keys: Collection[Key], pause: Pause) -> list[Key]:
    """Return keys in order. Sorting all of them at once would block other threads for a long time."""
    if pause is no_pause:
        return sorted(keys)
    remaining = iter(keys)
    parts = []
    while part := sorted(islice(remaining, _SORTED)):
        pause()
        parts.append(part)
    return list(_paused(merge(*parts), pause))


def span(
    rows: Sequence[tuple[object, ...]], resource_type: int, text: str, *, is_whole: bool = False
) -> tuple[int, int]:
    """Return where rows, sorted by type and name, begin and end whose name is a text, or begins with it."""
    low = bisect_left(rows, (resource_type, text))
    after = f"{text}\0" if is_whole else _after(text)
    return low, bisect_left(rows, (resource_type + 1,) if after is None else (resource_type, after))


def _after(prefix: str) -> str | None:
    """Return the first text behind all that begin so; None if nothing is behind them."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    return f"{stem[:-1]}{chr(ord(stem[-1]) + 1)}" if stem else None


def _text(key: Key) -> str:
    return f"{key[3]}\n{key[1]}\n{key[4]}".lower()


def _in_order(counts: Mapping[_K, int]) -> dict[_K, int]:
    return {each: counts[each] for each in sorted(counts) if counts[each]}


def key_of(acl: StandardAcl) -> Key:
    """Return the sort key of a rule: all of its fields."""
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
    """Return the resource name of a rule as text: a prefix with its star, and another name with a star in JSON quotes.

    LITERAL `*`, which is every name, is as it is.
    """
    if pattern_type == PatternType.PREFIXED:
        return name_text(name, PatternType.PREFIXED)
    return json.dumps(name, ensure_ascii=False) if WILDCARD in name and name != WILDCARD else name


def _cut(name: str, start: int, separators: str) -> int:
    """Return where the first part of a name ends that begins at `start`: behind the separator that ends it."""
    ends = [place for each in separators if (place := name.find(each, start)) >= 0]
    return min(ends) + 1 if ends else len(name)
