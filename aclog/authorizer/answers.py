"""What ACLs say about requests, remembered while one image is in force."""

from typing import Final, TypeAlias

from attrs import Factory, define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from aclog.authorizer.index.masks import ALL_OPERATIONS

Masks: TypeAlias = dict[str, dict[str, dict[int, dict[str, int]]]]
"""By principal, host, resource type and name: the mask of all ACLs that cover the name and match the subject, so one
entry answers for all operations. Nested dicts are faster than one dict keyed by a tuple, as none is built."""

LIMIT: Final = 1 << 17
"""The size of a generation. A mask counts as one, about 0.2 kB with its name, and a first mask of a client on a type as
`NEW_CLIENT`: two generations hold 52 MB at most, if names are not longer than 100 characters."""
NEW_CLIENT: Final = 4
"""What the dicts of one more client take, in masks."""

PAYS: Final = 3
"""Remembering pays if each mask is asked for so many times more: to remember it takes as long as these save."""
FIRST_LOOK: Final = 1 << 14
"""After so many masks it is looked at for the first time whether it does: fewer are remembered at once."""
SAMPLE: Final = 64
"""When it does not, one name in so many is remembered nevertheless, a power of two, to see when it does."""

_NO_HOSTS: Final[dict[str, dict[int, dict[str, int]]]] = {}
_NO_TYPES: Final[dict[int, dict[str, int]]] = {}
_NO_NAMES: Final[dict[str, int]] = {}


@define(eq=False)
class Answers:
    """Masks of one image, in two generations (see aclog.authorizer.index.generations).

    With more requests in rotation than it can hold, to remember them costs more than it saves. So a generation that did
    not pay is dropped, and from then on only a sample of the names is looked up and remembered, in generations that are
    smaller to the same degree: what pays for the sample would pay for all. As soon as it does, all are remembered.

    Threads need no lock, for the reasons given there. The counters may miss what two threads count at the same moment:
    a generation is then larger by as much.
    """

    _image: AclsImage
    _allow_everyone: bool
    """With `allow.everyone.if.no.acl.found`, a name that no ACL covers has a mask that allows every operation."""
    _index: AclIndex = field(init=False, default=Factory(lambda self: self._image.index, takes_self=True))
    _documented: bool = field(init=False, default=Factory(lambda self: self._image.documented, takes_self=True))
    _young: Masks = field(factory=dict, init=False)
    _old: Masks = field(factory=dict, init=False)
    _size: int = field(default=0, init=False)
    """Of the young generation."""
    _hits: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)
    """How often the young generation was of use, and how many masks were computed for it."""
    _skip: int = field(default=0, init=False)
    """In the sample are names whose hash has none of these bits; 0: all names."""
    _is_new: bool = field(default=True, init=False)
    """Whether nobody has looked yet whether remembering pays."""

    def mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return AclsImage.mask, and raise as it does."""
        # The hot path: dicts are indexed and misses caught, since a try that does not raise is free. Only the last
        # look-up often fails: a new name of a known client.
        if self._skip:
            if hash(name) & self._skip and not self._image.in_ranges:
                # Inlined AclsImage.computed_mask: what is not remembered should take no longer for it.
                index = self._index
                subject = index.base.memo.subjects.young.get((principal, host))
                if subject is not None:
                    return index.mask(subject, resource_type, name, self._documented)
            return self._sampled_mask(principal, host, resource_type, name)
        try:
            mask = self._young[principal][host][resource_type].get(name)
        except KeyError:
            mask = None
        if mask is None:
            return self._older_mask(principal, host, resource_type, name)
        self._hits += 1
        return mask

    def _sampled_mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        if hash(name) & self._skip:
            return self._image.computed_mask(principal, host, resource_type, name)
        mask = self._young.get(principal, _NO_HOSTS).get(host, _NO_TYPES).get(resource_type, _NO_NAMES).get(name)
        if mask is None:
            mask = self._older_mask(principal, host, resource_type, name)
        else:
            self._hits += 1
        if self._hits + self._added >= LIMIT // SAMPLE:
            if self._hits >= PAYS * self._added:
                self._skip = 0
            self._hits = self._added = 0
        return mask

    def _older_mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return a mask that is not in the young generation, and remember it there."""
        mask = self._old.get(principal, _NO_HOSTS).get(host, _NO_TYPES).get(resource_type, _NO_NAMES).get(name)
        if mask is not None:
            self._hits += 1
        else:
            mask = self._image.computed_mask(principal, host, resource_type, name)
            if not mask and self._allow_everyone and not self._image.has_candidate(resource_type, name):
                mask = ALL_OPERATIONS
            if len(name) > LONGEST_REMEMBERED:
                return mask
            self._added += 1
        try:
            names = self._young[principal][host][resource_type]
        except KeyError:
            types = self._young.setdefault(principal, {}).setdefault(host, {})
            names = types.setdefault(resource_type, {})
            self._size += NEW_CLIENT
        names[name] = mask
        self._size += 1
        if self._is_new and self._added >= FIRST_LOOK:
            self._look()
        elif self._size >= (LIMIT // SAMPLE if self._skip else LIMIT):
            # New dicts instead of clear(): another thread may be reading the old ones.
            self._old, self._young, self._size = self._young, {}, 0
            if not self._skip:
                self._look()
        return mask

    def _look(self) -> None:
        """Look whether remembering all names has paid since the last time; if not, remember a sample of them."""
        if self._hits < PAYS * self._added:
            self._old, self._young, self._size, self._skip = {}, {}, 0, SAMPLE - 1
        self._hits = self._added = 0
        self._is_new = False
