"""What has to change so that a place holds what its source of rules wants, and nothing of others is touched."""

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from attrs import frozen

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.creation_checks import refusal
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import NO_ORIGINS, Origins, places_text
from aclog.authorizer.rule_change import RuleChange
from aclog.authorizer.rule_content import acl_of_content, content_of
from aclog.metalog.errors import EncodeError
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.errors import RefusedError

_NAMED = 3
"""How many ACLs an error names."""


@frozen(kw_only=True)
class PlannedChange:
    """A change, and how it stands to what is there; each tuple is sorted by the contents of its ACLs."""

    added: tuple[StandardAcl, ...] = ()
    removed: tuple[StandardAcl, ...] = ()
    """Owned and no longer wanted; or asked for one by one (`unowned`)."""
    adopted: tuple[StandardAcl, ...] = ()
    """Wanted, there, not owned: owned from now on."""
    released: tuple[StandardAcl, ...] = ()
    """Owned, no longer wanted, and gone or owned by another journal too."""
    present: tuple[StandardAcl, ...] = ()
    """Wanted, there, not owned: left as they are."""
    unowned: tuple[StandardAcl, ...] = ()
    """Those of `removed` that are not owned."""
    gone: tuple[StandardAcl, ...] = ()
    """Asked to be removed, and not there."""
    shared: tuple[StandardAcl, ...] = ()
    """Wanted, there, and owned by another journal: wanted by two."""
    foreign: int = 0
    """How many others are there, neither wanted nor owned."""
    owned: int = 0
    """How many are owned before the change."""

    @property
    def changes(self) -> list[RuleChange]:
        """What changes in the place."""
        return [
            *(RuleChange(added=True, acl=acl) for acl in self.added),
            *(RuleChange(added=False, acl=acl) for acl in self.removed),
        ]

    def check(self, limit: DeleteLimit, generations: Collection[Generation], *, origins: Origins = NO_ORIGINS) -> None:
        """Check that every ACL to add can be created, and that no more are deleted than the limit lets pass.

        `generations`: of Kafka, each of which must create it. `origins` tell where what is wanted stands.

        Raises:
            RefusedError: one cannot, or too many are deleted.

        """
        for acl in self.added:
            for each in generations:
                why = refusal(acl, cidr=each.has_ranges)
                if why is not None:
                    by = f" of {each}" if len(generations) > 1 else ""
                    raise RefusedError(f"{acl_text(acl)}{places_text(acl, origins)}: CreateAcls{by} refuses it: {why}")
        most = limit.most(self.owned)
        if most is not None and len(self.removed) > most:
            raise RefusedError(
                f"{len(self.removed):,} deletes, of {self.owned:,} owned rules: more than --max-deletes lets pass "
                f"({limit}): look at them, and give --max-deletes {len(self.removed)} if they are meant"
            )


@frozen(kw_only=True)
class Held:
    """What a place has, and who owns what of it."""

    there: AbstractSet[bytes]
    owned: AbstractSet[bytes]
    """By the journal of the plan."""
    others: AbstractSet[bytes] = frozenset()
    """By other journals."""


def change_to_want(held: Held, wanted: AbstractSet[bytes], *, adopt: bool) -> PlannedChange:
    """Return what makes the place hold all that is wanted, and nothing that is owned and no longer wanted.

    Deletes are what is owned minus what is wanted, never what is there minus what is wanted.
    """
    dropped = held.owned - wanted
    kept_for_others = dropped & held.others
    present = (wanted & held.there) - held.owned
    return PlannedChange(
        added=_acls(wanted - held.there),
        removed=_acls((dropped & held.there) - kept_for_others),
        adopted=_acls(present) if adopt else (),
        released=_acls((dropped - held.there) | kept_for_others),
        present=() if adopt else _acls(present),
        shared=_acls(wanted & held.there & held.others),
        foreign=len(held.there - wanted - held.owned),
        owned=len(held.owned),
    )


def change_as_asked(held: Held, changes: Iterable[RuleChange], *, adopt: bool) -> PlannedChange:
    """Return what makes the changes of a file, in order; those that are made already are left out.

    Raises:
        RefusedError: it removes ACLs that the journal does not own, without `adopt`; or that another journal owns; or
            a text is longer than a record can hold.

    """
    added, removed = _asked(changes)
    present, there = (added & held.there) - held.owned, removed & held.there
    unowned = there - held.owned
    if unowned & held.others:
        raise RefusedError(
            f"{_rules_text(_acls(unowned & held.others))}: owned by another journal, and not by this one: expected its "
            "source to remove them"
        )
    if unowned and not adopt:
        raise _not_owned(_acls(unowned))
    kept_for_others = there & held.others & held.owned
    return PlannedChange(
        added=_acls(added - held.there),
        removed=_acls(there - kept_for_others),
        adopted=_acls(present) if adopt else (),
        released=_acls(((removed & held.owned) - held.there) | kept_for_others),
        present=() if adopt else _acls(present),
        unowned=_acls(unowned),
        gone=_acls(removed - held.there - held.owned),
        shared=_acls(added & held.there & held.others),
        foreign=len(held.there - added - removed - held.owned),
        owned=len(held.owned),
    )


def _asked(changes: Iterable[RuleChange]) -> tuple[set[bytes], set[bytes]]:
    """Return what is to be there, and what is not: of several changes of an ACL the last one counts."""
    last = {_content(change): change.added for change in changes}
    return {each for each, is_added in last.items() if is_added}, {
        each for each, is_added in last.items() if not is_added
    }


def _content(change: RuleChange) -> bytes:
    try:
        return content_of(change.acl)
    except EncodeError as error:
        raise RefusedError(f"{change.where}: {error}") from error


def _not_owned(acls: Sequence[StandardAcl]) -> RefusedError:
    return RefusedError(
        f"{len(acls):,} rules to remove are not owned by the journal, so somebody else may need them: "
        f"{_rules_text(acls)}: expected --adopt if they are to be removed nevertheless"
    )


def _rules_text(acls: Sequence[StandardAcl]) -> str:
    """Return the first of some rules, and how many more there are."""
    more = f"; and {len(acls) - _NAMED:,} more" if len(acls) > _NAMED else ""
    return "; ".join(acl_text(acl) for acl in acls[:_NAMED]) + more


def _acls(contents: Iterable[bytes]) -> tuple[StandardAcl, ...]:
    return tuple(acl_of_content(content) for content in sorted(contents))
