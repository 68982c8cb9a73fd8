"""What ACLs say about requests, remembered while one image is in force."""

from typing import Final, TypeAlias

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from aclog.authorizer.index.masks import ALL_OPERATIONS

Masks: TypeAlias = dict[str, dict[str, dict[int, dict[str, int]]]]
"""By principal, host, resource type and name: the mask of all ACLs that cover the name and match the subject, so one
entry answers for all operations. Nested dicts are faster than one dict keyed by a tuple, as none is built."""

LIMIT: Final = 1 << 16
"""The size of a generation. A mask counts as one, about 0.2 kB with its name, and a first mask of a client on a type as
`NEW_CLIENT`: two generations hold 26 MB at most, if names are not longer than 100 characters."""
NEW_CLIENT: Final = 5
"""What the dicts of one more client take, in masks."""

SAMPLE: Final = 16
"""When remembering does not pay, one of so many masks is remembered nevertheless, to see when it does."""

_NO_HOSTS: Final[dict[str, dict[int, dict[str, int]]]] = {}
_NO_TYPES: Final[dict[int, dict[str, int]]] = {}
_NO_NAMES: Final[dict[str, int]] = {}


@define(eq=False)
class Answers:
    """Masks of one image, in two generations (see aclog.authorizer.index.generations).

    A generation that was asked less often than it was added to did not pay: as with more requests in rotation than it
    can hold. Then only a sample is remembered until a generation pays again. What is there already stays longer that
    way, and a request that is not remembered costs little more than without any memory.

    Threads need no lock, for the reasons given there. The counters may miss what two threads count at the same moment:
    a generation is then larger by as much.
    """

    _image: AclsImage
    _allow_everyone: bool
    """With `allow.everyone.if.no.acl.found`, a name that no ACL covers has a mask that allows every operation."""
    _young: Masks = field(factory=dict, init=False)
    _old: Masks = field(factory=dict, init=False)
    _size: int = field(default=0, init=False)
    """Of the young generation."""
    _hits: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)
    """How often the young generation was of use, and how many masks were computed for it."""
    _misses: int = field(default=0, init=False)
    _forgetful: bool = field(default=False, init=False)
    """Whether only a sample is remembered."""

    def mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return AclsImage.mask, and raise as it does."""
        # The hot path: dicts are indexed and misses caught, since a try that does not raise is free. Only the last
        # look-up often fails: a new name of a known client.
        try:
            mask = self._young[principal][host][resource_type].get(name)
        except KeyError:
            mask = None
        if mask is None:
            return self._older_mask(principal, host, resource_type, name)
        self._hits += 1
        return mask

    def _older_mask(self, principal: str, host: str, resource_type: int, name: str) -> int:
        hosts = self._old.get(principal, _NO_HOSTS)
        mask = hosts.get(host, _NO_TYPES).get(resource_type, _NO_NAMES).get(name)
        if mask is not None:
            self._hits += 1
        else:
            mask = self._image.mask(principal, host, resource_type, name)
            if not mask and self._allow_everyone and not self._image.has_candidate(resource_type, name):
                mask = ALL_OPERATIONS
            self._misses += 1
            if (self._forgetful and self._misses % SAMPLE) or len(name) > LONGEST_REMEMBERED:
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
        if self._size >= LIMIT:
            self._age()
        return mask

    def _age(self) -> None:
        self._forgetful = self._hits < self._added
        self._size = self._hits = self._added = 0
        # New dicts instead of clear(): another thread may be reading the old ones.
        self._old, self._young = self._young, {}
