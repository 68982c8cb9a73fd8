"""The rules of a state in order, and indexes of their texts, for lists, searches and completions."""

import json
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge, nsmallest
from itertools import accumulate, chain, islice
from typing import Any, Protocol, TypeAlias, TypeVar, overload
from uuid import UUID

import numpy as np
from attrs import evolve, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import name_text
from aclog.console.shared import Cache
from aclog.metalog.columns import Int64s
from aclog.metalog.persistent_map import Map
from aclog.metalog.values import define, frozen

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


# Values in order, carried over to the next state.


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


_T = TypeVar("_T", bound=_Comparable)

_BLOCK = 256
"""Values of a block when it is made; one of twice as many is split."""
_SINGLY = 5_000
"""Up to so many changes are made one by one."""


@define(eq=False, init=False)
class Ordered(Sequence[_T]):
    """Different values in order. Immutable: a change makes another one, which shares the blocks that are the same.

    A list of all values would be copied for each state, and the garbage collector would visit the values of each copy:
    at 100,000 rules that stops every thread for 20 ms, several times a second.
    """

    _blocks: Sequence[list[_T]]
    """None is empty."""
    _firsts: Sequence[_T]
    """The first value of each block."""
    _starts: Sequence[int]
    """The place of the first value of each block."""
    _size: int

    def __init__(self, values: Sequence[_T] = ()) -> None:
        """`values` are in order, each once."""
        self._set([list(values[place : place + _BLOCK]) for place in range(0, len(values), _BLOCK)])

    def _set(self, blocks: list[list[_T]]) -> None:
        self._blocks = blocks
        self._firsts = [block[0] for block in blocks]
        *self._starts, self._size = accumulate(map(len, blocks), initial=0)

    def changed(self, removed: Collection[_T], added: Collection[_T]) -> "Ordered[_T]":
        """Return these values without those that are removed, if they are there, and with those that are added."""
        if len(removed) + len(added) > _SINGLY:
            return Ordered(sorted((set(self) - set(removed)) | set(added)))
        blocks, firsts, own = list(self._blocks), list(self._firsts), set[int]()

        def block_of(value: _T) -> list[_T]:
            """Return the block of a value, to be changed."""
            number = max(bisect_right(firsts, value) - 1, 0)
            if id(blocks[number]) not in own:
                blocks[number] = list(blocks[number])
                own.add(id(blocks[number]))
            return blocks[number]

        for value in removed:
            block = block_of(value) if blocks else []
            place = bisect_left(block, value)
            if place < len(block) and block[place] == value:
                del block[place]
        for value in added:
            if not blocks:
                blocks, firsts = [[]], [value]
                own.add(id(blocks[0]))
            block = block_of(value)
            place = bisect_left(block, value)
            if place == len(block) or block[place] != value:
                block.insert(place, value)
        later = Ordered.__new__(Ordered)
        later._set([part for block in blocks for part in _parts(block)])
        return later

    def place(self, value: Any) -> int:
        """Return how many values are less than one."""
        number = bisect_right(self._firsts, value) - 1
        return self._starts[number] + bisect_left(self._blocks[number], value) if number >= 0 else 0

    def __contains__(self, value: object) -> bool:
        place = self.place(value)
        return place < self._size and self[place] == value

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[_T]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, place: int) -> _T: ...
    @overload
    def __getitem__(self, place: slice) -> list[_T]: ...
    def __getitem__(self, place: int | slice) -> _T | list[_T]:
        if isinstance(place, slice):
            low, high, step = place.indices(self._size)
            return list(self._from(low, high))[::step] if step > 0 else [self[each] for each in range(low, high, step)]
        place = range(self._size)[place]
        number = bisect_right(self._starts, place) - 1
        return self._blocks[number][place - self._starts[number]]

    def _from(self, low: int, high: int) -> Iterator[_T]:
        """Yield the values of some places."""
        number = max(bisect_right(self._starts, low) - 1, 0)
        while low < high:
            start = self._starts[number]
            part = self._blocks[number][low - start : high - start]
            yield from part
            low += len(part)
            number += 1


def _parts(block: list[_T]) -> Iterable[list[_T]]:
    """Return a block, split if it is large, and none if it is empty."""
    if len(block) < 2 * _BLOCK:
        return (block,) if block else ()
    return (block[place : place + _BLOCK] for place in range(0, len(block), _BLOCK))


# The rules of a state in order, with a text index: kept beside the image, and carried over to the next state.


_MOST_CHANGES = 5_000
"""With more changes, a listing is made anew."""
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
    _keys: Ordered[Key] = field(factory=Ordered, init=False, repr=False)
    _names: Ordered[NameKey] = field(factory=Ordered, init=False, repr=False)
    """Type, name and pattern type of the resources in rules, each once, in order."""
    _rules: Map[Key, StandardAclWithId] = field(factory=Map, init=False, repr=False)
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
        rules = {key_of(rule.acl): rule for rule in _stepped(acls, pause)}
        listing._rules = Map(rules)
        listing._has_ids = all(rule.id is not None for rule in _stepped(rules.values(), pause))
        keys = _sorted(rules, pause)
        listing._keys = Ordered(keys)
        listing._names = Ordered(list(dict.fromkeys(key[:3] for key in _stepped(keys, pause))))
        listing.principals = _in_order(Counter(key[3] for key in _stepped(keys, pause)))
        listing.types = _in_order(Counter(key[0] for key in _stepped(keys, pause)))
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
        gone, come = changed
        removed = [key_of(acl) for acl in map(self.acls.get, map(_uuid, gone)) if acl is not None]
        added = {key_of(acl): StandardAclWithId(id=id_, acl=acl) for id_, acl in _of_ids(acls, come)}
        later = Listing(acls)
        later._keys = self._keys.changed(removed, added)
        later._rules = self._rules.changed(added, [key for key in removed if key not in added])
        touched = list(dict.fromkeys((*added, *removed)))
        names = dict.fromkeys(key[:3] for key in touched)
        later._names = self._names.changed(
            [name for name in names if not later.count(*name)], [name for name in names if later.count(*name)]
        )
        later.principals, later.types = dict(self.principals), dict(self.types)
        for keys, step in ((removed, -1), (added, 1)):
            for key in keys:
                later.principals[key[3]] = later.principals.get(key[3], 0) + step
                later.types[key[0]] = later.types.get(key[0], 0) + step
        if any((key[3] in self.principals) is not bool(later.principals[key[3]]) for key in touched):
            later.principals = _in_order(later.principals)
        later.types = _in_order(later.types)
        if self._names_index is not None:
            later._names_index = self._names_index.followed_by(later, touched)
        if self._rules_index is not None:
            later._rules_index = self._rules_index.followed_by(later, touched)
        return later

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
        return key in self._rules

    def has(self, entry: "Entry") -> bool:
        """Return whether rules have a principal, or a name."""
        return entry in self.principals if isinstance(entry, str) else bool(self.count(*entry))

    def rule(self, key: Key) -> StandardAclWithId:
        """Return the rule of a key."""
        return self._rules[key]

    def on_type(self, resource_type: int) -> Sequence[Key]:
        """Return the keys of the rules on a type."""
        low, high = span(self._keys, resource_type, "")
        return self._keys[low:high]

    def count(self, kind: int, name: str, pattern: int) -> int:
        """Return how many rules are about a name, or a prefix."""
        return self._keys.place((kind, name, pattern + 1)) - self._keys.place((kind, name, pattern))

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
_FEW_CHANGES = 500
"""Up to so many changes are made one by one in a list of matches."""


# Rules by a part of their texts. The texts of all rules are joined once, not again for each state.


@frozen(eq=False)
class RulesIndex:
    """The texts of the rules of a listing, and the rules that came or went since. Immutable."""

    _keys: Sequence[Key]
    _haystack: Haystack
    """The text of each key."""
    _later: Map[Key, tuple[str, bool]] = field(factory=Map)
    """The rules that came or went: the text of each, and whether it is there."""
    _matches: Cache[list[Key]] = field(factory=lambda: Cache(_TEXTS))
    """The first keys with a text, by text: open pages look for the same texts in each state."""

    def followed_by(self, listing: Listing, touched: Iterable[Key]) -> "RulesIndex | None":
        """Return the index of a later listing, whose rules with these keys came or went; None: to be made anew."""
        later = self._later.changed({key: (_text(key), listing.has_rule(key)) for key in touched}, ())
        return evolve(self, later=later) if len(later) <= _MOST_LATER else None

    def find(self, needle: str) -> list[Key]:
        """Return the keys of the rules with a text in them, given in lower case, in order."""
        keys = self._matches.get(needle, lambda: self._matching(needle))
        changed = [(key, is_there) for key, (text, is_there) in self._later.items() if needle in text]
        if not changed:
            return keys
        if len(changed) > _FEW_CHANGES:
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
_Come: TypeAlias = tuple[int, str, tuple[Any, ...]]
"""The length of an entry's text in lower case, the text, and whether the entry is a name, with its parts."""


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
    _come: Ordered["_Come"] = field(factory=Ordered)
    """Entries that came since: the shortest first, as thousands may match."""
    _gone: frozenset[Entry] = frozenset()
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
        every: Iterable[Entry] = (entry for key in touched for entry in (key[3], key[:3]))
        entries = {entry: listing.has(entry) for entry in every}
        had = {entry for entry in entries if self._had(entry)}
        later = [(_come(entry), is_there) for entry, is_there in entries.items() if entry not in had]
        come = self._come.changed(
            [each for each, is_there in later if not is_there], [each for each, is_there in later if is_there]
        )
        is_gone = {entry for entry in had if not entries[entry]}
        gone = self._gone if had.isdisjoint(self._gone) and not is_gone else (self._gone - had) | is_gone
        if len(come) + len(gone) > _MOST_LATER:
            return NamesIndex.of(listing)
        return evolve(self, come=come, gone=gone)

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
        for item in self._come:
            at = item[1].find(needle)
            if at < 0:
                continue
            entry = _entry_of(item)
            if at == 0 or _begins(entry, item[1], needle):
                begin.append(entry)
                if len(begin) == most:  # the others are longer
                    break
            elif len(contain) < most:
                contain.append(entry)
        if not begin and not contain:
            return list(matches)

        def order(entry: Entry) -> tuple[bool, int, str]:
            lower = _entry_text(entry)
            return not _begins(entry, lower, needle), len(lower), lower

        return nsmallest(most, [*matches, *begin, *contain], key=order)

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
        while self._entries and (at := self._joined.find(needle, at + 1)) >= 0:
            place = int(np.searchsorted(self._starts, at, "right")) - 1
            yield place
            at = int(self._starts[place + 1]) if place + 1 < len(self._starts) else len(self._joined)


def _entry_of(item: _Come) -> Entry:
    is_name, *parts = item[2]
    return tuple(parts) if is_name else parts[0]


def _come(entry: Entry) -> _Come:
    text = _entry_text(entry)
    return len(text), text, (False, entry) if isinstance(entry, str) else (True, *entry)


def _begins(entry: Entry, lower: str, needle: str) -> bool:
    """Return whether an entry begins with a text, a principal also without its type."""
    return lower.startswith(needle) or (isinstance(entry, str) and lower.partition(":")[2].startswith(needle))


def _by_length(text: tuple[str, int]) -> tuple[int, str, int]:
    return len(text[0]), *text


def _entry_text(entry: Entry) -> str:
    return (entry if isinstance(entry, str) else entry[1]).lower()


def _uuid(number: int) -> UUID:
    return UUID(int=number)


def _of_ids(acls: AclsImage, numbers: Iterable[int]) -> Iterator[tuple[UUID, StandardAcl]]:
    """Yield the rules with some ids."""
    for id_ in map(_uuid, numbers):
        acl = acls.get(id_)
        if acl is not None:
            yield id_, acl


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


def span(rows: Ordered[Any], resource_type: int, text: str, *, is_whole: bool = False) -> tuple[int, int]:
    """Return where rows, in order of type and name, begin and end whose name is a text, or begins with it."""
    after = f"{text}\0" if is_whole else _after(text)
    end: tuple[object, ...] = (resource_type + 1,) if after is None else (resource_type, after)
    return rows.place((resource_type, text)), rows.place(end)


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
