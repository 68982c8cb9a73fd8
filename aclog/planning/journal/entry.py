"""Entries of a journal."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import frozen

from aclog.authorizer.rule_content import acl_of_content, content_of_object
from aclog.authorizer.rule_object import object_of_rule
from aclog.metalog.errors import ConfigError


class EntryKind(StrEnum):
    """What an entry says of an apply."""

    BEGIN = "BEGIN"
    """It begins, and may make any of its steps."""
    DONE = "DONE"
    """It has ended, and made exactly these steps."""


class JournalAction(StrEnum):
    """What a step does: to the place, or to who owns an ACL."""

    ADD = "ADD"
    REMOVE = "REMOVE"
    ADOPT = "ADOPT"
    """It was there, and is owned from now on."""
    RELEASE = "RELEASE"
    """It is owned no more, and stays as it is."""


@frozen(kw_only=True)
class JournalStep:
    """One step of an apply; `content` as aclog.authorizer.rule_content has it."""

    action: JournalAction
    content: bytes


@frozen(kw_only=True)
class Entry:
    """One line of a journal."""

    kind: EntryKind
    apply: str
    """The id of the apply."""
    at: str
    """ISO 8601, UTC."""
    who: str
    plan: str
    """The digest of the plan."""
    place: str | None
    """The identity of the place; None in the BEGIN of an apply that makes the place."""
    git: str | None
    steps: tuple[JournalStep, ...]
    """All that a BEGIN may make, or that was made when it is DONE; those of a BEGIN that is DONE are not read."""
    settled: bool = False
    """Whether a later command ended it, by reading the place."""
    at_once: bool = False
    """Of a BEGIN: whether its steps are made all at once, and no line says what was sent."""


def entry_object(entry: Entry) -> dict[str, object]:
    """Return the JSON object of an entry."""
    return {
        "kind": entry.kind.value,
        "apply": entry.apply,
        "at": entry.at,
        "who": entry.who,
        "plan": entry.plan,
        "place": entry.place,
        "git": entry.git,
        **({"settled": True} if entry.settled else {}),
        **({"atOnce": True} if entry.at_once else {}),
        "steps": [
            {"action": step.action.value, "rule": object_of_rule(acl_of_content(step.content))} for step in entry.steps
        ],
    }


def parse_entry(value: Mapping[str, Any]) -> Entry:
    """Return the entry in a JSON object. Raises ConfigError: it lacks something."""
    try:
        return Entry(
            kind=EntryKind(value["kind"]),
            apply=value["apply"],
            at=value["at"],
            who=value["who"],
            plan=value["plan"],
            place=value["place"],
            git=value["git"],
            settled=value.get("settled", False),
            at_once=value.get("atOnce", False),
            steps=_steps(value["steps"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not an entry of a journal: {error}") from error


def owned_after(entries: Iterable[Entry]) -> set[bytes]:
    """Return what is owned after these entries: the fold of those that are DONE."""
    owned: set[bytes] = set()
    for entry in entries:
        if entry.kind is EntryKind.DONE:
            fold(owned, entry.steps)
    return owned


def fold(owned: set[bytes], steps: Iterable[JournalStep]) -> None:
    """Change what is owned by the steps of an apply that has ended."""
    for step in steps:
        if step.action in (JournalAction.ADD, JournalAction.ADOPT):
            owned.add(step.content)
        else:
            owned.discard(step.content)


def written_steps(steps: Iterable[JournalStep]) -> int:
    """Return how many steps of an apply change its place; they are the first ones."""
    return sum(step.action in (JournalAction.ADD, JournalAction.REMOVE) for step in steps)


def _steps(values: Sequence[Mapping[str, Any]]) -> tuple[JournalStep, ...]:
    return tuple(
        JournalStep(action=JournalAction(value["action"]), content=content_of_object(value["rule"])) for value in values
    )
