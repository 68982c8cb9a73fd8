"""The index behind an AclsImage: a base and its overlay, and the mask that decides a request."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from attrs import define, field

from aclog.authorizer.acl import WILDCARD, PatternType
from aclog.authorizer.index.base import Base, Subject
from aclog.authorizer.index.core import Core
from aclog.authorizer.index.keys import resource_name
from aclog.authorizer.index.masks import known_type
from aclog.authorizer.index.overlay import Overlay, TouchedResource


class Resource(NamedTuple):
    """A resource pattern: its number in the base (or -1), and its state in the overlay if a change touched it."""

    name: str
    literal: bool
    number: int
    touched: TouchedResource | None


class Levels(NamedTuple):
    """The resource patterns with ACLs that cover a name, grouped by their names."""

    named: list[list[Resource]]
    """The name itself and its prefixes, longest first."""
    wildcard: list[Resource]
    """LITERAL `*`, unless it is the name itself."""
    empty: list[Resource]
    """The empty name."""

    @property
    def only(self) -> list[Resource] | None:
        """The only level that is not empty; None if there are several: then it matters in which order Kafka scans."""
        several = [*self.named]
        if self.wildcard:
            several.append(self.wildcard)
        if self.empty:
            several.append(self.empty)
        return several[0] if len(several) == 1 else None


@define(eq=False)
class AclIndex:
    """A base and what changed since. Immutable by convention, as AclsImage is."""

    base: Base
    overlay: Overlay = field(factory=Overlay)
    memo: dict[str, Any] = field(factory=dict)
    """Results that are seldom needed, kept once computed. Unlike the base's memo it dies with this version."""
    core: Core | None = field(init=False)
    """The same index in the native core, if there is one."""

    def __attrs_post_init__(self) -> None:
        self.core = self.overlay.core or self.base.core

    @property
    def has_slashes(self) -> bool:
        """Whether some ACL's host may have a slash, which every CIDR range has."""
        return len(self.base.range_pairs) > 0 or len(self.overlay.ranges) > 0

    @property
    def has_colonless(self) -> bool:
        """Whether some ACL's principal has no colon: a decision that reaches such an ACL is an error."""
        return self.overlay.colonless > 0 or len(self.base.colonless_resources) > 0

    def mask(self, subject: Subject, resource_type: int, name: str, documented: bool) -> int:
        """Return the mask of all ACLs that cover a name and match the subject (denied << 16 | allowed).

        A decision is this mask shifted by the operation: any DENY wins at any level, so the order in which Kafka visits
        the ACLs does not matter here. `documented`: LITERAL `*` covers names that begin with `*`, too.
        """
        # Hot path: dicts are indexed and misses caught, since a try that does not raise is free, and the base is read
        # without a call where its memo has the answer.
        base = self.base
        try:
            low, high, node, hidden = base.memo.lookups[resource_type][name]
        except KeyError:
            resource_type = known_type(resource_type)
            low, high, node, hidden = base.lookup(resource_type, name)
        if self.overlay.changes:
            return self._changed_mask(subject, resource_type, name, wildcard=documented or not hidden)
        try:
            mask = subject.prefix_masks[node]
        except KeyError:
            mask = base.chain_mask(subject, node)
        if not hidden or documented:
            try:
                mask |= subject.wildcard_masks[resource_type]
            except KeyError:
                mask |= base.wildcard_mask(subject, resource_type)
        if low != high:
            mask |= base.cells_mask(low, high, subject.pairs)
        return mask

    def _changed_mask(self, subject: Subject, resource_type: int, name: str, *, wildcard: bool) -> int:
        """Return the same for an index with an overlay; `wildcard`: LITERAL `*` covers the name."""
        mask = self.literal_mask(subject, resource_type, name) | self.prefix_mask(subject, resource_type, name)
        if not wildcard:
            return mask
        touched = self.overlay.wildcards[resource_type]
        if touched is None:
            return mask | self.base.wildcard_mask(subject, resource_type)
        return mask | self._resource_mask(
            *self.base.cells(self.base.wildcard_resources[resource_type]), touched, subject
        )

    def literal_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        """Return the mask of the LITERAL pattern of exactly this name."""
        low, high, _, _ = self.base.lookup(resource_type, name)
        return self._resource_mask(low, high, self.overlay.touched[2 * resource_type + 1].get(name), subject)

    def prefix_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        """Return the mask of all prefixes of a name."""
        base, mask, whole = self.base, 0, len(name)
        get = self.overlay.touched[2 * resource_type].get
        for length in self.overlay.lengths[resource_type]:
            touched = get(name[:length]) if length <= whole else None
            if touched is None:
                continue
            if touched.shrunk:
                return self._shrunk_prefix_mask(subject, resource_type, name)
            # Only additions: what they say is or-ed to the base's chain, whose own cells need no second look (0, 0).
            mask |= self._resource_mask(0, 0, touched, subject)
        node = base.lookup(resource_type, name)[2]
        known = subject.prefix_masks.get(node)
        return mask | (base.chain_mask(subject, node) if known is None else known)

    def _shrunk_prefix_mask(self, subject: Subject, resource_type: int, name: str) -> int:
        # A removal cannot be taken out of the memoised mask of a whole chain: another prefix may set the same bit.
        mask = 0
        for resource in self.prefixes(resource_type, name):
            mask |= self._resource_mask(*self.base.cells(resource.number), resource.touched, subject)
        return mask

    def _resource_mask(self, low: int, high: int, touched: TouchedResource | None, subject: Subject) -> int:
        """Return the mask of one pattern, with the base's cells [low, high) and the overlay's."""
        base = self.base
        if touched is None:
            return base.cells_mask(low, high, subject.pairs)
        mask = 0
        shrunk = touched.shrunk
        get = touched.cells.get
        for key in subject.keys:
            cell = get(key)
            if cell is not None:
                mask |= cell.mask
            elif shrunk and low < high:
                # After a removal each pair is taken from one side only: the overlay's cell replaces the base's.
                mask |= base.cells_mask(low, high, (base.pair(*key),))
        return mask if shrunk else mask | base.cells_mask(low, high, subject.pairs)

    def _touched_prefixes(self, resource_type: int, name: str) -> list[Resource]:
        """Return the prefixes of a name that the overlay has, longest first."""
        found, by_name = [], self.overlay.touched[2 * resource_type]
        for length in self.overlay.lengths[resource_type]:
            if length <= len(name):
                touched = by_name.get(name[:length])
                if touched is not None:
                    found.append(Resource(name[:length], literal=False, number=touched.number, touched=touched))
        return found

    def prefixes(self, resource_type: int, name: str) -> Iterator[Resource]:
        """Yield all prefixes of a name, longest first."""
        prefixes = self.base.prefixes
        # A merge of two sequences by descending length; a prefix that both have comes with the overlay's state.
        touched = {resource.name: resource for resource in self._touched_prefixes(resource_type, name)}
        for node in prefixes.chain(resource_type, name.encode("utf-8", "surrogatepass")):
            text = prefixes.name(node).decode()
            longer = [known for known in touched if len(known) > len(text)]
            for known in longer:
                yield touched.pop(known)
            yield touched.pop(text, Resource(text, literal=False, number=prefixes.resources[node], touched=None))
        yield from touched.values()

    def literal(self, resource_type: int, name: str) -> Resource:
        """Return the LITERAL pattern of exactly this name, whether it has ACLs or not."""
        number = self.base.resource(resource_type, name, literal=True)
        return Resource(
            name, literal=True, number=number, touched=self.overlay.resource(resource_type, name, literal=True)
        )

    def count(self, resource: Resource) -> int:
        """Return how many ACLs a pattern has."""
        if resource.touched is not None:
            return resource.touched.rules
        return len(self.base.rows(*self.base.cells(resource.number)))

    def named(self, resource_type: int, name: str) -> tuple[Resource, Resource]:
        """Return the two patterns of exactly this name, LITERAL first, whether they have ACLs or not."""
        number = self.base.resource(resource_type, name, literal=False)
        prefixed = Resource(
            name, literal=False, number=number, touched=self.overlay.resource(resource_type, name, literal=False)
        )
        return self.literal(resource_type, name), prefixed

    def levels(self, resource_type: int, name: str, *, documented: bool) -> Levels:
        """Return the patterns with ACLs that cover a name, whomever the ACLs are for."""
        by_name: dict[str, list[Resource]] = {name: [self.literal(resource_type, name)]}
        for resource in self.prefixes(resource_type, name):
            by_name.setdefault(resource.name, []).append(resource)
        levels = {text: [r for r in level if self.count(r)] for text, level in by_name.items()}
        empty = levels.pop("", [])
        wildcard = []
        if name != WILDCARD and (documented or name[:1] != WILDCARD):
            wildcard = [r for r in (self.literal(resource_type, WILDCARD),) if self.count(r)]
        return Levels([level for level in levels.values() if level], wildcard, empty)

    def resources(self) -> Iterator[tuple[int, Resource]]:
        """Yield every pattern with ACLs, with its type, in no particular order."""
        base, overlay = self.base, self.overlay
        seen = set()
        for number in range(len(base.resources)):
            key = base.resources.key(number)
            resource_key = key[0], resource_name(key), key[-1] == PatternType.LITERAL
            known = overlay.resource(*resource_key[:2], literal=resource_key[2]) if overlay.changes else None
            if known is not None:
                seen.add(resource_key)
            resource = Resource(resource_key[1], literal=resource_key[2], number=number, touched=known)
            if self.count(resource):
                yield key[0], resource
        for (kind, name, literal), known in overlay.resources():
            if known.rules and (kind, name, literal) not in seen:
                yield kind, Resource(name, literal=literal, number=-1, touched=known)
