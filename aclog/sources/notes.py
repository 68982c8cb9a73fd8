"""Notes on a source: the gaps in the log of its state, and how callers are notified."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from aclog.authorizer.acl import AclPermissionType, Origins, StandardAcl, origin_text
from aclog.authorizer.standard import Premise
from aclog.authorizer.symbols import SYMBOLS, is_symbol, symbols_of
from aclog.snapshots.image import NewerKafka

# Notes of a state source for its user.


Notify: TypeAlias = Callable[[str], None]
"""Called once with each note of a recovery: a torn tail, a lowered offset, a skipped checkpoint."""


# Gaps of a state in its log: premises of every answer about it.
#
# A command and a live server read them once, at the start, with the first state.


STATE = "the state"
"""The name of the premise."""


def newer_gaps(newer: NewerKafka) -> tuple[Premise, ...]:
    """Return the gap of records that were skipped because a newer Kafka wrote them, or decides by its own rules."""
    return _gap(newer.warnings(), "an aclog that supports the Kafka that wrote it")


def tail_gaps(missing: Iterable[str], torn: str | None) -> tuple[Premise, ...]:
    """Return the gap at the end of a log.

    `missing`: the notes of records that were committed and are not there (CommittedMark.notes). `torn`: that of the
    reader about bytes that are not a whole batch (FileLogReader.torn_note).
    """
    return _gap((*missing, *(() if torn is None else (torn,))), "the whole log")


# Symbols in files: premises of every answer about their rules.


_NAMED = 3


def symbol_gaps(rules: Sequence[StandardAcl], origins: Origins) -> tuple[Premise, ...]:
    """Return the premise that a symbol of some rules may turn out to be any principal, name or host.

    `rules`: those with symbols (aclog.authorizer.symbols).
    """
    if not rules:
        return ()
    first = dict.fromkeys(f"{symbol}{_place(rule, origins)}" for rule in rules for symbol in symbols_of(rule))
    listed = ", ".join(list(first)[:_NAMED])
    more = f" and {len(first) - _NAMED:,} more" if len(first) > _NAMED else ""
    # an ALLOW on a name also closes it to all others, where resources without ACLs are open
    denies = not all(rule.permission_type == AclPermissionType.ALLOW for rule in rules) or any(
        is_symbol(rule.resource_name) for rule in rules
    )
    return (
        Premise(
            name=SYMBOLS,
            problem=f"{listed}{more}",
            unless="a value known after apply is, or covers, the principal, the name or the host",
            settled_by="a plan or a state by terraform show -json",
            denies=denies,
        ),
    )


def _place(rule: StandardAcl, origins: Origins) -> str:
    places = origins.of(rule)
    return f" ({origin_text(places[0])})" if places else ""


def _gap(problems: Iterable[str], settled_by: str) -> tuple[Premise, ...]:
    problem = "; ".join(problems)
    if not problem:
        return ()
    return (
        Premise(
            name=STATE,
            problem=problem,
            unless="the missing records decide otherwise",
            settled_by=settled_by,
            denies=True,
        ),
    )
