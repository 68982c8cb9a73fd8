"""The text of a draft: changes of rules, line by line, in whichever form they come."""

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import acl_text
from aclog.authorizer.creation_checks import refusal
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.rule_change import Action, RuleChange
from aclog.authorizer.rule_object import rule_of_object
from aclog.console.draft.rule_line import EXPECTED, parse_rule_line
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object
from aclog.planning.plan_file import KIND, PLAN_BEGIN, parse_plan
from aclog.sources.change_lines import parse_change

MOST_BYTES = 2_000_000
MOST_CHANGES = 10_000
_LONGEST = 16_384
"""Characters of a line."""
NAME = "draft"
"""What the text is called where rules are said to stand."""


@frozen(kw_only=True)
class Problem:
    """A line that says no change."""

    line: int
    """From 1."""
    text: str
    """What is wrong, and what is expected."""


@frozen(kw_only=True)
class DraftText:
    """What a text says."""

    changes: tuple[RuleChange, ...] = ()
    """In order; the origin of each has its line."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    """What is to be said of the text as a whole."""


def read_draft(text: str, *, cidr: bool) -> DraftText:
    """Read a text: changes as JSON lines, rules as JSON lines or in a line, which are added, or a PLAN file.

    Blank lines and those that begin with `#` say nothing. A rule to add that CreateAcls would refuse is a problem.

    Raises:
        ConfigError: it is too long, or has too many changes.

    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ConfigError(f"the draft has more than {MOST_BYTES:,} bytes: `aclog diff --change FILE` takes any number")
    lines = text.split("\n")
    if text.lstrip().startswith(PLAN_BEGIN.decode()):
        return _plan(text, lines)
    return _Reader(cidr=cidr).read(lines)


def _plan(text: str, lines: list[str]) -> DraftText:
    """Read a PLAN file; if it is not as it was written, its steps are read as they are."""
    try:
        plan = parse_plan((line.encode() for line in text.strip().split("\n")), NAME)
    except (ConfigError, UnicodeEncodeError) as error:
        found = _Reader(cidr=True).read(lines)
        return evolve(found, notes=(f"{error}; its steps are read as they stand here", *found.notes))
    _check_number(len(plan.steps) + len(plan.adopt))
    adopted = [RuleChange(added=True, acl=acl) for acl in plan.adopt]
    steps = [
        RuleChange(added=step.adds, acl=step.acl, where=f"line {number}", origin=FileOrigin(file=NAME, line=number))
        for number, step in enumerate(plan.steps, 2)
    ]
    address = plan.place.address
    note = f"A plan for --{address.kind} {address.value}, made at {plan.origin.at} by {plan.origin.who}"
    return DraftText(changes=(*steps, *adopted), notes=(note,))


@define(kw_only=True)
class _Reader:
    cidr: bool
    changes: list[RuleChange] = field(factory=list, init=False)
    problems: list[Problem] = field(factory=list, init=False)

    def read(self, lines: Iterable[str]) -> DraftText:
        """Read all lines."""
        for number, line in enumerate(lines, 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            try:
                self.changes += self._read(stripped, FileOrigin(file=NAME, line=number))
            except ConfigError as error:
                self.problems.append(Problem(line=number, text=str(error)))
            _check_number(len(self.changes) + len(self.problems))
        return DraftText(changes=tuple(self.changes), problems=tuple(self.problems))

    def _read(self, line: str, origin: FileOrigin) -> Iterator[RuleChange]:
        if len(line) > _LONGEST:
            raise ConfigError(f"more than {_LONGEST:,} characters: {EXPECTED}")
        change = _json(line) if line.startswith("{") else _plain(line)
        if change is None:
            return
        why = refusal(change.acl, cidr=self.cidr) if change.added else None
        if why is not None:
            raise ConfigError(f"{acl_text(change.acl)}: CreateAcls refuses it: {why}")
        yield evolve(change, where=f"line {origin.line}", origin=origin)


def _plain(line: str) -> RuleChange:
    found = parse_rule_line(line)
    return RuleChange(added=found.added, acl=found.acl)


def _json(line: str) -> RuleChange | None:
    """Return the change in an object; None in the head of a plan, which has none."""
    value: dict[str, Any] = parse_object(line.encode("utf-8", "replace"))
    if value.get("kind") == KIND:
        return None
    if "action" in value or "rule" in value:
        return parse_change(value, "")
    try:
        return RuleChange(added=True, acl=rule_of_object(value).acl)
    except ConfigError as error:
        raise ConfigError(f'{error}: expected a rule, or {{"action":"{Action.ADD}","rule":{{...}}}}') from error


def _check_number(changes: int) -> None:
    if changes > MOST_CHANGES:
        raise ConfigError(f"more than {MOST_CHANGES:,} changes: `aclog diff --change FILE` takes any number")
