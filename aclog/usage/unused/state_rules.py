"""The rules of a state by number: those of the base that are in force, then what the overlay added."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Self

import numpy as np
from attrs import frozen

from aclog.authorizer.acl import AclPermissionType, PatternType, ResourceType, StandardAclWithId, code_name
from aclog.authorizer.acl_records import rule_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.keys import resource_name, split_pair
from aclog.authorizer.index.masks import known_type
from aclog.metalog.vectors import Bools, Bytes, Int64s


@frozen(eq=False, kw_only=True)
class StateRules:
    """A million rules as numbers: an object is made of one that is asked for."""

    acls: AclsImage
    rows: Int64s
    """Of the base, ascending."""
    added: tuple[StandardAclWithId, ...]

    @classmethod
    def of(cls, acls: AclsImage) -> Self:
        """Number the rules of an image."""
        overlay = acls.index.overlay
        left = np.ones(len(acls.index.base), np.bool_)
        left[list(overlay.removed)] = False
        return cls(acls=acls, rows=np.flatnonzero(left), added=tuple(map(rule_of, overlay.added.values())))

    def __len__(self) -> int:
        """Return the number of rules."""
        return len(self.rows) + len(self.added)

    @property
    def _base(self) -> Base:
        return self.acls.index.base

    @property
    def has_ids(self) -> bool:
        """Whether the source has ids."""
        return self._base.has_ids or bool(self.added)

    @property
    def ids(self) -> Bytes:
        """The 16 bytes of each id, as rows; of a source with ids."""
        of_base = np.frombuffer(self._base.ids.ids, np.uint8).reshape(-1, 16)
        of_added = b"".join(rule.id.bytes for rule in self.added if rule.id is not None)
        return np.concatenate((of_base[self.rows], np.frombuffer(of_added, np.uint8).reshape(-1, 16)))

    @property
    def denies(self) -> Bools:
        """Which rules deny: as in Kafka, every permission but ALLOW does."""
        of_base = np.frombuffer(self._base.permissions, np.uint8)[self.rows]
        of_added = np.array([rule.acl.permission_type & 0xFF for rule in self.added], np.uint8)
        found: Bools = np.concatenate((of_base, of_added)) != int(AclPermissionType.ALLOW)
        return found

    @property
    def throwing(self) -> Bools:
        """Which rules have a principal without a colon: Kafka's authorizer throws when it visits one."""
        base = self._base
        on = (
            np.isin(self.patterns[: len(self.rows)], list(base.colonless_resources)) if base.colonless_resources else ()
        )
        asked = [*np.flatnonzero(on).tolist(), *range(len(self.rows), len(self))]
        found = np.zeros(len(self), np.bool_)
        found[[number for number in asked if ":" not in self.rule(number).acl.principal]] = True
        return found

    @property
    def patterns(self) -> Int64s:
        """A number for the resource pattern of each rule."""
        base = self._base
        starts = [base.rows(*base.cells(at)).start for at in range(len(base.resources))]
        of_base = np.searchsorted(np.array(starts, np.int64), self.rows, "right") - 1
        new: dict[tuple[int, str, int], int] = {}
        of_added = np.empty(len(self.added), np.int64)
        for at, rule in enumerate(self.added):
            acl = rule.acl
            literal = acl.pattern_type == PatternType.LITERAL
            number = base.resource(known_type(acl.resource_type), acl.resource_name, literal=literal)
            key = (acl.resource_type, acl.resource_name, acl.pattern_type)
            of_added[at] = number if number >= 0 else new.setdefault(key, len(starts) + len(new))
        return np.concatenate((of_base, of_added))

    def rule(self, number: int) -> StandardAclWithId:
        """Return the rule of a number."""
        at = number - len(self.rows)
        return self.added[at] if at >= 0 else self._base.rule(int(self.rows[number]))

    def principals(self, numbers: Int64s) -> list[str]:
        """Return whom the rules of these numbers are for, without an object for each."""
        base, rows = self._base, self.rows[numbers[numbers < len(self.rows)]]
        starts = base.cell_rows
        cells = rows if isinstance(starts, range) else np.searchsorted(np.asarray(starts), rows, "right") - 1
        pairs = np.asarray(base.cell_pairs)[cells].tolist()
        of_pair = {pair: split_pair(base.pairs.key(pair))[0] for pair in set(pairs)}
        of_base = iter([of_pair[pair] for pair in pairs])
        places = (numbers - len(self.rows)).tolist()
        return [next(of_base) if at < 0 else self.added[at].acl.principal for at in places]

    def in_text_order(self, chosen: Bools | None = None) -> Iterator[tuple[int, StandardAclWithId]]:
        """Yield the number of each rule, or of the chosen ones, and the rule, by their text as `acls list` sorts them.

        One name at a time: they are never all in memory.
        """
        base, keys = self._base, self._base.resources
        wanted = np.ones(len(self), np.bool_) if chosen is None else chosen
        number_of_row = np.full(len(base), -1, np.int64)
        number_of_row[self.rows] = np.where(wanted[: len(self.rows)], np.arange(len(self.rows)), -1)
        places = [(*_place(key[0], resource_name(key)), at) for at, key in enumerate(map(keys.key, range(len(keys))))]
        chosen_added = np.flatnonzero(wanted[len(self.rows) :]).tolist()
        acls = ((at, self.added[at].acl) for at in chosen_added)
        places += [(*_place(acl.resource_type, acl.resource_name), ~at) for at, acl in acls]
        for _, together in groupby(sorted(places), key=itemgetter(0, 1)):
            found: list[tuple[int, StandardAclWithId]] = []
            for *_, at in together:
                if at < 0:
                    found.append((len(self.rows) + ~at, self.added[~at]))
                    continue
                numbers = number_of_row[slice(*_row_range(base, at))]
                found += ((number, self.rule(number)) for number in numbers[numbers >= 0].tolist())
            yield from sorted(found, key=_text)


def _row_range(base: Base, resource: int) -> tuple[int, int]:
    rows = base.rows(*base.cells(resource))
    return rows.start, rows.stop


def _place(resource_type: int, name: str) -> tuple[str, str]:
    return code_name(ResourceType, resource_type), name


def _text(numbered: tuple[int, StandardAclWithId]) -> tuple[str | None, ...]:
    return tuple(numbered[1].to_dict().values())[:-1]  # but for the id
